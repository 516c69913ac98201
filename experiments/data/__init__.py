"""Where questions and traces come from: tasks, planted models, answers in text."""
