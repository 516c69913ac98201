"""Rows of tasks: readers of files, the hub and packages, and of a row's cells."""
