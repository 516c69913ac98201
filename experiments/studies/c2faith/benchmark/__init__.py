"""The benchmark: chains of PRM800K, what is done to them, and how they are kept."""
