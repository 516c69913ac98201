"""Chains of thought that were written elsewhere: what a file holds, and a reader per layout."""
