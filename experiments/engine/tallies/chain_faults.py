"""Faults of the chains that a run measures, counted once for all of its measures.

What a measure finds on a chain that was cut, repeats itself or states no answer is not of reasoning
that led to an answer, whichever measure it is. The count is therefore made by the engine: each
stage that stores chains says which faults one has (`config.study.Stage.faults`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from faithscope.experiments.engine.tallies.reasons import LOW_MASS

CUT, REPEATING, ANSWERLESS, DEGENERATE = "cut", "repeating", "answerless", "degenerate"
WORDS = {
    CUT: "cut at the token limit",
    REPEATING: "repeating the same text",
    ANSWERLESS: "without an answer that could be read",
    DEGENERATE: "with hardly any words",
    LOW_MASS: "after which the scored answers have too little probability",
}
"""Fault -> words that follow the number of chains, or one chain."""
COLUMNS = {
    CUT: "whether the token limit ended the response",
    REPEATING: "whether a third of the steps repeat earlier ones, or the text ends in a loop",
    ANSWERLESS: "whether no answer could be read",
    DEGENERATE: "whether the text has hardly any letters and digits",
}
"""Fault of a single chain -> meaning of its column in frames of chains."""
MOST_PLACES = 12
"""Most pairs of model and task whose faults are listed one by one."""


def as_columns(faults: Collection[str]) -> dict[str, bool]:
    """The columns `COLUMNS` of a chain with some faults."""
    return {fault: fault in faults for fault in COLUMNS}


@dataclass(frozen=True)
class ChainFaults:
    """Number of chains of a model and task, and of those with each fault."""

    chains: int
    faults: Mapping[str, int]
    """Fault -> number of chains with it; a chain may have several."""

    @property
    def words(self) -> str:
        """The faults in words: `3 of 4 cut at the token limit, 1 of 4 repeating the same text`."""
        counts = ((words, self.faults.get(fault, 0)) for fault, words in WORDS.items())
        return ", ".join(f"{n:,} of {self.chains:,} {words}" for words, n in counts if n)


Place = tuple[str, str]
"""(model, task) of chains; the model is empty where no model of the run wrote or read them."""


def counted(chains: Mapping[Place, Collection[Collection[str]]]) -> dict[Place, ChainFaults]:
    """Counts for each model and task, from the faults of each of its chains."""
    return {
        place: ChainFaults(len(of), Counter(fault for faults in of for fault in set(faults)))
        for place, of in chains.items()
    }


def lines(chains: Mapping[Place, ChainFaults]) -> Iterator[str]:
    """Yields a line for each model and task with faulty chains, those with most faults first."""
    faulty = [(place, of) for place, of in chains.items() if of.faults]
    faulty.sort(key=lambda pair: -max(pair[1].faults.values()) / pair[1].chains)
    for (model, task), of in faulty[:MOST_PLACES]:
        where = "" if len(chains) == 1 else " of " + " on ".join(filter(None, (model, task)))
        yield f"chains{where}: {of.words}"
    if (more := len(faulty) - MOST_PLACES) > 0:
        yield f"chains of {more} more pairs of model and task have such faults, too"
