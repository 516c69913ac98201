"""Finds the rooms of the package where symbolic links do not work.

In a checkout the rooms are links in this folder. Git on Windows may write a link as a file with its
target; the rooms are then taken from the repository's own folders.
"""

from __future__ import annotations

from pathlib import Path

import faithscope

_HERE = Path(__file__).parent
if not (_HERE / "interp").is_dir():
    if not (_HERE.parent / "interp").is_dir():
        raise ImportError(
            f"faithscope at {_HERE} is incomplete: it has no folder interp. It was built or copied "
            "from a checkout without symbolic links. Make the checkout anew with `git clone -c "
            "core.symlinks=true` (on Windows, in Developer Mode), and build or install from there."
        )
    faithscope.__path__.append(str(_HERE.parent))
