"""The studies, a folder each: what each asks, and what a reader gets of it."""
