"""What a run is told to do: typed, checked before any weights are read."""
