"""Figures of the SLRC study."""
