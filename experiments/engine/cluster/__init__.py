"""Runs on a cluster with Slurm: readable batch files, their jobs, and the state of both."""

from __future__ import annotations

FOLDER = "slurm"
"""Folder below the run folder with batch files, the profile, logs, and what is known of jobs."""
