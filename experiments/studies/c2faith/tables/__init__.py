"""C2-Faith's numbers, from tidy frames of judgements alone: no disk, no model."""
