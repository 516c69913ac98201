"""C2-Faith: how well judges tell broken steps and missing steps in a chain of reasoning."""
