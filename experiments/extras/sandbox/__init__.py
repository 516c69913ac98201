"""Checks programs that a model wrote: they run against tests where they can do no harm."""
