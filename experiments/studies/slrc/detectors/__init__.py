"""Detectors of FaithCoT-Bench (arXiv 2510.04040), as measures beside probes and judges."""
