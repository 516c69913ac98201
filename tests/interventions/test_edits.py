"""Edits move or drop ids and touch nothing else."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from faithscope.interventions import (
    EDITS,
    MODES,
    NotCorruptible,
    NotWritable,
    Question,
    Trace,
    corrupt_step,
    corruption,
    from_ids,
    keep_only_step,
    n_orders,
    remark_after_step,
    remove_step,
    replace_step,
    reverse_steps,
    shuffle_steps,
    shuffles,
    truncate_after_step,
    truncate_after_token,
)

relaxed = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    max_examples=60,
)
ODD = "😀 👩‍👩‍👧 e\u0301 ñ 影片 \u200d \u2028 \x0b İ ﬃ 𝒳"
sentences = st.sampled_from(
    [
        "So 3 + 4 makes 7.",
        "The acting is terrible 😀!",
        "Sure!",
        "Le cafe\u0301 est bon, voilà.",
        "影片很差，故事很好，总的来说不错。",
        "It is $1,200.50 (i.e. a lot).",
        "Step 2: the total is 42.",
        "👩‍👩‍👧 they all liked it very much.",
        "Is it not good?",
    ]
)
gaps = st.sampled_from([" ", "\n", "\r\n", "\r\n\r\n", "\n\n", "  ", "\t", ""])
prose = st.lists(st.tuples(sentences, gaps), min_size=3, max_size=8).map(
    lambda parts: "".join(s + g for s, g in parts)
)
texts = st.one_of(
    prose,
    st.text(st.sampled_from(" .!?\n\r\t1aB$`*\\" + ODD), max_size=60),
    st.text(max_size=60),
)
modes = st.sampled_from(MODES)


def holds_together(trace: Trace) -> None:
    """Steps tile ids and text, and say what their tokens say."""
    text, chars, tokens = trace.reasoning_text, 0, 0
    for step in trace.steps:
        assert step.tokens[0] == tokens
        assert step.chars[0] == chars
        tokens, chars = step.tokens[1], step.chars[1]
        assert step.text == text[slice(*step.chars)]
        assert step.text == "".join(trace.pieces[slice(*step.tokens)])
    assert (tokens, chars) == (len(trace.reasoning_ids), len(text))


def spans(trace: Trace) -> dict[int, tuple[int, ...]]:
    return {s.index: trace.step_ids(s) for s in trace.steps}


@relaxed
@given(text=texts, mode=modes, least=st.integers(0, 20))
def test_steps_tile_any_text(make_trace, coder, text, mode, least):
    trace = make_trace(text, mode=mode, min_chars=least)
    assert trace.reasoning_text == text
    holds_together(trace)
    assert [s.index for s in trace.steps] == list(range(len(trace.steps)))
    for step in trace.steps:
        # A step never begins or ends inside a character.
        assert coder.tokenizer.decode(list(trace.step_ids(step))) == step.text
        assert step.counted == (len(step.text.strip()) >= least)


@relaxed
@given(text=texts, mode=modes)
def test_remove_and_keep_only(make_trace, text, mode):
    trace = make_trace(text, mode=mode)
    before = spans(trace)
    for step in trace.steps:
        removed, alone = remove_step(trace, step.index), keep_only_step(trace, step.index)
        holds_together(removed)
        holds_together(alone)
        assert spans(removed) == {i: ids for i, ids in before.items() if i != step.index}
        assert removed.reasoning_ids == (
            trace.reasoning_ids[: step.tokens[0]] + trace.reasoning_ids[step.tokens[1] :]
        )
        assert alone.reasoning_ids == trace.step_ids(step)
        assert (removed.edits[-1].kind, removed.edits[-1].step) == ("remove", step.index)
        assert removed.prompt_ids == trace.prompt_ids


def test_remove_takes_one_occurrence(make_trace):
    trace = make_trace("So it is good. The acting is bad. So it is good. That is all there is.")
    assert remove_step(trace, 2).reasoning_text == (
        "So it is good. The acting is bad. That is all there is."
    )


@relaxed
@given(text=prose, seed=st.integers(0, 3))
def test_shuffle_is_another_order_of_the_same_ids(make_trace, text, seed):
    trace = make_trace(text)
    assume(n_orders(trace) > 1)
    shuffled = shuffle_steps(trace, seed)
    holds_together(shuffled)
    assert shuffled == shuffle_steps(trace, seed)
    assert shuffled.reasoning_ids != trace.reasoning_ids
    assert Counter(shuffled.reasoning_ids) == Counter(trace.reasoning_ids)
    assert spans(shuffled) == spans(trace)
    places = [(i, s.index) for i, s in enumerate(shuffled.steps) if not s.counted]
    assert places == [(s.index, s.index) for s in trace.steps if not s.counted]


def test_shuffle_reaches_every_other_order_and_refuses_the_only_one(make_trace):
    trace = make_trace("The first one is here. The second one is here. The third one is here.")
    orders = {tuple(s.index for s in shuffle_steps(trace, seed).steps) for seed in range(60)}
    assert len(orders) == 5
    for text in ("The only one is here.", "Here it is again. Here it is again."):
        same = make_trace(text, mode="sentences")
        assert shuffles(same, 3, 0) == []
        with pytest.raises(ValueError, match="only one order"):
            shuffle_steps(same, 0)


@pytest.mark.parametrize(
    ("text", "asked", "drawn"),
    [
        ("The first one is here. The second one is here.", 3, 1),
        ("The first one is here. The second one is here. The third one is here.", 10, 5),
        ("The first one is here. The second one is here. The third one is here.", 3, 3),
        ("Here it is again. Here it is again. The third one is here.", 10, 2),
    ],
)
def test_shuffles_are_different_orders_other_than_the_one_as_written(
    make_trace, text, asked, drawn
):
    trace = make_trace(text, mode="sentences")
    orders = [tuple(s.text.strip() for s in t.steps) for t in shuffles(trace, asked, 7)]
    assert len(orders) == len({*orders}) == drawn
    assert tuple(s.text.strip() for s in trace.steps) not in orders


@relaxed
@given(text=prose)
def test_reverse(make_trace, text):
    trace = make_trace(text)
    ids = [trace.step_ids(s) for s in trace.counted_steps]
    said = [s.text.strip() for s in trace.counted_steps]
    assume(said != said[::-1])
    turned = reverse_steps(trace)
    holds_together(turned)
    assert [turned.step_ids(s) for s in turned.counted_steps] == ids[::-1]
    assert reverse_steps(turned).reasoning_ids == trace.reasoning_ids


@relaxed
@given(text=texts, data=st.data())
def test_truncation(make_trace, text, data):
    trace = make_trace(text)
    kept = data.draw(st.integers(0, len(trace.reasoning_ids)))
    cut = truncate_after_token(trace, kept)
    holds_together(cut)
    assert cut.reasoning_ids == trace.reasoning_ids[:kept]
    for step in trace.steps:
        upto = truncate_after_step(trace, step.index)
        holds_together(upto)
        assert upto.reasoning_ids == trace.reasoning_ids[: step.tokens[1]]


@relaxed
@given(text=texts, new=texts, data=st.data())
def test_replace(make_trace, coder, text, new, data):
    trace = make_trace(text)
    assume(trace.steps)
    step = data.draw(st.sampled_from(trace.steps))
    ids = coder.encode(new)
    made = replace_step(trace, step.index, ids, coder.pieces(ids))
    holds_together(made)
    assert spans(made) == spans(trace) | {step.index: ids}
    assert made.edits[-1].detail == {"old": step.text, "new": new}


@relaxed
@given(text=prose, seed=st.integers(0, 3), data=st.data())
def test_corrupt_changes_only_what_it_says(make_trace, coder, text, seed, data):
    trace = make_trace(text)
    assume(trace.steps)
    step = data.draw(st.sampled_from(trace.steps))
    assume(corruption(step.text, seed) is not None)
    found = corrupt_step(trace, step.index, seed, coder.encode, coder.pieces)
    holds_together(found)
    detail = found.edits[-1].detail
    at, old, new = detail["char"], detail["old"], detail["new"]
    was, now = trace.reasoning_text, found.reasoning_text
    assert was[at : at + len(old)] == old
    assert now == was[:at] + new + was[at + len(old) :]
    assert now != was
    assert found == corrupt_step(trace, step.index, seed, coder.encode, coder.pieces)
    offsets = [sum(map(len, trace.pieces[:i])) for i in range(len(trace.pieces) + 1)]
    head = [i for i in range(len(trace.pieces)) if offsets[i + 1] <= at and trace.pieces[i]]
    tail = sum(1 for i in range(len(trace.pieces)) if offsets[i] >= at + len(old))
    keep = head[-1] + 1 if head else 0
    assert found.reasoning_ids[:keep] == trace.reasoning_ids[:keep]
    if old and tail:
        assert found.reasoning_ids[-tail:] == trace.reasoning_ids[-tail:]


@pytest.mark.parametrize(
    ("text", "rule", "pattern"),
    [
        ("So 3 + 4 makes 7 .", "number", r"So 3 \+ 4 makes [0-689] \."),
        ("Step 2: the total is 42.", "number", r"Step 2: the total is [1-35-9]2\."),
        ("2. Adding 5 gives $1,200.50 now.", "number", r"2\. Adding 5 gives \$[2-9],200\.50 now\."),
        ("As in step 3, it has 4 legs.", "number", r"As in step 3, it has [0-35-9] legs\."),
        ("From steps 1 and 2 it is clearly good.", "word", "From steps 1 and 2 it is clearly bad."),
        ("2. It is an enjoyable movie.", "word", "2. It is an unpleasant movie."),
        ("That is an increase over it.", "word", "That is a decrease over it."),
        ("It is More than enough.", "word", "It is Less than enough."),
        ("It is POSITIVE in tone.", "word", "It is NEGATIVE in tone."),
        ("Does it end well? No.", "word", "Does it end well? Yes."),
        ("There is no plot in it.", "negation", "There is not no plot in it."),
        ("The cast isn't in this.", "negation", "The cast is in this."),
        ("They were not there.", "negation", "They were there."),
        ("We cannot go there.", "negation", "We can go there."),
    ],
)
def test_corruption_rules(make_trace, coder, text, rule, pattern):
    trace = make_trace(text, mode="paragraphs")
    edited = corrupt_step(trace, 0, 0, coder.encode, coder.pieces)
    assert edited.edits[-1].detail["rule"] == rule
    if rule == "number":
        assert re.fullmatch(pattern, edited.reasoning_text)
    else:
        assert edited.reasoning_text == pattern


@pytest.mark.parametrize("seed", range(6))
def test_corruption_with_tokenizers_that_mark_words(word_coder, seed):
    text = "Then 7 - 2 makes 5 . So 3 + 4 makes 7 ."
    ids = word_coder.encode(text)
    question = Question("q1", "made", "How many?", "number")
    trace = from_ids(question, word_coder.encode("Then"), ids, word_coder.pieces(ids))
    for step, before in ((0, "Then 7 - 2 makes "), (1, "So 3 + 4 makes ")):
        edited = corrupt_step(trace, step, seed, word_coder.encode, word_coder.pieces)
        holds_together(edited)
        new = edited.edits[-1].detail["new"]
        assert edited.steps[step].text.strip() == f"{before}{new} ."
        assert edited.reasoning_text == word_coder.tokenizer.decode(list(edited.reasoning_ids))
        other = 1 - step
        assert edited.step_ids(edited.steps[other]) == trace.step_ids(trace.steps[other])


def test_seeds_draw_different_numbers(make_trace, coder):
    trace = make_trace("So 3 + 4 makes 7.")
    made = {corrupt_step(trace, 0, s, coder.encode, coder.pieces).reasoning_text for s in range(40)}
    assert len(made) == 9


def test_nothing_to_corrupt_is_said(make_trace, coder):
    with pytest.raises(NotCorruptible, match="Hmm, well then"):
        corrupt_step(make_trace("Hmm, well then, hello."), 0, 0, coder.encode, coder.pieces)


def test_errors_name_the_trace_and_its_steps(make_trace, coder):
    trace = make_trace("The first one is here. The second one is here.")
    for edit in (remove_step, keep_only_step, truncate_after_step):
        with pytest.raises(IndexError, match=r"'q1'.*no step 7; it has 2 steps"):
            edit(trace, 7)
    with pytest.raises(IndexError, match="keep 99 of"):
        truncate_after_token(trace, 99)
    with pytest.raises(ValueError, match="2 ids but 1 pieces"):
        replace_step(trace, 0, [1, 2], ["a"])


def test_edits_of_edits_keep_the_first_indices(make_trace):
    trace = make_trace("The first one is here. The second one is here. The third one is here.")
    twice = shuffle_steps(remove_step(trace, 0), 1)
    assert [s.index for s in twice.steps] == [2, 1]
    assert [e.kind for e in twice.edits] == ["remove", "shuffle"]
    assert remove_step(twice, 2).reasoning_text.strip() == "The second one is here."


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "One goes here.\nTwo goes here.\n",
            "One goes here.\nLet me go on from here.\nTwo goes here.\n",
        ),
        ("One goes here. Two goes here.", "One goes here. Let me go on from here. Two goes here."),
    ],
)
def test_a_remark_keeps_every_token_and_says_nothing(make_trace, coder, text, told):
    trace = make_trace(text, min_chars=0)
    edited = remark_after_step(trace, 0, coder.encode, coder.pieces)
    assert edited.reasoning_text == told
    added = len(edited.reasoning_ids) - len(trace.reasoning_ids)
    at = trace.steps[0].tokens[1]
    assert edited.reasoning_ids[:at] + edited.reasoning_ids[at + added :] == trace.reasoning_ids
    assert edited.edits[-1].kind == "remark"


def test_a_tokenizer_of_few_words_cannot_write_the_remark(make_trace, coder):
    trace = make_trace("One goes here. Two goes here.", min_chars=0)
    with pytest.raises(NotWritable, match="Let me go on from here"):
        remark_after_step(trace, 0, lambda text: [0], coder.pieces)


def test_every_edit_is_registered_by_the_kind_it_records(make_trace, coder):
    trace = make_trace("So 3 + 4 makes 7. So 7 - 2 makes 5. So 5 + 9 makes 4.")
    settings = {
        "remove": (1,),
        "keep_only": (1,),
        "truncate_step": (1,),
        "truncate_token": (2,),
        "shuffle": (0,),
        "reverse": (),
        "replace": (1, (1,), ("a",)),
        "corrupt": (1, 0, coder.encode, coder.pieces),
        "remark": (1, coder.encode, coder.pieces),
    }
    assert settings.keys() == EDITS.keys()
    for name, arguments in settings.items():
        assert EDITS[name](trace, *arguments).edits[-1].kind == name
