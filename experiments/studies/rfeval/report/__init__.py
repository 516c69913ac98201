"""What a report of RFEval says: its sections, the verdict in words, pairs, the paper's tables."""
