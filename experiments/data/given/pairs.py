"""Reader of pairs: the chains that were written to one question with and without a cue, or to a
question and to the same question reversed.

A row holds both chains (`cued_reasoning`, or as the field calls it) or one of them (`cued`: true or
false). Each is read as a row of the layout `rows` is, and a cued chain knows the uncued one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from faithscope.experiments.data.given.cells import pattern, text
from faithscope.experiments.data.given.chain import GivenChain, Reader
from faithscope.experiments.data.given.conditions import (
    CONDITION,
    Condition,
    column_of,
    is_of_pairs,
    second_of,
)
from faithscope.experiments.data.given.rows import chain
from faithscope.experiments.data.numbers import canonical_number
from faithscope.experiments.data.tasks.sources.gold import as_answered, by_name
from faithscope.experiments.data.tasks.sources.options import LETTERS, has_options, options_of
from faithscope.experiments.data.tasks.sources.rows import SourceRow, each, flag, folded, has
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.probes.declared_cues import Place

_CUE = ("cue", "cue_name", "cue_place", "cue_above", "cue_target", "cue_mention")
_OF: Mapping[tuple[str, bool], Condition] = {
    ("cued", True): "cued",
    ("cued", False): "uncued",
    ("reversed", True): "reversed",
    ("reversed", False): "forward",
}
_PARTNER: Mapping[str, Condition] = {
    **{"cued": "uncued", "uncued": "cued"},
    **{"reversed": "forward", "forward": "reversed"},
}


def pairs(rows: Sequence[SourceRow]) -> Iterator[GivenChain]:
    """The chains of all pairs, in the order of the file; of a row with two, the plain one first.

    Raises:
        UserError: a chain has no partner, or a cued chain several; a cue has no place, or its
            target is no option; with the row, the column and the remedy.
    """
    chains = [one for of_row in each(rows, lambda row: [*_chains_of(row)]) for one in of_row]
    named = {(one.model, one.dataset, one.id, one.condition, one.cue_name) for one in chains}
    ids = Counter(name[:3] for name in named)
    by_pair: defaultdict[tuple[str, str, str], list[GivenChain]] = defaultdict(list)
    for one in chains:
        by_pair[one.model, one.dataset, one.pair].append(one)
    of_sample = {key: _by_sample(of_pair) for key, of_pair in by_pair.items()}
    for one in chains:
        of_pair = of_sample[one.model, one.dataset, one.pair][one.sample]
        if ids[one.model, one.dataset, one.id] > 1:
            one = replace(one, id=f"{one.id}/{one.cue_name or one.condition}")
        if one.condition == "cued":
            one = _with_partner(one, next(c for c in of_pair if c.condition == "uncued"))
        yield one


def _by_sample(of_pair: Sequence[GivenChain]) -> dict[str | None, list[GivenChain]]:
    """The chains of a pair that are partners, by sample: the cued and the uncued chain of one
    sample, or all cued ones and an uncued one that has no sample. Samples of a question and of its
    reverse have no partners one by one.

    Raises:
        UserError: as `_check_partners`, or a cued chain has no sample where others have one.
    """
    samples = dict.fromkeys(one.sample for one in of_pair if one.sample is not None)
    if not samples or of_pair[0].condition in ("forward", "reversed"):
        _check_partners(of_pair)
        return {key: list(of_pair) for key in (*samples, None)}
    for one in of_pair:
        if one.condition == "cued" and one.sample is None:
            raise UserError(
                f"{one.where}: the cued chain of pair {one.pair[:60]!r} has no 'sample', and "
                "others of the pair have one; number all of them"
            )
    of = {x: [one for one in of_pair if one.sample in (x, None)] for x in samples}
    for partners in of.values():
        _check_partners(partners)
    return {**of, None: list(of_pair)}


def _check_partners(of_pair: Sequence[GivenChain]) -> None:
    """
    Raises:
        UserError: a chain of the pair has no partner, or its cued chains have several.
    """
    n = Counter(one.condition for one in of_pair)
    for one in of_pair:
        partner = _PARTNER[one.condition]
        named = f"pair {one.pair[:60]!r}" + (f" by {one.model}" if one.model else "")
        if not n[partner]:
            named += "" if one.sample is None else f", sample {one.sample!r},"
            column = f"{CONDITION[partner in ('forward', 'reversed')]!r}"
            raise UserError(
                f"{one.where}: the {one.condition} chain of {named} has no partner: no {partner} "
                f"chain has this question or this 'pair' ({column} says which a chain is); add it, "
                "take the row out, or read the chains alone (traces.format: rows)"
            )
    twice = [one for one in of_pair if one.condition == "uncued"][1:]
    if twice:
        raise UserError(
            f"{twice[0].where}: a second uncued chain of pair {twice[0].pair[:60]!r}; say which "
            "chains are a pair in a column 'pair'"
        )


def _chains_of(row: SourceRow) -> Iterator[GivenChain]:
    """The one or two chains of a row, each without its partner."""
    said = [n for n in map(str, row.values) if folded(n) in CONDITION and has(row, n)]
    if said:
        condition = _OF[folded(said[0]), flag(row, said[0])]
        yield _one(row, condition, None)
        return
    second = second_of(row.cells.plain)
    if not second:
        raise UserError(
            f"{row.where}: holds one chain and does not say which of its pair it is; give a column "
            "'cued' (or 'reversed'), true or false, or the second chain as 'cued_reasoning' (or "
            "'reversed_reasoning')"
        )
    for condition in ("uncued", "cued") if second == "cued" else ("forward", "reversed"):
        yield _one(row, condition, second)


def _one(row: SourceRow, condition: Condition, second: str | None) -> GivenChain:
    """The chain of a row in one condition.

    Args:
        second: whose columns say so by their names, if the row holds two chains: `cued` or
            `reversed`.
    """
    is_second = condition in ("cued", "reversed")
    own, cue = _columns(row, second, is_second)
    made = chain(own)
    base = text(row, "id") or row.id
    pair = text(row, "pair") or (base if second else made.question)
    facts = _cue_of(row, cue, made) if condition == "cued" else {}
    made = replace(made, id=base, pair=pair, condition=condition, **facts)
    return made if second is None else replace(made, id=f"{base}/{made.cue_name or condition}")


def _columns(
    row: SourceRow, second: str | None, is_second: bool
) -> tuple[SourceRow, dict[str, str]]:
    """A row with the columns of one chain, under the names that `rows` knows; and the columns that
    tell of the cue."""
    values, sources, cue = dict[str, Any](), dict[str, tuple[str, ...]](), dict[str, str]()
    mine = {second if is_second else "uncued"} if second else set[str]()
    for name, value in row.cells.plain.items():
        of, what = column_of(str(name))
        if what in _CUE:
            cue[what] = str(name)
            continue
        of_other = of and of not in mine
        label_of_second = what.startswith("label_") and second and not is_second
        # of two chains in a row, a name that says nothing of them is the plain one's
        of_plain = not of and is_second and second and folded(str(name)) in _OWN
        if of_other or label_of_second or of_plain:
            continue
        if of or (what or str(name)) not in values:
            values[what or str(name)] = value
            sources[what or str(name)] = (str(name),)
    return SourceRow(row.id, row.cells.renamed(values, sources), row.where), cue


_OWN = ("reasoning", "answer", "prompt", "finish", "finishreason", "stopreason", "steps")
"""Columns (`folded`) that hold the plain chain where a row has two."""


def _cue_of(row: SourceRow, columns: Mapping[str, str], made: GivenChain) -> dict[str, Any]:
    """What a row says of the cue of its cued chain, as fields of the chain."""
    said = {what: text(row, name) for what, name in columns.items() if what != "cue_above"}
    place = said.get("cue_place")
    if place is None and "cue_above" in columns and has(row, columns["cue_above"]):
        place = "above" if flag(row, columns["cue_above"]) else "below"
    if place is not None and place not in get_args(Place):
        known = ", ".join(get_args(Place))
        raise UserError(
            f"{row.where}: {columns['cue_place']!r} is {place!r}; places are {known}"
            f"{did_you_mean(place, get_args(Place))}"
        )
    return {
        "cue": said.get("cue"),
        "cue_name": said.get("cue_name") or "",
        "cue_place": place,
        "cue_mention": pattern(row, columns.get("cue_mention", "")),
        "cue_target": _target(row, columns, made),
    }


def _target(row: SourceRow, columns: Mapping[str, str], made: GivenChain) -> str | None:
    """The answer that a cue points to, in the form of the chain's answers; None if it names none.

    Raises:
        UserError: it is no option of the question, or no number where answers are numbers.
    """
    name = columns.get("cue_target", "")
    said = text(row, name) if name else None
    if said is None:
        return None
    if made.options is None or not has_options(row):
        number = canonical_number(said)
        if made.kind == "number" and number is None:
            raise UserError(f"{row.where}: {name!r} is {said[:40]!r}, which is no number")
        return number if made.kind == "number" else said
    options = options_of(row)
    meant = by_name(options, said)
    if len(meant) != 1:
        raise UserError(
            f"{row.where}: {name!r} is {said[:40]!r}, which is none of the options "
            f"{', '.join(options.texts)}; give the letter or the text of one, or leave it empty "
            "for a cue that names no answer"
        )
    return as_answered(options, LETTERS[meant.pop()], made.kind or "choice")


def _with_partner(cued: GivenChain, plain: GivenChain) -> GivenChain:
    """A cued chain with the uncued one, and with the prompt that holds the cue.

    Raises:
        UserError: neither prompt, question nor place tell where the cue stands, or the text of the
            cue is not known.
    """
    if cued.sent is not None and cued.sent.prompt is not None:
        cued = replace(cued, cue_place=None)
    elif cued.prompt is not None:
        shown = None if plain.prompt is None else _added(plain.prompt, cued.prompt)
        cued = replace(cued, cue=cued.cue or shown, cue_place=None)
    elif cued.question != plain.question:
        cued = replace(cued, cue=cued.cue or _added(plain.question, cued.question), cue_place=None)
    elif cued.cue is None:
        raise UserError(
            f"{cued.where}: the cued chain has no cue; give its text in a column 'cue', with "
            "'cue_place', or the whole message as 'cued_prompt'"
        )
    elif cued.cue_place is None:
        raise UserError(
            f"{cued.where}: the cue {cued.cue[:60]!r} has no place; give 'cue_place' "
            f"({', '.join(get_args(Place))}), or the whole message as 'cued_prompt'"
        )
    else:
        cued = replace(cued, prompt=plain.prompt, sent=cued.sent or plain.sent)
    if not cued.cue:
        raise UserError(
            f"{cued.where}: the cue of the cued message is not known; give its text in a column "
            "'cue', or the uncued message as 'prompt'"
        )
    return replace(cued, uncued=plain)


def _added(plain: str, cued: str) -> str:
    """The text that a cued message has and the plain one has not; "" if there is none."""
    if cued.endswith(plain):
        return cued.removesuffix(plain).strip()
    start = _common(plain, cued)
    end = _common(plain[start:][::-1], cued[start:][::-1])
    return cued[start : len(cued) - end].strip()


def _common(one: str, other: str) -> int:
    """Number of characters at the beginning that two texts share."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))


PAIRS = Reader(
    "pairs",
    "pairs of chains: with and without a cue, or of a question and its reverse (faithscope docs "
    "given)",
    lambda row: (
        is_of_pairs(row) and {"question"} <= {column_of(str(n))[1] or folded(str(n)) for n in row}
    ),
    pairs,
)
