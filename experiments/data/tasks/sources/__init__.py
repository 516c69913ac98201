"""The rows of tasks: files, the hub and packages that they come from, and reading their cells."""
