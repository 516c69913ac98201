"""Probes of traces, SLRC first among them: the study of the run configs without a benchmark."""
