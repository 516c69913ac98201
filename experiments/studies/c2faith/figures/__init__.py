"""The figures of C2-Faith, a file per question."""
