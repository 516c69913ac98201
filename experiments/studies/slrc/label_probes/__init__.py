"""Label probes: any label of chains or steps, read off the hidden states that a probe stored."""
