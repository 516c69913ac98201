"""Models brought from a hub into the cache, and a run that then needs no network."""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import loopback
import pytest
from run_files import write_yaml
from tiny_models import saved, tiny

NAME, COMMIT = "org/model", "c" * 40


class Hub(loopback.Handler):
    """Serves the files of one repository as huggingface.co does."""

    server: HubServer

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = urlsplit(self.path).path
        files = self.server.files
        if path in (f"/api/models/{NAME}", f"/api/models/{NAME}/revision/main"):
            return self.send(
                200, {"id": NAME, "sha": COMMIT, "siblings": [{"rfilename": f} for f in files]}
            )
        if path in (f"/api/models/{NAME}/tree/{revision}" for revision in ("main", COMMIT)):
            listed = [
                {
                    "type": "file",
                    "path": f,
                    "size": len(data),
                    "oid": hashlib.sha1(data).hexdigest(),
                }
                for f, data in files.items()
            ]
            return self.send(200, listed)
        file = path.partition(f"/{NAME}/resolve/{COMMIT}/")[2]
        if file not in files:
            return self.send(404, {}, X_Error_Code="EntryNotFound")
        data = files[file]
        tag = hashlib.sha1(data).hexdigest()
        self.begin(200, len(data), ETag=f'"{tag}"', X_Repo_Commit=COMMIT)
        if self.command == "GET":
            self.server.sent.append(file)
            self.wfile.write(data)


class HubServer(loopback.Server):
    def __init__(self, files: dict[str, bytes]):
        super().__init__(Hub)
        self.files, self.sent = files, list[str]()


def faithscope(folder: Path, env: dict[str, str], *arguments: str) -> tuple[int, str, str]:
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "faithscope.experiments.cli", *arguments],
        cwd=folder,
        env=os.environ | path | env,
        capture_output=True,
        text=True,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.slow
def test_a_prefetched_model_runs_without_the_hub(tmp_path: Path) -> None:
    weights = Path(saved(tiny("llama"), tmp_path / "model"))
    files = {p.name: p.read_bytes() for p in weights.iterdir()}
    # the same weights in other formats
    others = {"pytorch_model.bin", "original/consolidated.00.pth", "model.gguf"}
    config = {
        "name": "fetched",
        "out": str(tmp_path),
        "model": {"name": NAME, "dtype": "float32", "device": "cpu"},
        "tasks": ["single_cue"],
        "data": {"limit": 1},
        "generation": {"max_new_tokens": 8},
        "probes": ["attention"],
    }
    path = str(write_yaml(tmp_path / "fetched.yaml", config))
    with HubServer(files | dict.fromkeys(others, b"x")) as hub:
        here = {"HF_ENDPOINT": hub.url.removesuffix("/v1"), "HF_HOME": str(tmp_path / "hf")}
        here["HF_HUB_OFFLINE"] = "0"
        code, out, err = faithscope(tmp_path, here, "prefetch", path)
    assert code == 0, err
    assert "a dry run without the hub plans the same run" in err
    assert not others & set(hub.sent)
    assert {name for name in files if name.endswith((".safetensors", ".json"))} <= set(hub.sent)
    _, *settings = shlex.split(out)
    jobs = dict(word.split("=", 1) for word in settings)
    assert jobs["HF_HOME"] == str(tmp_path / "hf")
    code, out, err = faithscope(tmp_path, jobs, "run", path)
    # random weights write no answer, so that nothing is left to be measured
    assert (code, out.strip()) == (3, str(tmp_path / "fetched")), err
    assert (tmp_path / "fetched" / "report.html").is_file()


def test_a_model_that_the_hub_does_not_have_is_named(tmp_path: Path) -> None:
    config = {"name": "none", "out": str(tmp_path), "model": {"name": "org/none"}}
    path = str(write_yaml(tmp_path / "none.yaml", config | {"tasks": ["single_cue"]}))
    with HubServer({}) as hub:
        here = {"HF_ENDPOINT": hub.url.removesuffix("/v1"), "HF_HOME": str(tmp_path / "hf")}
        code, _, err = faithscope(tmp_path, here | {"HF_HUB_OFFLINE": "0"}, "prefetch", path)
    assert code == 2
    assert "model 'org/none' cannot be downloaded" in err
