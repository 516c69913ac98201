"""Benchmark of the readers of answers: how often they read what a text states.

`python benchmarks/answers.py --data FOLDER --clones FOLDER` reads real texts of people and models
with the readers that runs use, and with math-verify, and holds both against labels. After each
source it writes its counts, and the keys of up to 20 texts that a reader read otherwise, into
`benchmarks/results/answers.json`, and the table into `answers.md` beside it. What is absent is left
out, and the reason printed; it ends with an error where more than one in 1,000 is read otherwise.

- `--data` has the files of data sets: `gsm8k/test.jsonl`, `prm800k/subset.jsonl`,
  `aqua/test.jsonl`.
- `--clones` has clones of public repositories that keep chains of models (`answer_texts.py` names
  files, `results/answers.json` the commits), each under its own name: `git clone --bare URL NAME`.
- A label of a repository is what its own code extracted. Texts on which ours and the label differ
  were read by eye, with both at hand: `answers_judged.json` has what they state, by source and
  key, and replaces the label. Where both agree, nobody looked.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import re
import string
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import sympy
from answer_texts import Absent, Text, Texts, pairs, sources
from math_verify import (
    ExprExtractionConfig,
    LatexExtractionConfig,
    StringExtractionConfig,
    parse,
    verify,
)

from faithscope.experiments.analysis.textual import to_markdown
from faithscope.experiments.data.answers import last_label, last_number
from faithscope.experiments.data.choices import last_choice
from faithscope.experiments.data.numbers import canonical_number

HERE = Path(__file__).parent
TABLE = HERE / "results/answers.md"
LETTERS = string.ascii_uppercase
MARKS = "<!-- answers -->", "<!-- end of answers -->"
PAIRS = "math-verify's own tests, pairs"
EXAMPLES = 20
BOUND = 1e-3
"""Share of texts that state an answer of which a reader may read another one."""


@dataclass
class Counts:
    """What a reader made of the texts of one source."""

    rows: int = 0
    """Texts that state an answer."""
    agreed: int = 0
    wrong: int = 0
    none: int = 0
    unstated: int = 0
    """Texts that state no answer of the kind."""
    made_up: int = 0
    """Of these, texts in which one is read."""
    seconds: float = 0.0
    """Processor time of the reader."""
    examples: list[dict[str, Any]] = field(default_factory=list)

    def take(self, text: Text, read: str | None, agrees: bool) -> bool:
        """Counts a text; returns whether another answer than the stated one was read."""
        if text.label is None:
            self.unstated += 1
            self.made_up += read is not None
            return False
        wrong = read is not None and not agrees
        self.rows += 1
        self.agreed += agrees
        self.none += read is None
        self.wrong += wrong
        # keys, not texts: they are the repositories'
        if wrong and len(self.examples) < EXAMPLES:
            self.examples.append({"key": text.key, "read": read, "states": text.label})
        return wrong


def ours(text: Text) -> str | None:
    if text.kind == "number":
        return last_number(text.text)
    if text.kind == "choice":
        return last_choice(text.text, len(text.options), text.options)
    return last_label(text.text, text.options)


def agrees(text: Text, read: str | None) -> bool:
    if read is None or text.label is None:
        return False
    if text.kind == "number":
        return Fraction(read) == Fraction(text.label)
    return read == text.label


def theirs(text: Text) -> tuple[str | None, bool]:
    """What math-verify reads, as text, and whether it holds the label for equal."""
    gold: list[Any] = []
    if text.kind == "number":
        found = parse(text.text, [LatexExtractionConfig(), ExprExtractionConfig()])
        gold += parse(f"${text.label}$") if text.label else []
    else:
        names = LETTERS[: len(text.options)] if text.kind == "choice" else text.options
        found = parse(text.text, [StringExtractionConfig(strings=tuple(names))])
        gold += [text.label.lower()] if text.label else []
    return (str(found[0]) if found else None), bool(found and gold and verify(gold, found))


def value(label: str) -> str | None:
    """The rational number that a label is, by rule or by math-verify; None if it is none."""
    plain = label.replace(",", "").strip(" $.%")
    if re.fullmatch(r"-?\d*\.?\d+", plain):
        return str(Fraction(plain))
    found = parse(f"${label}$")
    exact = found[0] if found else None
    if isinstance(exact, (sympy.Rational, sympy.Float)):
        return str(Fraction(str(exact)))
    return None


def judged(path: Path) -> dict[tuple[str, str], str | None]:
    """(source, key) -> what the text states, as read by eye."""
    held = json.loads(path.read_text(encoding="utf-8"))
    return {(source, key): states for source, of in held.items() for key, states in of.items()}


def labelled(
    name: str, texts: Texts, by_eye: Mapping[tuple[str, str], str | None]
) -> Iterator[Text]:
    """Texts with the label as a reader should give it."""
    for text in texts.rows:
        label = text.label
        if (name, text.key) in by_eye:
            label = by_eye[name, text.key]
        elif label is not None and text.kind == "number":
            label = value(label)
        elif text.kind == "choice" and (label or "-") not in LETTERS[: len(text.options)]:
            label = None
        yield dataclasses.replace(text, label=label)


@dataclass
class Source:
    """Counts of one source."""

    at: str
    """File, or repository, commit and path."""
    ours: Counts = field(default_factory=Counts)
    ours_on_these: Counts = field(default_factory=Counts)
    """Ours on the texts that math-verify read, too."""
    theirs: Counts = field(default_factory=Counts)
    failed: list[Text] = field(default_factory=list)
    """Texts that ours read otherwise, or not at all."""


def counted(rows: Sequence[Text], at: str, peer_texts: int) -> Source:
    """Counts of a source; math-verify reads about `peer_texts` of its texts, evenly spaced."""
    source, every = Source(at), max(1, len(rows) // peer_texts) if peer_texts else 0
    for i, text in enumerate(rows):
        began = time.process_time()
        read = ours(text)
        seconds = time.process_time() - began
        equal, these = agrees(text, read), every and i % every == 0
        for counts in (source.ours, source.ours_on_these) if these else (source.ours,):
            counts.seconds += seconds
            other = counts.take(text, read, equal)
        if other or (text.label is not None and read is None):
            source.failed.append(text)
        if these:
            began = time.process_time()
            found, equal = theirs(text)
            source.theirs.seconds += time.process_time() - began
            source.theirs.take(text, found, equal)
    return source


def of_pairs(
    rows: Sequence[tuple[str, str, bool]], by_eye: Mapping[tuple[str, str], str | None]
) -> Counts:
    """Golds and replies of math-verify's tests. Two that are not both numbers are not compared."""
    counts = Counts()
    for i, (gold, reply, equal) in enumerate(rows):
        began = time.process_time()
        one, other = canonical_number(gold), last_number(reply)
        counts.seconds += time.process_time() - began
        same = "equal" if one == other else "different"
        read = same if one is not None and other is not None else None
        states = by_eye.get((PAIRS, str(i)), "equal" if equal else "different")
        counts.take(Text(str(i), "label", reply, states), read, read == states)
    return counts


def row(name: str, held: Mapping[str, Any]) -> dict[str, Any]:
    """A line of the table, of the counts of a source as the results have them."""
    ours, there, theirs = (held[k] for k in ("ours", "ours_on_these", "theirs"))
    ms = [1000 * c["seconds"] / max(1, c["rows"] + c["unstated"]) for c in (ours, theirs)]
    return {
        "texts": name,
        "state an answer": ours["rows"],
        "other read": ours["wrong"],
        "none": ours["none"],
        "state none": ours["unstated"],
        "read": ours["made_up"],
        "math-verify on": theirs["rows"],
        "other": theirs["wrong"],
        "none ": theirs["none"],
        "ours there": f"{there['wrong']}, {there['none']}",
        "ms a text": f"{ms[0]:.1f}, {ms[1]:.1f}",
    }


def merge(done: Mapping[str, Source], order: Sequence[str]) -> dict[str, Any]:
    """Puts sources among the results; returns all, in order."""
    path = HERE / "results/answers.json"
    held = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    held |= {n: {k: v for k, v in asdict(s).items() if k != "failed"} for n, s in done.items()}
    held = {name: held[name] for name in order if name in held}
    path.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    table = pd.DataFrame([row(name, of) for name, of in held.items()]).astype(str)
    before, _, rest = TABLE.read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    page = f"{before}{MARKS[0]}\n{to_markdown(table)}\n{MARKS[1]}{after}"
    TABLE.write_text(page, encoding="utf-8")
    return held


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of data sets")
    parser.add_argument("--clones", type=Path, default=Path("clones"), help="folder of clones")
    parser.add_argument("--failures", type=Path, help="file for texts that ours reads otherwise")
    parser.add_argument("--peer-texts", type=int, default=500, help="of a source; 0: none")
    parser.add_argument("--texts", type=int, default=2000, help="most of a source, evenly spaced")
    parser.add_argument("--only", default="", help="sources whose name matches; others stay")
    args = parser.parse_args()
    logging.disable()
    by_eye = judged(HERE / "answers_judged.json")
    loads = {**dict(sources(args.data, args.clones)), PAIRS: lambda: pairs(args.clones)}
    held: dict[str, Any] = {}
    for name, load in loads.items():
        if not re.search(args.only, name):
            continue
        try:
            texts = load()
        except Absent as why:
            print(f"{name}: left out, {why}", flush=True)
            continue
        if isinstance(texts, Texts):
            rows = list(labelled(name, texts, by_eye))
            rows = rows[:: -(-len(rows) // args.texts)]
            source = counted(rows, texts.at, args.peer_texts)
        else:
            source = Source(texts[1], of_pairs(texts[0], by_eye))
        held = merge({name: source}, list(loads))
        print(row(name, held[name]), flush=True)
        if args.failures:
            with args.failures.open("a", encoding="utf-8") as file:
                for text in source.failed:
                    of = {"source": name, **asdict(text), "read": ours(text)}
                    file.write(json.dumps(of, ensure_ascii=False) + "\n")
    of = [counts["ours"] for name, counts in held.items() if not name.endswith("removed")]
    wrong, stated = sum(c["wrong"] for c in of), sum(c["rows"] for c in of)
    print(f"of {stated} texts that state an answer, {wrong} are read otherwise")
    if wrong > BOUND * stated:
        sys.exit(f"more than {BOUND:.1%}")


if __name__ == "__main__":
    main()
