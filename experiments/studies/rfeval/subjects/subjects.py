"""A model that is measured: its file and the run's config together, and r′ prefilled as its own
reasoning (RFEval, C.2).

Token in, token out: the conversation is rendered up to the reasoning opener, the ids of r′ stand
after it as the model's own tokens, and what is generated after them is cut between tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from faithscope.experiments.config.api import API, DECIDES, DECIDES_API, ApiSection
from faithscope.experiments.engine.models.fingerprint import fingerprint
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.config_sections import MULTI_TURN, PREFIX, Framing
from faithscope.experiments.studies.rfeval.subjects.model_files import (
    ModelFile,
    model_files,
    profile_of,
)
from faithscope.experiments.studies.rfeval.subjects.parsing import Output, components, parse_output
from faithscope.interp.documents import json_of
from faithscope.interp.errors import UserError
from faithscope.interp.prompts import Prompt
from faithscope.interp.responses import split_response

MAX_NEW_TOKENS = 32_768
"""Most tokens of an output (RFEval, appendix C.1)."""
HOW_FAST = ("gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enforce_eager")
"""Options of `vllm.LLM` that decide nothing of what is written; they may be changed where memory is
short."""
HOW_FAST += ("swap_space", "cpu_offload_gb", "disable_log_stats")


class Subject(ModelFile):
    """Settings by which one model is loaded, prompted and sampled: its file, and a run's config
    over it."""

    max_new_tokens: int = MAX_NEW_TOKENS
    device: str
    backend: Literal["here", "vllm", "vllm-server", "api"]
    framing: Framing
    asked: ApiSection | None
    """API settings of a model behind an API, for which nothing else but its system prompt holds."""

    @property
    def thinking(self) -> bool | None:
        """Whether the model thinks is left to its prompt (None); `forced` opens the reasoning."""
        return None

    @property
    def for_vllm(self) -> dict[str, Any]:
        """Keyword arguments of `vllm.LLM`, the file's own last."""
        sizes = ("tensor_parallel_size", "max_model_len")
        return {key: getattr(self, key) for key in sizes} | self.vllm

    def decides(self, batch_size: int) -> dict[str, Any]:
        """All settings that decide the model's outputs, without the items."""
        if self.asked is not None:
            how = self.asked.model_dump(mode="json")
            return {
                "model": self.name,
                "framing": self.framing,
                "system": self.system,
                "api": {name: how[name] for name in (*DECIDES, *DECIDES_API)},
            }
        settings: dict[str, Any] = {
            "model": self.name,
            "weights": fingerprint(self.name, self.revision),
            "backend": self.backend,
            "max_new_tokens": self.max_new_tokens,
            "repetition_penalty": self.repetition_penalty,
            "system": self.system,
            "effort": self.effort,
            "marks": self.marks,
            "template": self.template,
            "dtype": self.dtype,
            "revision": self.revision,
            "quantize": self.quantize,
            "framing": self.framing,
        }
        if self.backend == "here":
            return settings | {"batch_size": batch_size, "device_map": self.device_map}
        if self.backend == "vllm":
            settings["vllm"] = {k: v for k, v in self.vllm.items() if k not in HOW_FAST}
        return settings | {"max_model_len": self.max_model_len}

    def kept(self) -> dict[str, Any]:
        """Settings that a run folder keeps for its tables and its reader."""
        of_file = ("label", "family", "base", "regime", "system", "system_source", "effort")
        return {name: getattr(self, name) for name in of_file} | {
            "max_new_tokens": self.max_new_tokens,
            "repetition_penalty": None if self.asked else self.repetition_penalty,
            "backend": self.backend,
            "framing": self.framing,
        }


def _model_type(name: str) -> str:
    """Reads the type of a model off the config of its folder; "" where the name is no folder."""
    path = Path(name).expanduser() / "config.json"
    if name.startswith(API) or not path.is_file():
        return ""
    try:
        return str(json_of(path.read_bytes())["model_type"])
    except (ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path}: says no model_type ({type(error).__name__}: {error}); get the file again"
        ) from error


def subjects_of(config: RFEvalConfig) -> dict[str, Subject]:
    """The models of a run by name, in its order.

    Raises:
        UserError: the folder of model files, or a model's config.json, cannot be used.
    """
    m, g = config.model, config.generate
    files = {} if m.profiles is None else model_files(m.profiles)
    subjects = {}
    given = {
        key: value
        for key, value in (*m, *g)
        if key in ModelFile.model_fields and key != "name" and value not in (None, "auto")
    }
    for name in m.name:
        file = profile_of(name, files, _model_type(name))
        asked = None
        if name.startswith(API):
            effort = config.api.reasoning_effort or file.effort
            asked = config.api.model_copy(update={"reasoning_effort": effort})
        most = g.max_new_tokens or file.max_new_tokens or MAX_NEW_TOKENS
        about_run = {
            "max_new_tokens": most if asked is None else asked.max_tokens,
            "device": m.device,
            "backend": g.backend if asked is None else "api",
            "framing": config.framing_of(name),
            "asked": asked,
        }
        subjects[name] = Subject.model_validate(dict(file) | given | about_run)
    return subjects


if TYPE_CHECKING:
    from faithscope.interp.language import Speaks

CONTINUE = "Continue the reasoning."
"""Words of the user after an r′ that can only be quoted as an earlier turn (appendix G.2)."""


@dataclass(frozen=True)
class Forced:
    """A conversation that a model goes on from, inside its own reasoning."""

    prompt: Prompt
    """The prompt up to the reasoning opener, or, if the family has none, to the assistant's
    turn."""
    r_prime_ids: tuple[int, ...]
    """Ids of r′; none for a baseline, and none if r′ stands in an earlier turn, within `prompt`."""

    @property
    def ids(self) -> tuple[int, ...]:
        """The ids that the model continues."""
        return (*self.prompt.ids, *self.r_prime_ids)


def forced(
    model: Speaks,
    question: str,
    r_prime: str = "",
    system: str | None = None,
    effort: str | None = None,
    framing: Framing = PREFIX,
) -> Forced:
    """The ids of an intervened output's beginning, or without r′ of a baseline's.

    r′ is encoded by itself, as text: control tokens that it spells are none. With
    framing `multi_turn` it is an earlier turn of the conversation, as for a closed model, to
    compare that with prefilling (G.2).

    Args:
        system, effort: of the model's file (`experiments.studies.rfeval.subjects.model_files`).

    Raises:
        UserError: the conversation cannot be rendered (`interp.prompts.render`), or the chat
            template leaves out or alters the system prompt, or what is quoted.
        ValueError: the tokenizer does not give r′ back word for word.
    """
    quoted = framing == MULTI_TURN and r_prime
    turns = multi_turn(question, r_prime) if quoted else question
    prompt = model.prompt(turns, system, True if model.format.marks else None, effort)
    if system and system.strip() not in prompt.text:
        # templates take switches out of it: Nemotron Super 1.5's reads one in `</think>`
        raise UserError(
            f"{model.name}: its chat template alters the system prompt (it begins "
            f"{system[:40]!r}); give another `system` or `template` in the model's file, or null"
        )
    if quoted and r_prime.strip() not in prompt.text:
        # templates take what looks like reasoning out of earlier turns
        raise UserError(
            f"{model.name}: its chat template alters r′ as an earlier turn (it begins "
            f"{r_prime[:40]!r}); take generate.framing prefix, or leave this item out"
        )
    ids = () if quoted or not r_prime else tuple(model.encode(r_prime))
    if ids and "".join(model.pieces((*prompt.ids, *ids))[len(prompt.ids) :]) != r_prime:
        raise ValueError(
            f"{model.name}: its tokenizer does not read r′ back as it was written (it begins "
            f"{r_prime[:40]!r}); use another model for these items, or leave them out"
        )
    return Forced(prompt, ids)


def multi_turn(question: str, r_prime: str) -> list[dict[str, str]]:
    """The conversation of a closed model that cannot be prefix-forced: an approximation (G.2)."""
    return [
        {"role": "user", "content": question},
        {"role": "assistant", "content": r_prime},
        {"role": "user", "content": CONTINUE},
    ]


def output_of(
    model: Speaks,
    start: Forced,
    generated: Sequence[int],
    finished: bool = True,
    paper_compat: bool = False,
) -> Output:
    """The components of what was generated, without r′.

    Args:
        generated: the ids after `start.ids`, without the token that ended them.
        finished: False where the token limit ended it.
    """
    fmt = start.prompt.format
    if not fmt.marks:
        return parse_output(model.decode(generated), "unmarked", finished, paper_compat)
    cut = split_response(model.tokenizer, fmt, generated)
    reasoning, tail = model.decode(cut.reasoning_ids), model.decode(cut.tail_ids)
    if not cut.closed:
        return parse_output(reasoning, "opened", finished, paper_compat)
    return components(reasoning, tail.removeprefix(fmt.closer), finished, paper_compat)
