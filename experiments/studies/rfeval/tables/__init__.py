"""RFEval's numbers, from tidy frames of judged outputs alone: no disk, no model."""
