"""circuit-tracer, run by `interp.circuits.Tracer` under the interpreter of its own environment.

It asks for older releases of transformers and of the hub's client than faithscope does (0.4.1:
transformers up to 4.57), so that no environment holds both: nothing here imports faithscope. The
first line of the input says what to load, every further line asks for a graph; each is answered by
a line of the output. All that libraries print goes to the errors.
"""

import json
import os
import sys
import traceback
from typing import Any


def main() -> None:
    # this file's folder: its modules are none that a library may mean
    sys.path.pop(0)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**what: Any) -> None:
        print(json.dumps(what), file=answers, flush=True)

    told = json.loads(sys.stdin.readline())
    try:
        from circuit_tracer import (  # pyright: ignore[reportMissingImports]
            ReplacementModel,
            attribute,
        )
    except ImportError as error:
        return say(missing=str(error))
    try:
        import torch

        model = ReplacementModel.from_pretrained(
            told["model"],
            told["transcoders"],
            backend=told["backend"],
            device=torch.device(told["device"]),
            dtype=getattr(torch, told["dtype"]),
        )
        say()
        for line in sys.stdin:
            asked = json.loads(line)
            graph = attribute(
                torch.tensor(asked["ids"]),
                model,
                attribution_targets=torch.tensor([asked["target"]]),
                max_feature_nodes=told["max_nodes"],
                batch_size=told["batch_size"],
                offload=told["offload"],
            )
            graph.to_pt(asked["path"])
            say()
    except Exception as error:  # whatever a library comes up with: the other side tells it
        traceback.print_exc()
        say(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
