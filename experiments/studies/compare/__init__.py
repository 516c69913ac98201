"""Behaviour, internals and judges on the same traces: which measure to trust, and its cost."""
