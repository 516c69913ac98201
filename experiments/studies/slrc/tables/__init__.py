"""From records to numbers: tidy tables, statistics, verdicts, frames."""
