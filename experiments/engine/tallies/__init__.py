"""Tallies of a run: how many items are measured, why others are not, and which data were used."""
