"""From records to what a person reads: statistics, tables, charts, the parts of a page."""
