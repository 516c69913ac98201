"""Sources of questions and traces: tasks, given chains, planted models, answers in texts."""
