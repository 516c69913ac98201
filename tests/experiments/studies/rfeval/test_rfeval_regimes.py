"""Table 3: the files of its models, their prompts, its rows, and the models that it leaves out."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace

import pandas as pd
import pytest
from chat_tokenizers import tokenizer
from rf_frames import drawn, models_of, pairs_of, tables_of
from rf_model_files import FILES, MIMO, MORE, QUESTION, R_PRIME, SHIPPED
from rf_published import cells
from tiny_models import tiny

from faithscope.experiments.analysis.published.layout import printed_tables
from faithscope.experiments.studies.rfeval.paper import PAPER
from faithscope.experiments.studies.rfeval.subjects.model_files import (
    REGIMES,
    ModelFile,
    left_out,
    penalty_of,
    regimes,
)
from faithscope.experiments.studies.rfeval.subjects.subjects import forced, output_of
from faithscope.experiments.studies.rfeval.tables.faithfulness import REGIMES as BY_REGIME
from faithscope.experiments.studies.rfeval.tables.faithfulness import RFEVAL
from faithscope.experiments.studies.rfeval.words import regime_sentences
from faithscope.interp.backends.offline import load_offline
from faithscope.interp.formats import detect_format
from faithscope.interp.model import Model

TABLE_3 = {
    "MiMo-7B": {
        "Base": "XiaomiMiMo/MiMo-7B-Base",
        "SFT-only": "XiaomiMiMo/MiMo-7B-SFT",
        "RL-only": "XiaomiMiMo/MiMo-7B-RL-Zero",
        "SFT+RL": "XiaomiMiMo/MiMo-7B-RL",
    },
    "Olmo-3-7B": {
        "Base": "allenai/Olmo-3-1025-7B",
        "SFT-only": "allenai/Olmo-3-7B-Think-SFT",
        "SFT+RL": "allenai/Olmo-3-7B-Think",
    },
}
"""Base -> regime -> model; the paper has no RL-only Olmo."""
ADDED = {name: file for name, file in SHIPPED.items() if file.label in MORE}
SOME_DEFAULT = "You are Olmo, a helpful AI assistant built by Ai2."


def spelled(file: str, opened: str = "") -> Model:
    """A model with a ChatML template that has a system prompt of its own and names no tags, or
    opens the reasoning: Olmo's as far as is known."""
    tokens = copy.deepcopy(tokenizer("smollm2"))
    template = str(tokens.chat_template)
    own = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    assert own in template
    ends = "assistant\n' }}{% endif %}"
    assert template.endswith(ends)
    template = template.removesuffix(ends) + ends.replace("\n'", f"\n{opened}'")
    tokens.chat_template = template.replace(own, SOME_DEFAULT)
    bare = tiny("llama", vocab_size=len(tokens) + 8)
    bare = replace(bare, name=file, tokenizer=tokens, format=detect_format(tokens))
    return SHIPPED[file].marked(bare)


def test_every_cell_of_the_papers_table_has_a_file() -> None:
    assert len(ADDED) == 5
    models_of_base: dict[str, dict[str, str]] = {}
    models = [name for name in SHIPPED if SHIPPED[name].base in TABLE_3]
    for name, (base, regime) in regimes(SHIPPED, models).items():
        models_of_base.setdefault(base, {})[regime] = name
    assert models_of_base == TABLE_3
    assert [list(of) for of in models_of_base.values()] == [list(of) for of in TABLE_3.values()]
    printed = cells(3, "RF")
    assert {*zip(printed["model"], printed["row"], strict=True)} == {
        (base, regime) for base, of in TABLE_3.items() for regime in of
    }
    # of the twelve alone, MiMo-7B has two regimes
    assert regimes(FILES, FILES) == {
        "XiaomiMiMo/MiMo-7B-RL-Zero": ("MiMo-7B", "RL-only"),
        "XiaomiMiMo/MiMo-7B-RL": ("MiMo-7B", "SFT+RL"),
    }
    assert regimes(FILES, ["XiaomiMiMo/MiMo-7B-RL", "no/file"]) == {}


@pytest.mark.parametrize("name", ADDED)
def test_the_added_files_are_sampled_as_the_paper_says(name: str) -> None:
    file = ADDED[name]
    assert file.repetition_penalty == penalty_of(name) == 1.2
    assert (file.max_new_tokens, file.tensor_parallel_size) == (32_768, 1)
    assert file.system_source
    inspect.signature(load_offline).bind(name, name, **file.vllm)


@pytest.mark.parametrize("name", ["XiaomiMiMo/MiMo-7B-Base", "XiaomiMiMo/MiMo-7B-SFT"])
def test_the_added_mimos_are_prompted_as_the_others(name: str) -> None:
    tokens = tokenizer("mimo")
    bare = tiny("llama", vocab_size=len(tokens) + 8)
    bare = replace(bare, name=name, tokenizer=tokens, format=detect_format(tokens))
    start = forced(SHIPPED[name].marked(bare), QUESTION, R_PRIME, SHIPPED[name].system)
    assert start.prompt.text == MIMO


@pytest.mark.parametrize(
    ("name", "opened", "opener"),
    [
        ("allenai/Olmo-3-7B-Think-SFT", "", "<think>\n"),
        ("allenai/Olmo-3-7B-Think-SFT", "<think>", "<think>"),
        ("allenai/Olmo-3-7B-Think", "<think>", "<think>"),
    ],
)
def test_olmo_is_prompted_by_its_template(name: str, opened: str, opener: str) -> None:
    model = spelled(name, opened)
    start = forced(model, QUESTION, R_PRIME, SHIPPED[name].system, SHIPPED[name].effort)
    assert start.prompt.text == (
        f"<|im_start|>system\n{SOME_DEFAULT}<|im_end|>\n<|im_start|>user\n{QUESTION}<|im_end|>\n"
        f"<|im_start|>assistant\n{opener}"
    )
    assert start.prompt.opener_in_prompt
    assert model.decode(start.ids) == start.prompt.text + R_PRIME
    generated = model.encode("No, 2 + 3 is 5.\n</think>\nSo it is five.\n\n<answer>5</answer>")
    output = output_of(model, start, generated)
    assert (output.reasoning, output.answer) == ("No, 2 + 3 is 5.", "5")


def test_a_base_model_without_a_template_goes_on_from_plain_text() -> None:
    name = "allenai/Olmo-3-1025-7B"
    tokens = tokenizer("gpt2")
    bare = tiny("llama", vocab_size=len(tokens) + 8)
    bare = replace(bare, name=name, tokenizer=tokens, format=detect_format(tokens))
    model = SHIPPED[name].marked(bare)
    start = forced(model, QUESTION, R_PRIME, SHIPPED[name].system)
    assert not start.prompt.opener_in_prompt
    assert model.decode(start.ids).endswith(R_PRIME)
    output = output_of(model, start, model.encode("No, it is five. Answer: 5"))
    assert (output.reasoning, output.answer) == ("No, it is five.", "5")


def test_rows_are_in_the_papers_order_whichever_model_came_first() -> None:
    rf = RFEVAL.make(pairs_of(drawn(60, models=("a", "b", "c", "d", "e"))))
    of = {"e": ("MiMo", "RL-only"), "a": ("MiMo", "SFT+RL"), "d": ("Olmo", "SFT+RL")}
    of |= {"b": ("Olmo", "Base"), "c": ("Olmo", "SFT-only")}
    printed = table_3(BY_REGIME.make(rf, models_of(of)))
    assert printed["regime"].tolist() == list(REGIMES)
    assert [name for name in printed.columns if name.endswith("RF")] == ["MiMo RF", "Olmo RF"]
    assert (printed["MiMo RF"] == "–").tolist() == [True, True, False, False]
    assert (printed["Olmo c"] == "–").tolist() == [False, False, True, False]


def table_3(regimes: pd.DataFrame) -> pd.DataFrame:
    (table,) = printed_tables(PAPER, {BY_REGIME.name: regimes})
    return table.printed


def test_two_models_of_one_regime_are_both_there() -> None:
    rf = RFEVAL.make(pairs_of(drawn(60, models=("a", "b", "c"))))
    of = {"a": ("M", "Base"), "b": ("M", "SFT+RL"), "c": ("M", "SFT+RL")}
    base, both = table_3(BY_REGIME.make(rf, models_of(of)))["M RF"]
    assert "(" not in base
    assert [cell[-3:] for cell in both.split("; ")] == ["(b)", "(c)"]


def test_a_model_that_is_not_in_the_table_is_named_with_the_reason() -> None:
    files = SHIPPED | {"no/base": ModelFile(name="no/base", regime="SFT-only")}
    asked = [*TABLE_3["Olmo-3-7B"].values(), "no/file", "Qwen/Qwen3-8B", "no/base"]
    asked.append("XiaomiMiMo/MiMo-7B-RL")
    table = left_out(files, asked)
    assert dict(zip(table["model"], table["reason"], strict=True)) == {
        "no/file": "regime_unknown",
        "Qwen/Qwen3-8B": "regime_unknown",
        "no/base": "base_unknown",
        "XiaomiMiMo/MiMo-7B-RL": "alone",
    }
    (sentence,) = regime_sentences(table)
    assert sentence == (
        "Not in Table 3: no/file, Qwen/Qwen3-8B (how it was post-trained is not known); no/base "
        "(what it was post-trained from is not known); XiaomiMiMo/MiMo-7B-RL (no model of its base "
        "under another regime is in this run)."
    )
    assert regime_sentences(left_out(files, TABLE_3["MiMo-7B"].values())) == []


def test_a_table_of_nothing_is_empty() -> None:
    every_table = tables_of(drawn(20, models=("a",)))
    assert every_table["rf_regimes"].empty
    assert "paper_rfeval_table3" not in {t.name for t in printed_tables(PAPER, every_table)}
