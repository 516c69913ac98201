"""Outputs judged: whole pairs, or step by step (RFEval, D.1 and G.3)."""
