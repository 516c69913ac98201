"""Judges on chains of thought that were written elsewhere: no model that reasons is needed."""
