"""Configs, numbers, data, models and templates that are refused, and what the refusal names."""

from __future__ import annotations

import json
from typing import Any

import broken_models as broken

from faithscope.experiments.data.tasks.sources.rows import MAX_CHARS

CONFIGS = [
    ("name: [t\n", ["x.yaml", "line"]),
    ("name: t\n\tseed: 1\n", ["x.yaml", "line 2"]),
    ("seed: one", ["seed: must be a whole number, got 'one'"]),
    ("report: 7", ["report: must be a mapping (key: value), got 7"]),
    ("slrc: {shufles: 3}", ["unknown key 'shufles'; did you mean 'shuffles'?"]),
    ("model: {name: planted:fathful}", ["unknown model 'planted:fathful'; did you mean"]),
    ("tasks: [plantd]", ["unknown task 'plantd'; did you mean 'planted'?"]),
    ("probes: [slcr]", ["unknown probe 'slcr'; did you mean 'slrc'?"]),
    ("model: {name: /nowhere/model}", ["no such file or folder: '/nowhere/model'"]),
]

MODELS = [
    (broken.truncated, "cannot be read: SafetensorError: "),
    (lambda f: broken.garbled(f, "model.safetensors"), "cannot be read: SafetensorError: "),
    (lambda f: broken.garbled(f, "config.json"), "cannot be read: "),
    (lambda f: broken.garbled(f, "tokenizer.json"), "cannot be read: "),
    (broken.without_a_layer, "lacks 9 weights that LlamaForCausalLM has (first: model.layers"),
    (broken.with_a_larger_tokenizer, "the tokenizer has 263 tokens but the model embeds 256"),
    (broken.garbage_gguf, "not a GGUF file that transformers can read"),
    (broken.not_gguf, "not a GGUF file that transformers can read"),
]

BOMB = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))

TEXTS = [
    ("a: " + "[" * 5_000 + "]" * 5_000, "line 1: lists or objects are nested more than 100 deep"),
    (BOMB, "its aliases make more than 10"),
    ("a: &a\n  b: *a\n", "recursive"),
    ("a: \x1b", "not YAML"),
]

OVERRIDES = ["\x1b", "[" * 5_000 + "]" * 5_000, "&a [*a]"]

NUMBERS = [
    (["--shard", f"1/{'9' * 5000}"], "--shard 1/9999"),
    (["--set", "report.bootstrap=1000000000000"], "report.bootstrap: must be at most"),
    (["--set", f"data.limit={10**22}"], "data.limit: must be at most"),
    (["--set", f"data.limit={10**9}"], "data.limit: must be at most 1,000,000"),
    (["--set", f"slrc.shuffles={10**9}"], "slrc.shuffles: must be at most 10000"),
    (["--set", f"seed={2**32}"], "seed: must be at most 4294967295"),
    (["--set", "generation.temperature=.inf"], "temperature: must be a finite number"),
    (["--set", "generation.temperature=.nan"], "temperature: must be a finite number"),
]

GOOD = {"id": "a", "question": "Which is a mammal?", "options": ["trout", "otter"], "answer": "B"}


def lines(*rows: Any) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def changed(**changes: Any) -> dict[str, Any]:
    row = GOOD | {"id": "b"} | changes
    return {k: v for k, v in row.items() if v != "absent"}


CASES: dict[str, tuple[str, bytes, tuple[str, ...]]] = {
    "no field": ("jsonl", lines(GOOD, changed(question="absent")),
        ("line 2: no column 'question'; it has id, options, answer",)),
    "null field": ("jsonl", lines(changed(question=None)), ("line 1: no column 'question'",)),
    "empty question": ("jsonl", lines(GOOD, changed(question=" \n")),
        ("line 2: 'question' is empty; fill it, or take the row out",)),
    "question of another type": ("jsonl", lines(changed(question=["a"])),
        ("line 1: 'question' is a list; give a text",)),
    "same id twice": ("jsonl", lines(GOOD, changed(), GOOD),
        ("line 3: id 'a' is that of", "line 1; give each row an id of its own")),
    "one option": ("jsonl", lines(GOOD, changed(options=["otter"], answer="A")),
        ("line 2: has one option ['otter']; give 2 to 26",)),
    "one option in columns": ("csv", b"question,A,B,answer\nWhich?,otter,,A\n",
        ("line 2: has one option ['otter']; give 2 to 26",)),
    "27 options": ("jsonl", lines(changed(options=[str(i) for i in range(27)], answer="5")),
        ("line 1: has 27 options", "give 2 to 26")),
    "empty option": ("jsonl", lines(changed(options=["x", " "], answer="A")),
        ("line 1: option B is empty",)),
    "gold is no option": ("jsonl", lines(GOOD, changed(answer="E")),
        ("line 2: answer 'E' is none of the options A (trout), B (otter); give the letter",)),
    "gold is a position": ("jsonl", lines(changed(answer=1)),
        ("answer '1' is none of the options",)),
    "gold is ambiguous": ("jsonl", lines(changed(options=["B", "A"], answer="A")),
        ("answer 'A' could be any of A, B of the options A (B), B (A); name one",)),
    "gold is a letter with another's text": ("jsonl", lines(changed(answer="A: otter")),
        ("answer 'A: otter' is none of the options",)),
    "gold is no number": ("jsonl", lines(changed(options="absent", answer="Paris")),
        ("answer 'Paris' is not one number that can be read whole; give plain digits",)),
    "gold is several numbers": ("jsonl", lines(changed(options="absent", answer="2 or 3")),
        ("answer '2 or 3' is not one number",)),
    "kind that is none": ("jsonl", lines(changed(kind="essay")),
        ("line 1: kind 'essay' is none of number, label, choice; give one",)),
    "kind without options": ("jsonl", lines(changed(kind="label", options="absent")),
        ("line 1: no column 'options'",)),
    "kind with options": ("jsonl", lines(changed(kind="number", answer=3)),
        ("kind 'number' takes no options",)),
    "labels alike": ("jsonl", lines(changed(kind="label", options=["No", "no"], answer="absent")),
        ("label 'No' is there twice",)),
    "too long": ("jsonl", lines(GOOD, changed(question="x" * 10_000_000)),
        ("line 2: 'question' has 10,000,000 characters, the limit is 1,000,000; shorten it",)),
    "too long in a cell": ("csv", b"question,answer\n" + b"x" * 2_000_000 + b",1\n",
        ("line 2: 'question' has 2,000,000 characters",)),
    "NUL escaped": ("jsonl", lines(changed(question="a\0b")),
        ("line 1: 'question' holds the character '\\x00'; take it out",)),
    "half a surrogate": ("jsonl", b'{"question": "a\\ud800"}\n',
        ("line 1: 'question' holds the character '\\ud800'",)),
    "NUL bytes": ("csv", b"question,answer\nWhat\0?,1\n", ("line 2: holds a NUL byte; save",)),
    "UTF-16": ("csv", "question,answer\nWhat?,1\n".encode("utf-16"), ("line 1: is not UTF-8",)),
    "Latin-1": ("jsonl", lines(GOOD) + b'{"question": "caf\xe9"}\n',
        ("line 2: is not UTF-8", "save the file as UTF-8")),
    "torn line": ("jsonl", lines(GOOD) + b'{"question": "Wh',
        ("line 2: is not JSON", "give one object per line")),
    "nested too deep": ("jsonl", b"[" * 200_000 + b"\n",
        ("line 1: is not JSON (lists or objects are nested more than 100 deep",)),
    "nested too deep in YAML": ("yaml", b"- a: " + b"[" * 200_000,
        ("is no YAML (line 1: lists or objects are nested more than 100 deep; flatten them)",)),
    "nested too deep in YAML without brackets": ("yaml", b"- " * 100_000,
        ("is no YAML (line 1: lists or objects are nested more than 100 deep",)),
    "multiplied by aliases": ("yaml", BOMB.encode(),
        ("is no YAML (its aliases make more than 10",)),
    "nested deeper than data is": ("jsonl",
        lines(GOOD) + b'{"question": "q", "labels": ' + b"[" * 900 + b"]" * 900 + b"}\n",
        ("line 2: holds lists or objects nested more than 100 deep; flatten them",)),
    "nested so in a list": ("json", b'[{"question": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}]",
        ("row 1: holds lists or objects nested more than 100 deep",)),
    "a key twice": ("jsonl", lines(GOOD) + b'{"question": "q", "answer": 1, "answer": 2}\n',
        ("line 2: key 'answer' stands twice in one object; keep one of the two",)),
    "a key twice inside": ("jsonl", b'{"question": "q", "options": {"A": "x", "A": "y"}}\n',
        ("line 1: key 'A' stands twice",)),
    "a key twice in a list": ("json", b'[{"question": "q", "answer": 1},\n\n {"question": "r",\n'
        b'"answer": 1,\n"answer": 2}]', ("line 3: key 'answer' stands twice",)),
    "a key twice in lines of a list's name": ("json", lines(GOOD) + b'{"id": "a", "id": "b"}\n',
        ("line 2: key 'id' stands twice",)),
    "a key twice in a cell": ("csv", b'question,options\nWhich?,"{""A"": ""x"", ""A"": ""y""}"\n',
        ("line 2: 'options': key 'A' stands twice",)),
    "a row that is a list": ("jsonl", lines(GOOD, ["Which?", "A"]),
        ("line 2: is a list; give one object per line",)),
    "a row of a list that is none": ("json", json.dumps([GOOD, 3]).encode(),
        ("row 2: is a int; give a list of objects",)),
    "too many cells": ("csv", b"question,answer\nOne, two?,1\n",
        ("line 2: has 3 cells, the header has 2; quote cells",)),
    "too few cells": ("tsv", b"question\tanswer\nOne\n",
        ("line 2: has 1 cells, the header has 2; write every cell",)),
    "open quote": ("csv", b'question,answer\n"One?,1\n', ("is no CSV", "check its quotes")),
    "a column twice": ("csv", b"question,question\na,b\n",
        ("line 1: column 'question' is there twice",)),
    "empty file": ("jsonl", b"", ("holds no rows; give a file with some",)),
    "blank lines only": ("jsonl", b"\n\n", ("holds no rows",)),
    "empty list": ("json", b"[]", ("holds no rows",)),
    "header only": ("csv", b"question,answer\n", ("holds no rows",)),
    "wrong suffix": ("xlsx", b"PK", ("cannot read '.xlsx'; give one of .jsonl, .json",)),
    "no suffix": ("", b"{}", ("cannot read ''; give one of .jsonl",)),
}  # fmt: skip

ROWS = [
    ("gsm8k", {"question": "q", "answer": "nothing"}, "no number after '####'"),
    ("sst2", {"sentence": "s", "label": 3}, "label 3 is neither of 1/positive"),
    ("sentiment", {"text": "s", "label": ""}, "'label' is empty"),
    ("ag_news", {"text": "t", "label": 4}, "label 4 is none of 0 World, 1 Sports"),
    ("ag_news", {"label": 1}, "no column 'text'; it has label"),
    ("medqa", {"question": "q", "options": {"A": "x"}, "answer_idx": "A"}, "has one option"),
    (
        "medqa",
        {"question": "q", "options": {"A": "x", "B": "y"}, "answer_idx": "C"},
        "answer 'C' is none of the options A (x), B (y)",
    ),
    (
        "commonsense_qa",
        {"question": "q", "choices": {"label": ["A"], "text": ["x", "y"]}, "answerKey": "A"},
        "'choices' has 1 labels and 2 texts; give one of each per option",
    ),
    ("arc_challenge", {"id": "i", "question": "q", "answerKey": "A"}, "no column 'options' or"),
    (
        "gsm8k",
        {"question": "x" * (MAX_CHARS + 1), "answer": "#### 1"},
        "the limit is 1,000,000",
    ),
]

ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}"

TEMPLATES = [
    (ENDLESS + "{% endfor %}{% endfor %}", "end"),
    ("{% for i in range(10 ** 12) %}{% endfor %}", "Range too big"),
    ("{{ 1 // 0 }}", "zero"),
    ("{% include 'other.jinja' %}", "no loader"),
    ("{% import 'other.jinja' as other %}", "no loader"),
    ("{% extends 'other.jinja' %}", "no loader"),
    ("{{ messages.nothing() }}", "nothing"),
    ("{{ raise_exception('not today') }}", "not today"),
    ("{{ messages[0].content + 1 }}", "str"),
    ("{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", "recursion"),
    ("{{ '%2000000000d' % 1 }}{{ '%2000000000d' % 1 }}", "memory"),
    ("{{ 'x' * 10 ** 11 }}", "memory"),
    ("{{ 'x' | center(10 ** 11) }}", "memory"),
    ("{% set ns = namespace(x='x') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}"
     "{% endfor %}{{ ns.x }}", "(memory|end)"),
    ("{{ 'x' * 10 ** 7 }}", "writes 10,000,000 characters"),
    ("Answer:", "leaves out or changes messages.0. .user."),
    ("{% for m in messages if m.role != 'user' %}{{ m.content }}{% endfor %}", "leaves out"),
    ("{{ messages[0].content[:4] }}", "leaves out or changes"),
    ("{{ messages[0].content | upper }}", "leaves out or changes"),
    ("{{ messages[0].content | reverse }}", "leaves out or changes"),
    ("{{ messages[0].content | e | replace('2', 'two') }}", "leaves out or changes"),
]  # fmt: skip
