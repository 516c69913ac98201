"""Benchmark of all families of transformers: how each is served, and its distance from plain
transformers.

    python benchmarks/all_families.py [FAMILY ...] [--device cuda] [--write docs/numerics.md]

makes a tiny random model of every family that `AutoModelForCausalLM` knows, saves it to disk with
a tokenizer, loads it as a user does and compares it with transformers' own model of the same
files: logits at every position of texts that share prefixes and reach past every window, log-probs,
greedy decoding of several prompts, and the last layer's lens. `--write` puts the table into a
document, between its marks.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from tiny_configs import byte_tokenizer, tiny_config
from torch import Tensor
from transformers import AutoModelForCausalLM, GenerationConfig, PreTrainedModel
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from faithscope import interp
from faithscope.interp.errors import UserError

FAMILIES = tuple(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
MARKS = ("<!-- families -->\n", "<!-- /families -->")


@dataclass(frozen=True)
class Service:
    """The result of loading one family from disk."""

    family: str
    how: str
    """How the family is served: packed, loop, refused, or absent (transformers itself cannot build,
    load or run it)."""
    reason: str = ""
    """Why the family is not packed; empty if it is."""
    no_lens: str = ""
    """Why there is no logit lens; empty if there is one."""
    gap: float = 0.0
    """Largest difference of logits to plain transformers, in standard deviations of its logits."""
    wrong: int = 0
    """Greedy tokens, of 36, that plain transformers would not have written."""


def save(family: str, folder: Path) -> None:
    """Save a seeded random model of a family with a tokenizer, in the layout of a hub folder."""
    torch.manual_seed(0)
    config = tiny_config(family)
    hf = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for name, weights in hf.named_parameters():
        # larger weights, except exponents of a state's decay, make an edit move the logits visibly
        if weights.dim() > 1 and "A_log" not in name:
            weights.data.mul_(4)
        elif weights.is_floating_point():
            # noise, so that no choice of keys or experts depends on a tie
            weights.data.add_(torch.randn_like(weights) / 20)
    hf.save_pretrained(folder)
    if type(hf.config) is not type(config):
        config.save_pretrained(folder)  # that of the whole, as checkpoints of several parts have it
    byte_tokenizer().save_pretrained(folder)


def texts() -> list[tuple[int, ...]]:
    """Token ids that share prefixes of several lengths, up to 49."""
    draw = random.Random(0)
    trunk = draw.choices(range(3, 256), k=40)
    return [
        tuple(trunk[:shared] + draw.choices(range(3, 256), k=own))
        for shared, own in ((40, 6), (40, 9), (20, 15), (33, 1), (5, 4))
    ]


def service(family: str, folder: Path, device: str = "cpu") -> Service:
    """Save a family to an empty folder, load it from there, and compare."""
    try:
        save(family, folder)
        plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
        plain.to(device)  # pyright: ignore
        expected = [plain_logits(plain, ids) for ids in texts()]
    # any error here is one of transformers, not ours
    except Exception as error:
        return Service(family, "absent", f"{type(error).__name__}: {words(error)}")
    try:
        model = interp.load(str(folder), dtype="float32", device=device)
    except UserError as error:
        return Service(family, "refused", words(error).replace(f"{folder}: ", ""))
    how = "packed" if model.supports_tree else "loop"
    return Service(
        family,
        how,
        model.tree_reason or "",
        model.structure.unknown or "",
        max(logits_gap(model, expected), likelihood_gap(model, expected), lens_gap(model, expected))
        / float(expected[0].std()),
        wrong_tokens(model, plain),
    )


@torch.inference_mode()
def plain_logits(plain: PreTrainedModel, ids: Sequence[int]) -> Tensor:
    """(P, V) logits at every position, by plain transformers."""
    return plain(input_ids=torch.tensor([ids], device=plain.device)).logits[0].cpu()


def logits_gap(model: interp.Model, expected: Sequence[Tensor]) -> float:
    run = model.run([interp.Branch(ids, ask=tuple(range(len(ids)))) for ids in texts()])
    pairs = zip(run.branches, expected, strict=True)
    return max(float((read.logits.cpu() - logits).abs().max()) for read, logits in pairs)


def likelihood_gap(model: interp.Model, expected: Sequence[Tensor]) -> float:
    sequences = model.likelihood(texts(), [1] * len(texts())).sequences
    gaps = []
    for own, ids, logits in zip(sequences, texts(), expected, strict=True):
        following = torch.tensor(ids[1:])[:, None]
        plain = logits[:-1].double().log_softmax(-1).gather(1, following)[:, 0]
        gaps.append(float((torch.from_numpy(own.log_probs) - plain).abs().max()))
    return max(gaps)


def lens_gap(model: interp.Model, expected: Sequence[Tensor]) -> float:
    if model.structure.unknown is not None:
        return 0.0
    (read,) = model.run([interp.Branch(texts()[0])], residuals=True).branches
    assert read.residuals is not None
    return float((model.lens(read.residuals[:, -1]).cpu() - expected[0][-1:]).abs().max())


@torch.inference_mode()
def wrong_tokens(model: interp.Model, plain: PreTrainedModel) -> int:
    """Greedy tokens after prompts of three lengths that transformers would not have written.

    They are compared with its `generate`, or, where that disagrees with the model's own forwards
    (Moshi), with those.
    """
    prompts = [texts()[0][:9], texts()[2], texts()[4][:3]]
    options = GenerationConfig(max_new_tokens=12, do_sample=False)
    plain.generation_config = GenerationConfig()
    wrong = 0
    for prompt, written in zip(prompts, model.generate(prompts, 12), strict=True):
        ids = torch.tensor([prompt], device=plain.device)
        out = plain.generate(ids, attention_mask=torch.ones_like(ids), generation_config=options)  # pyright: ignore
        if list(written.ids) == out[0, len(prompt) :].tolist()[: len(written.ids)]:
            continue
        whole = [*prompt, *written.ids]
        for i in range(len(prompt), len(whole)):
            logits = plain_logits(plain, whole[:i])[-1]
            wrong += bool(logits.max() - logits[whole[i]] > 1e-3 * logits.std())
    return wrong


def words(error: Exception) -> str:
    """An error in one line, cut where it becomes a list of arguments."""
    line = " ".join(str(error).split()) or "no message"
    return line if len(line) <= 200 else line[:200].rsplit(" ", 1)[0] + " …"


def sweep(families: Sequence[str], device: str) -> list[Service]:
    services = []
    for family in families:
        with tempfile.TemporaryDirectory() as folder:
            services.append(service(family, Path(folder), device))
        print(services[-1], flush=True)
    return services


def table(services: Sequence[Service]) -> str:
    """The families by how they are served and why, as Markdown."""
    groups: dict[tuple[str, str], list[Service]] = {}
    for one in services:
        why = "; ".join(x for x in (general(one.reason, one), general(one.no_lens, one)) if x)
        groups.setdefault((one.how, why), []).append(one)
    order = ["packed", "loop", "refused", "absent"]
    lines = ["| served | why not more | families | largest gap |", "|---|---|---|---|"]
    for (how, why), members in sorted(groups.items(), key=lambda g: (order.index(g[0][0]), g[0])):
        gap = f"{max(m.gap for m in members):.0e}" if how in ("packed", "loop") else ""
        names = ", ".join(f"`{m.family}`" for m in members)
        lines.append(f"| {how} | {why} | {names} | {gap} |")
    return "\n".join(lines) + "\n"


def general(reason: str, one: Service) -> str:
    """`reason` without the numbers and names that belong to one family."""
    reason = re.sub(r"\(max [^)]*\)| \(first: \d+\)|; set is_decoder.*", "", reason).strip()
    reason = re.sub(r"(packed runs differ from plain transformers):[^;]*", r"\1", reason)
    reason = re.sub(r"\b\w+(ForCausalLM|LMHeadModel|ForConditionalGeneration)\b", "it", reason)
    reason = re.sub(r"\d+ of \d+ layers of [\w-]+", "some of its layers", reason)
    reason = re.sub(r"\d+ times in \d+ layers", "more than once a layer", reason)
    reason = re.sub(r"\b(of )?\d+ layers( of [\w-]+)?", r"\1its layers", reason).replace("|", "\\|")
    return re.sub(rf"\b{one.family.removesuffix('_text')}(_text)?\b", "it", reason)


def write(document: Path, services: Sequence[Service]) -> None:
    """Put the table into a document, between its marks."""
    before, rest = document.read_text().split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    document.write_text(before + MARKS[0] + table(services) + MARKS[1] + after)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--write", type=Path)
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    services = sweep(arguments.families, arguments.device)
    print(table(services))
    if arguments.write:
        write(arguments.write, services)


if __name__ == "__main__":
    main()
