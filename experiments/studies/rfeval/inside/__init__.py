"""Inside a model under r′: attention, lens, answer tracing, its own stances (ours)."""
