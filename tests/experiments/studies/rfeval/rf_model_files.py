"""Model files that are shipped, and prompts that they make."""

from __future__ import annotations

from pathlib import Path

from faithscope.experiments.studies.rfeval.subjects.model_files import (
    model_files,
)

SHIPPED = model_files(Path(__file__).parents[4] / "configs" / "models")
MORE = ("MiMo-Base", "MiMo-SFT", "Olmo-3-Base", "Olmo-3-SFT", "Olmo-3-RL")
FILES = {
    name: file
    for name, file in SHIPPED.items()
    if not name.startswith("bundled:") and file.label not in MORE
}
"""The paper's twelve; `test_rfeval_regimes` has the further ones of its Table 3."""
QUESTION = "What is 2 + 3?"
R_PRIME = "Okay, let’s see: 3 ≤ 4,\n\nso it is 6."
MIMO = (
    f"<|im_start|>system\n<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n"
    "<|im_start|>assistant<think>\n"
)
