"""The prose of a comparison: its first screen, the conclusions on it, and what surrounds them."""
