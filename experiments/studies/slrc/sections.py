"""What the page of a run over traces says of its verdict, its units and its example traces."""

from __future__ import annotations

from faithscope.experiments.analysis.html import markup
from faithscope.experiments.analysis.page import Section, Terms
from faithscope.experiments.analysis.wording import percent
from faithscope.experiments.studies.slrc.tables.verdict import IGNORED, MATTERS, WORDS

VERDICT_NOTE = (
    "Percentages: how often the edit changed the answer, with 95 % intervals; reasoning edited in "
    "its own place (prefix), answer generated, unless a row says otherwise. The verdict rests on "
    "the last of the three edits that was run, less its control where that was run, with an "
    "interval that counts every item once, as the steps of one item are not independent: "
    f"“{WORDS['uses']}” if it lies at or above {percent(MATTERS)}, “{WORDS['ignores']}” if wholly "
    f"below it with a rate of {percent(IGNORED)} or less, “{WORDS['little']}” if below it "
    f"otherwise, “{WORDS['unclear']}” if across it, “{WORDS['few']}” if only for want of items."
)
INSTRUMENT = {
    "absent": markup(
        "This run has no model whose truth is known. Add <code>planted:faithful</code> and "
        "<code>planted:hint</code> to see what the measures say of a model that uses its steps and "
        "of one that ignores them."
    ),
    "passes": "Tiny models whose truth was planted by training come out as planted: the measures "
    "can tell a model that uses its steps from one that writes the same words and ignores them.",
    "fails": "Tiny models whose truth was planted by training do not come out as planted. Do not "
    "trust the readings below before this is understood.",
}
READING = Section(
    "reading",
    "How to read it",
    "A step is a sentence, an item of a numbered list, or, in long reasoning with blank lines, a "
    "paragraph. A step that is used leaves a mark on the answer when it is disturbed; one that is "
    "decoration does not.",
    blocks=[
        Terms(
            {
                "Necessity": "Share of steps whose removal changes the answer (SLRC paper, §4.1).",
                "Sufficiency": "Share of steps that, kept alone, lead to the same answer (§4.1).",
                "Order sensitivity": "Share of shuffles of the steps that change the answer "
                "(§4.1).",
                "SLRC": "Step-Level Reasoning Capacity, necessity × (1 − sufficiency), of these "
                "aggregates (§4.2). 0: the answer does not depend on any step, or any step gives "
                "it away; 1: every step is needed and none is enough.",
                "Routes implied": "The redundancy bound: with k independent routes to the answer, "
                "necessity is at most 1/k; so 1/necessity routes would explain this necessity "
                "without decoration (§3.3).",
                "Corrupted, frozen": "One step is made to say something else and the later steps "
                "stay. Credits only the steps that the answer is read from.",
                "Corrupted, written anew": "One step is made to say something else and the model "
                "goes on from there. Credits every step that the later ones build on.",
                "Control": "The step stays as it is, a remark that says nothing is put after it, "
                "and the model goes on from there. An answer that changes now changed because of "
                "the going on, not because of the step; what counts is how much more often a "
                "corrupted step changes it.",
                "Why removal can mislead": "A text with a hole may be unlike anything the model "
                "has met, and flip its answer for that reason alone; and later steps may restate "
                "what was removed. So removal is never read without the other two.",
                "Framing": markup(
                    "<em>Prefix</em>: the edited reasoning stands where the model wrote it, as its "
                    "own tokens. <em>Reprompt</em>: it is quoted in a new prompt, as one must with "
                    "a closed model."
                ),
                "Reading": markup(
                    "<em>Generated</em>: the greedy answer, parsed (§4.7). <em>Scored</em>: the "
                    "likeliest of the answer labels, by log-probability."
                ),
                "Total variation, log-odds drop": "How far an edit moves the distribution over "
                "the answer labels, where a flip says only whether it crossed the middle.",
                "Intervals": "95 %: Wilson for shares (§4.9), which takes steps as independent; "
                "for SLRC a bootstrap over items, which shrinks to a point where all items agree.",
            }
        )
    ],
)
UNITS = Section(
    "units",
    "Units of removal",
    "Some chains were cut into other units than those of other questions of the same task. Taking "
    "away a paragraph takes more than taking away a sentence, so no number below pools two units: "
    "each has rows of its own in the tables over steps, and a name of its own in figures and "
    "verdicts.",
)
TRACES = Section(
    "traces",
    "Some traces",
    "Chosen by rule: of each model and task the item whose share of necessary steps is nearest to "
    "the mean, twins on the same question. A step’s colour says whether removing it changed the "
    "answer; the marks to its right say the same of corrupting it with the rest frozen, and with "
    "the rest rewritten. Open a step to see what every branch answered.",
    "Traces",
)
NOTHING_MEASURED = markup(
    "Nothing was measured: no item got as far as its edits. See "
    '<a href="#exclusions">where the items went</a>.'
)
