"""A run: its plan, its folder, the work, and how far it is."""
