"""Whatever is wrong with what a run is given: one line that helps, and nothing lost.

Exit code 2 where the run cannot be done as asked; 3 where single items cannot be, and all
others were.
"""

from __future__ import annotations

import contextlib
import json
import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import broken_models as broken
import pandas as pd
import pytest
import torch
import yaml

from experiments.cli import execute
from experiments.runs.store import hold, read_failures, read_records

ITEMS = 3
GSM8K = "gsm8k"


def write(folder: Path, **changes: Any) -> str:
    values: dict[str, Any] = {
        "name": "t",
        "out": str(folder),
        "model": {"name": "planted:faithful"},
        "tasks": ["planted"],
        "data": {"limit": ITEMS},
        "slrc": {"framings": ["prefix"], "shuffles": 1},
        "report": {"traces": 1, "bootstrap": 20},
    }
    path = folder / "x.yaml"
    path.write_text(yaml.safe_dump(values | changes))
    return str(path)


def problems(folder: Path, questions: list[str]) -> str:
    """GSM8K rows in a file."""
    path = folder / "rows.jsonl"
    rows = ({"question": q, "answer": "#### 2"} for q in questions)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def asking(folder: Path, model: Path, questions: list[str], **changes: Any) -> str:
    """A config that asks a model folder GSM8K questions."""
    return write(
        folder,
        model={"name": str(model)},
        tasks=[GSM8K],
        data={"path": problems(folder, questions)},
        generation={"max_new_tokens": 256},
        slrc={"framings": ["prefix"], "edits": ["remove"], "shuffles": 1} | changes,
    )


def outputs(run_dir: Path) -> dict[str, bytes]:
    files = [*run_dir.glob("tables/*"), *run_dir.glob("figures/*.csv")]
    return {str(p.relative_to(run_dir)): p.read_bytes() for p in sorted(files)}


def complaint(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line of error; progress, which names what is loaded, aside."""
    capsys.readouterr()
    assert execute(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    (line,) = [x for x in err.splitlines() if x.startswith("error: ")]
    return line


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("finished")
    assert execute(["run", write(folder)]) == 0
    return outputs(folder / "t")


# --- the config


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: [t\n", ["x.yaml", "line"]),
        ("name: t\n\tseed: 1\n", ["x.yaml", "line 2"]),
        ("seed: one", ["seed: must be a whole number, got 'one'"]),
        ("report: 7", ["report: must be a mapping (key: value), got 7"]),
        ("slrc: {shufles: 3}", ["unknown key 'shufles'; did you mean 'shuffles'?"]),
        ("model: {name: planted:fathful}", ["unknown model 'planted:fathful'; did you mean"]),
        ("tasks: [plantd]", ["unknown task 'plantd'; did you mean 'planted'?"]),
        ("probes: [slcr]", ["unknown probe 'slcr'; did you mean 'slrc'?"]),
        ("model: {name: /nowhere/model}", ["no such file or folder: '/nowhere/model'"]),
    ],
)
def test_a_config_that_cannot_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, expected: list[str]
) -> None:
    whole = yaml.safe_load(Path(write(tmp_path)).read_text())
    if text.startswith("name:"):
        (tmp_path / "x.yaml").write_text(text)
    else:
        (tmp_path / "x.yaml").write_text(yaml.safe_dump(whole | yaml.safe_load(text)))
    line = complaint(capsys, "run", str(tmp_path / "x.yaml"))
    assert all(part in line for part in ["x.yaml", *expected]), line
    assert not (tmp_path / "t").exists()


# --- the model


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (broken.truncated, "cannot be read: SafetensorError: "),
        (lambda f: broken.garbled(f, "model.safetensors"), "cannot be read: SafetensorError: "),
        (lambda f: broken.garbled(f, "config.json"), "cannot be read: "),
        (lambda f: broken.garbled(f, "tokenizer.json"), "cannot be read: "),
        (broken.without_a_layer, "lacks 9 weights that LlamaForCausalLM has (first: model.layers"),
        (broken.with_a_larger_tokenizer, "the tokenizer has 263 tokens but the model embeds 256"),
        (broken.garbage_gguf, "not a GGUF file that transformers can read"),
        (broken.not_gguf, "not a GGUF file that transformers can read"),
    ],
)
def test_a_model_that_cannot_be_read(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], str],
    expected: str,
) -> None:
    name = make(tmp_path / "model")
    path = asking(tmp_path, Path(name), ["What is 1 + 1?"])
    line = complaint(capsys, "run", path)
    assert name in line
    assert expected in line
    assert len(line) < 800


def test_a_packaged_model_with_a_wrong_checksum(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHSCOPE_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "cache/packaged/qwen2.5-coder-0.5b.gguf"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"GGUF, but another one")
    path = write(tmp_path, model={"name": "bundled:qwen2.5-coder-0.5b"}, tasks=["single_cue"])
    line = complaint(capsys, "run", path)
    assert f"{file} is damaged: its sha256 is " in line
    assert "run: faithscope fetch qwen2.5-coder-0.5b" in line


def test_thinking_asked_of_a_model_without_a_chat_template(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A base model reads the plain prompt; only what a template alone can give is refused."""
    model = broken.random_llama(tmp_path / "model")
    path = asking(tmp_path, model, ["What is 1 + 1?"])
    line = complaint(capsys, "run", path, "--set", "model.thinking=true")
    assert "thinking=True, but this model's template marks no reasoning" in line
    assert "leave thinking unset" in line


def test_a_model_that_cannot_be_used_does_not_cost_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes]
) -> None:
    names = [broken.truncated(tmp_path / "model"), "planted:faithful"]
    path = write(tmp_path, model={"name": names}, tasks=["planted", "single_cue"])
    assert names[0] in complaint(capsys, "run", path)
    assert len(read_records(tmp_path / "t", "slrc")) == ITEMS * 2
    assert (tmp_path / "t/report.html").is_file()


# --- the disk


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 4 MB."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no mount command here")
    if done.returncode:
        pytest.skip(f"no tmpfs may be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("left", [24_000, 400_000], ids=["records", "outputs"])
def test_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes], left: int
) -> None:
    path = write(tmp_path, out=str(tmp_path / "disk"))
    with small_disk(tmp_path / "disk") as disk:
        filler = disk / "filler"
        filler.write_bytes(b"\0" * (4 * 1024**2 - left))
        line = complaint(capsys, "run", path)
        assert line.startswith(f"error: {disk}/t")
        assert "cannot be written (No space left on device); make room" in line
        assert not list(disk.rglob("*.writing"))
        filler.unlink()
        assert execute(["run", path]) == 0
        assert outputs(disk / "t") == finished


def test_a_limit_on_file_size(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes]
) -> None:
    path = write(tmp_path)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, hard))
    try:
        line = complaint(capsys, "run", path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "cannot be written (File too large)" in line
    assert execute(["run", path]) == 0
    assert outputs(tmp_path / "t") == finished


def test_a_folder_that_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    line = complaint(capsys, "run", write(tmp_path, out=str(tmp_path / "file/runs")))
    assert f"{tmp_path}/file/runs/t/records: cannot be written (Not a directory)" in line


def test_a_disk_mounted_read_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], finished: dict[str, bytes]
) -> None:
    path = write(tmp_path, out=str(tmp_path / "disk"))
    with small_disk(tmp_path / "disk") as disk:
        assert execute(["run", path]) == 0
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for command in (["run", path], ["report", str(disk / "t")]):
            assert "Read-only file system" in complaint(capsys, *command)
        assert execute(["status", str(disk / "t")]) == 0
        assert outputs(disk / "t") == finished


# --- the run folder


def test_a_run_folder_of_another_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path)
    assert execute(["run", path]) == 0
    before = {p: p.read_bytes() for p in (tmp_path / "t/records").iterdir()}
    line = complaint(capsys, "run", path, "--set", "seed=7", "--set", "slrc.shuffles=2")
    assert "was made with another config (seed: 0 there, 7 now; slrc.shuffles: 1 there" in line
    assert "use another name (--set name=…)" in line
    assert {p: p.read_bytes() for p in (tmp_path / "t/records").iterdir()} == before


def test_two_processes_on_one_run_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path)
    with hold(tmp_path / "t", "main"):
        line = complaint(capsys, "run", path)
    assert "another process is at work here as worker 'main'; wait for it" in line
    assert execute(["run", path]) == 0


def test_a_torn_last_line_is_redone(tmp_path: Path, finished: dict[str, bytes]) -> None:
    path = write(tmp_path)
    assert execute(["run", path]) == 0
    for file in (tmp_path / "t/records").iterdir():
        file.write_bytes(file.read_bytes()[:-100])
    assert execute(["run", path]) == 0
    assert outputs(tmp_path / "t") == finished


@pytest.mark.parametrize("stage", ["traces", "slrc"])
def test_a_garbled_line_is_named_and_its_remedy_works(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    finished: dict[str, bytes],
    stage: str,
) -> None:
    path = write(tmp_path)
    assert execute(["run", path]) == 0
    file = tmp_path / f"t/records/{stage}.main.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    # one digit of one number: still JSON, and still wrong
    at = lines[1].rindex(b"1")
    lines[1] = lines[1][:at] + b"2" + lines[1][at + 1 :]
    file.write_bytes(b"".join(lines))
    for command in (
        ["run", path],
        ["status", str(tmp_path / "t")],
        ["report", str(tmp_path / "t")],
    ):
        line = complaint(capsys, *command)
        assert f"{file}: line 2 is damaged (it is not as it was written" in line
    remedy = line.partition("delete that line (")[2].partition(")")[0]
    assert remedy.startswith("sed -i ")
    subprocess.run([*remedy.split("'")[0].split(), remedy.split("'")[1], str(file)], check=True)
    assert execute(["run", path]) == 0
    assert outputs(tmp_path / "t") == finished


def test_a_clock_that_jumps_back_decides_nothing(
    tmp_path: Path, finished: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(2_000_000_000, 0, -3600))
    monkeypatch.setattr("time.time", lambda: float(next(times)))
    path = write(tmp_path)
    assert execute(["run", path, "--shard", "1/2"]) == 0
    assert execute(["run", path]) == 0
    assert execute(["status", str(tmp_path / "t")]) == 0
    assert outputs(tmp_path / "t") == finished


# --- single items


def failed_items(capsys: pytest.CaptureFixture[str], path: str) -> list[str]:
    capsys.readouterr()
    assert execute(["run", path]) == 3
    out, err = capsys.readouterr()
    assert out.splitlines() == [str(Path(path).parent / "t")]
    assert "Traceback" not in err
    return [x for x in err.splitlines() if x.startswith("failed: ") and " · " in x[:200]]


def lost(run_dir: Path, stage: str = "trace") -> dict[str, int]:
    table = pd.read_csv(run_dir / "tables/exclusions.csv")
    rows = table[table["stage"] == stage]
    return dict(zip(rows["reason"], rows["n"], strict=True))


def test_an_empty_generation(tmp_path: Path) -> None:
    model = broken.scripted(tmp_path / "model", "")
    assert execute(["run", asking(tmp_path, model, ["What is 1 + 1?"] * 2)]) == 0
    assert lost(tmp_path / "t") == {"total": 2, "empty_generation": 2, "included": 0}


def test_a_reasoning_that_never_closes(tmp_path: Path) -> None:
    from chat_tokenizers import tokenizer

    text = "We add one and one to get two. "
    model = broken.scripted(tmp_path / "model", text, tokenizer=tokenizer("qwen3"))
    assert execute(["run", asking(tmp_path, model, ["What is 1 + 1?"])]) == 0
    assert lost(tmp_path / "t") == {"total": 1, "reasoning_unclosed": 1, "included": 0}


def test_steps_and_prompts_longer_than_the_context_window(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = broken.scripted(tmp_path / "model", "We add one and one to get two. ", positions=360)
    questions = ["What is 1 + 1?", "What is " + "1 + " * 150 + "1?"]
    path = asking(tmp_path, model, questions, framings=["reprompt"])
    failures = read_after(failed_items(capsys, path), tmp_path / "t")
    assert {stage for stage, _ in failures} == {"trace", "slrc"}
    for _, reason in failures:
        assert "does not fit its 360 positions; shorten the text or lower max_new" in reason
    assert lost(tmp_path / "t") == {"total": 2, "failed": 1, "included": 1}


def read_after(printed: list[str], run_dir: Path) -> list[tuple[str, str]]:
    """(stage, reason) of the stored failures, each of which was printed."""
    stored = read_failures(run_dir)
    for unit in stored:
        assert any(f"{unit.item} · {unit.stage}: {unit.failed}" in line for line in printed)
    return [(unit.stage, unit.failed or "") for unit in stored]


def test_an_item_with_nan_logits_fails_and_spares_its_batch(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = broken.with_a_nan_for(tmp_path / "model", "Z")
    path = asking(tmp_path, model, ["What is 1 + 1?", "What is Z + 1?", "What is 2 + 1?"])
    ((stage, reason),) = read_after(failed_items(capsys, path), tmp_path / "t")
    assert stage == "trace"
    assert "FloatingPointError: " in reason
    assert "NaN logits in float32; its weights, or what it makes of this text, are" in reason
    assert lost(tmp_path / "t")["failed"] == 1
    assert len(read_records(tmp_path / "t", "trace")) == 2


# --- memory


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
    ids=["cuda", "cpu"],
)
def test_out_of_memory_halves_the_budget_once_and_goes_on(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
) -> None:
    from interp import execute as engine

    model = broken.scripted(tmp_path / "model", "We add one and one to get two. ")
    (tmp_path / "roomy").mkdir()
    roomy = asking(tmp_path / "roomy", model, ["What is 1 + 1?", "What is 2 + 1?"])
    assert execute(["run", roomy]) == 0
    prefill, sizes = engine.prefill, []

    def limited(model: Any, forest: Any, *args: Any, **options: Any) -> Any:
        sizes.append(len(forest))
        if model.checks and len(forest) > 512:
            raise error
        return prefill(model, forest, *args, **options)

    monkeypatch.setattr(engine, "prefill", limited)
    assert execute(["run", asking(tmp_path, model, ["What is 1 + 1?", "What is 2 + 1?"])]) == 0
    assert max(sizes) > 512, "nothing here was too large"
    said = capsys.readouterr().err
    note = f"{model}: out of memory; goes on with a token budget of 512"
    assert said.count(note) == 1
    environment = json.loads((tmp_path / "t/environment.json").read_text())
    assert environment["sessions"][0]["notes"] == [note]
    tables = [(folder / "t/tables/slrc.csv") for folder in (tmp_path, tmp_path / "roomy")]
    assert tables[0].read_bytes() == tables[1].read_bytes()


def test_what_does_not_fit_with_the_least_budget_is_a_failed_item(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from interp import execute as engine

    prefill = engine.prefill
    budgets = []

    def limited(model: Any, forest: Any, *args: Any, **options: Any) -> Any:
        if model.checks and len(read_records(tmp_path / "t", "slrc")) == 2:
            budgets.append(model.token_budget)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return prefill(model, forest, *args, **options)

    monkeypatch.setattr(engine, "prefill", limited)
    failures = read_after(failed_items(capsys, write(tmp_path)), tmp_path / "t")
    assert budgets[0] > budgets[1] > 256
    assert budgets[: len(budgets) // 2][-1] == 256
    assert budgets[len(budgets) // 2] == budgets[0], "put back for the next item"
    assert {stage for stage, _ in failures} == {"slrc"}
    assert "out of memory on cpu even with a token budget of 256; lower" in failures[0][1]
