"""One page on which a comparison is explored, trace by trace."""
