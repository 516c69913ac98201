"""Models in a run: loading, asking as judges and writers, and the costs."""
