"""Judges of chains: forms that are asked about every chain, beside the probes."""
