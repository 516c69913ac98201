"""A run over traces: models write them, and probes measure them, item by item."""
