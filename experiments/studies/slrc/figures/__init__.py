"""What a person looks at: figures, the page, one trace in the terminal."""
