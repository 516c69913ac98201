"""What few users need, found by entry points of this package as those of any other package are.

Nothing else in faithscope imports this folder: `[project.entry-points]` in pyproject.toml names
what it adds, and docs/extending.md describes each group.
"""
