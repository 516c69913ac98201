"""Tables, statistics and verdicts of the SLRC study."""
