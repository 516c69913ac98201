"""Run configs: typed sections, all checked before any weights are read."""
