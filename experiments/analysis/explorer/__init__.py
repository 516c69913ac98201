"""The page `explore.html`, on which a comparison is explored trace by trace."""
