"""FaithCoT-Bench (arXiv 2510.04040): is this one chain of thought faithful? Eleven detectors, and
what annotators say."""
