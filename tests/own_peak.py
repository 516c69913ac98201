"""Peak memory of a command in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

# `ru_maxrss` is at least that of the process that started this one: of a test, with torch loaded
_RUN = """
import re, sys
from pathlib import Path
from faithscope.experiments.cli import execute
code = execute(sys.argv[1:])
print(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text()).group(1))
sys.exit(code)
"""


def peak_of(*arguments: str) -> int:
    """Peak bytes of a faithscope command on one thread."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN, *arguments],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    return 1024 * int(done.stdout.split()[-1])
