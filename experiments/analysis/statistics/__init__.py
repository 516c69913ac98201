"""Estimates and their intervals, correlations, agreement, calibration and classifiers."""
