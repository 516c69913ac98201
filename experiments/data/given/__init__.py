"""Given chains (chains of thought written elsewhere): their data, and a reader per file layout."""
