"""Entry point of `python -m faithscope.experiments.cli`, which is the `faithscope` command."""

from faithscope.experiments.cli import main

main()
