from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
STUDIES = HERE.parent / "experiments/studies"
for folder in (HERE, STUDIES / "c2faith", STUDIES / "rfeval"):
    sys.path.insert(0, str(folder))

from faithscope.experiments.config.study import Study, register  # noqa: E402

register(Study("toy", "toy", "ToyConfig", "ToyRun"))
