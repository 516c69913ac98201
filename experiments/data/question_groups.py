"""Groups of items that are not independent, the unit of every interval, test and exchange.

Items of one question are always of one group. Further groups are those of a column of the user's,
or else are found here: questions that differ only in digits, case, punctuation, or a few words at
an end. They are found by hashes, in one pass, and never by comparing all pairs.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from faithscope.experiments.data.tasks.sources.rows import FileRead, is_filled
from faithscope.interp.errors import UserError, did_you_mean
from faithscope.interventions.trace import Question

GROUP = "data.group"
"""Config key of the column of groups of questions."""
LEAST_GROUPS = 5
"""Number of groups of a data set below which there would be no interval over groups; questions that
are only alike then stay apart."""
MOST_WORDS = 6
"""Most words at an end in which two questions of a group differ."""
ADDED, CHANGED = 4, 10
"""Words of a question for every word that may be added at its end, or be another one."""
_TOKENS = re.compile(
    # a number with its separators, a letter of a script without blanks, a word, any other sign
    r"\d+(?:[.,]\d+)*|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
    r"|[^\W\d_]+|[^\w\s]"
)
_SIGNS = frozenset("*/%-#&@\\")
"""Signs that Unicode counts as punctuation, and that tell questions apart."""


Words = tuple[str, ...]
"""A question as its words, numbers and signs."""


class Asked(NamedTuple):
    """An item with the question that it is of."""

    item: str
    dataset: str
    """Data set or task, among whose questions those that are alike are sought."""
    text: str
    """The question with its options, if it has some."""
    group: str | None = None
    """The user's group; None if no column is read, "" where its cell is empty."""


Groups = dict[str, dict[str, str]]
"""Data set -> item -> its group, for the items whose group has others, too."""


class Grouping(NamedTuple):
    """The groups of the items of a run."""

    of: Groups
    notes: tuple[str, ...]
    """What the input report says of them, a sentence per data set."""


class Sets:
    """Disjoint sets of things that are joined pair by pair."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}

    def top(self, thing: Hashable) -> Hashable:
        """The thing that stands for the set of `thing`."""
        above = self._above.setdefault(thing, thing)
        while above != self._above[above]:
            self._above[above] = self._above[self._above[above]]
            above = self._above[above]
        self._above[thing] = above
        return above

    def join(self, one: Hashable, other: Hashable) -> None:
        """Makes one set of the two that `one` and `other` are in; that of `one` stands for it."""
        self._above[self.top(other)] = self.top(one)


def asked_of(question: Question, group: str | None = None) -> Asked:
    """A question as it is grouped: with its options in whatever order."""
    options = sorted(question.options or ()) if question.kind == "choice" else ()
    text = "\n".join([question.text, *options])
    return Asked(question.id, question.dataset, text, group)


def words_of(text: str) -> Words:
    """The words, numbers and signs of a text, without case and punctuation; a script that writes no
    blanks is read letter by letter."""
    tokens = _TOKENS.findall(unicodedata.normalize("NFKC", text).casefold())
    return tuple(t for t in tokens if t in _SIGNS or unicodedata.category(t[0])[0] != "P")


def grouped(asked: Iterable[Asked], key: str, *, chains: bool = False) -> Grouping:
    """The groups of a run's items, each within one data set.

    Args:
        asked: the items; one that occurs twice is asked in several ways, or of several models.
        key: config key that names the column of groups, for the notes; "" where there is none.
        chains: whether an item is a chain, of which a question may have several.
    """
    of_dataset: dict[str, dict[str, Asked]] = defaultdict(dict)
    for a in asked:
        of_dataset[a.dataset][a.item] = a
    found: Groups = {}
    notes: list[str] = []
    for dataset, items in of_dataset.items():
        words = {a.item: words_of(a.text) or (a.text,) for a in items.values()}
        sets = Sets()
        for item, of in words.items():
            sets.join(of, ("item", item))
        for a in items.values():
            if a.group:
                sets.join(("group", a.group), ("item", a.item))
        if any(a.group for a in items.values()):
            said = [_of_column(items, sets, key)]
        else:
            grown = all(a.group is None for a in items.values())
            of_alike = [*_of_alike(words, sets, key)] if grown else []
            said = [*_of_same(words, sets, chains), *of_alike]
        notes += [f"{dataset}: {note}" for note in said]
        if several := dict(_named(dataset, items, words, sets)):
            found[dataset] = several
    return Grouping(found, tuple(notes))


def _named(
    dataset: str, items: Mapping[str, Asked], words: Mapping[str, Words], sets: Sets
) -> Iterator[tuple[str, str]]:
    """Yields (item, group) of the groups that have several items. A group has the user's name, or
    else a digest of its first question, so that runs of the same data name it alike."""
    members: dict[Hashable, list[str]] = defaultdict(list)
    for item in items:
        members[sets.top(("item", item))].append(item)
    for of in members.values():
        theirs = next((group for item in of if (group := items[item].group)), "")
        text = "\0".join((dataset, theirs or " ".join(words[of[0]])))
        name = theirs or hashlib.sha256(text.encode()).hexdigest()[:16]
        yield from ((item, name) for item in of if len(of) > 1)


def _of_column(items: Mapping[str, Asked], sets: Sets, key: str) -> str:
    n = len({sets.top(("item", item)) for item in items})
    note = f"{len(items):,} items are of {n:,} groups by {key}, the unit of intervals and tests"
    if n < LEAST_GROUPS:
        note += f", of which an interval needs {LEAST_GROUPS}"
    if empty := sum(not a.group for a in items.values()):
        by = (
            "has no value in that column and counts by its"
            if empty == 1
            else ("have no value in that column and count by their")
        )
        note += f"; {empty:,} {by} question"
    return note


def _of_same(words: Mapping[str, Words], sets: Sets, chains: bool) -> Iterator[str]:
    """Yields a note on items of one question; that questions are the unit is said where none of
    them are joined."""
    of_question = Counter(words.values())
    if repeated := sum(n for n in of_question.values() if n > 1):
        what, n = "chains" if chains else "items", len(of_question)
        is_unit = len({sets.top(of) for of in of_question}) == n
        unit = f"the {n:,} questions are the unit of intervals and tests"
        yield (
            f"{repeated:,} of {len(words):,} {what} are of a question that others are of, too; "
            f"{unit if is_unit else f'all are of {n:,} questions'}"
        )


def _of_alike(words: Mapping[str, Words], sets: Sets, key: str) -> Iterator[str]:
    """Joins questions that are alike, and yields a note on them. Where they would be fewer than
    `LEAST_GROUPS`, different digits make different questions; and where they still would, only the
    note is left."""
    texts = {of: of for of in words.values()}
    zero = {of: tuple("0" if w[:1].isdigit() else w for w in of) for of in texts}
    remedy = f" ({key}=COLUMN reads other groups from the data)" if key else ""
    said = ""
    for shown in (zero, texts):
        found = Sets()
        for one, other in alike(shown):
            found.join(one, other)
        members = Counter(map(found.top, texts))
        if not (n := sum(k for k in members.values() if k > 1)):
            break
        says = (
            f"{n:,} of {len(texts):,} questions differ from another only in "
            f"{'digits, ' if shown is zero else ''}case, punctuation, or a few words at an end"
        )
        if len(members) >= LEAST_GROUPS:
            for of in texts:
                sets.join(found.top(of), of)
            groups = f"their {len(members):,} groups are the unit of intervals and tests"
            yield f"{says}; {groups}{remedy}"
            return
        said = said or (
            f"{says}; that makes {len(members):,} group{'s' * (len(members) > 1)}, too few for an "
            "interval, so that questions count as independent, and what is found holds for "
            f"questions like these{remedy}"
        )
    if said:
        yield said


def alike(words: Mapping[Words, Words]) -> Iterator[tuple[Words, Words]]:
    """Yields pairs that join all questions that differ in a few words at their beginning or end.

    One is the other with up to a fourth of its words added at an end, or both have a tenth of their
    words of their own there; `MOST_WORDS` at most.

    Args:
        words: name of a question -> its words, in which the questions are compared.
    """
    whole: dict[int, Words] = {}
    for name, of in words.items():
        if (first := whole.setdefault(hash(tuple(of)), name)) is not name:
            yield first, name
    for at_end in (True, False):
        seen: dict[int, Words] = {}
        for name, of in words.items():
            n = len(of)
            for less in range(min(MOST_WORDS, n // ADDED) + 1):
                part = hash(tuple(of[: n - less] if at_end else of[less:]))
                if less and part in whole:
                    yield whole[part], name
                if less <= n // CHANGED and (first := seen.setdefault(part, name)) is not name:
                    yield first, name


def group_of(value: Any, where: str, key: str) -> str:
    """The group that a cell names; "" for an empty one. 3, 3.0 and "3" are one.

    Raises:
        UserError: the cell holds a list or an object.
    """
    if not is_filled(value):
        return ""
    if not isinstance(value, str | int | float):
        raise UserError(
            f"{where}: the group is a {type(value).__name__}; give a text or a number in the "
            f"column that {key} names"
        )
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(unicodedata.normalize("NFC", str(value)).split())
    return text.removesuffix(".0") if re.fullmatch(r"-?\d+\.0", text) else text


def groups_read(
    files: Sequence[FileRead], ids: Iterable[str], column: str, key: str
) -> dict[str, str]:
    """Id, or place, of a row -> its group, as a column says; empty cells included.

    Args:
        files: the files that were read in `files_read(column)`.
        ids: ids, or places, of the rows in use.

    Raises:
        UserError: no rows were read, none of them has the column, or a cell holds a list or an
            object.
    """
    cells = {name: value for file in files for name, value in file.groups.items()}
    if not files:
        raise UserError(
            f"{key}: {column!r} names a column of rows, and there are none here; leave it out"
        )
    if not any(is_filled(value) for value in cells.values()):
        names = list(dict.fromkeys(n for file in files for n in file.columns))
        guess = did_you_mean(column, names) or f"; it has {', '.join(names) or 'none'}"
        file = ", ".join(dict.fromkeys(file.name for file in files))
        raise UserError(f"{key}: {file} has no value in a column {column!r}{guess}")
    return {name: group_of(cells.get(name), name, key) for name in ids}
