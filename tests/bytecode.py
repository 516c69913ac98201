"""Processes of the tests keep the bytecode of what they import; to be imported before anything
large.

Packages are installed without bytecode (Makefile), and many images tell Python to write none. Then
every process would compile what it imports, for transformers in twenty seconds.
"""

import os
import sys

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
