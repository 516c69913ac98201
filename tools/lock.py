"""Lock file with the hashes of all that pip would install here: `make lock` writes `lock.txt`.

`constraints.txt` pins versions on all platforms. The bytes behind a version are not the same on all
of them (torch has other files for every platform, with CUDA and without), so that a list of hashes
is one platform's and one index's. Made once, it holds every later installation to the same bytes:

    python -m pip install --require-hashes --no-deps -r lock.txt
    python -m pip install --no-deps -e .

`python tools/lock.py REPORT` prints it from a report of `pip install --dry-run --report REPORT`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Lines of a requirement with its hash, for every package of a report but the project itself.

    Raises:
        SystemExit: pip gives no sha256 of a package.
    """
    for package in sorted(report["install"], key=lambda p: p["metadata"]["name"].lower()):
        source, name = package["download_info"], package["metadata"]["name"]
        if "dir_info" in source:
            continue
        sha256 = source.get("archive_info", {}).get("hashes", {}).get("sha256")
        if sha256 is None:
            sys.exit(f"error: pip gives no sha256 of {name} from {source['url']}; use an index")
        yield f"{name}=={package['metadata']['version']} --hash=sha256:{sha256}"


if __name__ == "__main__":
    print("\n".join(lines(json.loads(Path(sys.argv[1]).read_text("utf-8")))))
