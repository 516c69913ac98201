"""`python -m faithscope.experiments.cli`."""

from faithscope.experiments.cli import main

main()
