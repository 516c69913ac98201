"""What a reader gets of any run over traces: frames, and where every item went."""
