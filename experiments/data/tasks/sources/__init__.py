"""Where the rows of tasks come from: files, the hub, packages; and how their cells are read."""
