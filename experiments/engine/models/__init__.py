"""Models as a run uses them: loaded, asked as judges and writers, and what that costs."""
