"""The figures of RFEval, a file per question."""
