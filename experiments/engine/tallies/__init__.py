"""How many items of a run are measured, why the others are not, and what was taken of the data."""
