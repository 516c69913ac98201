"""Numbers as labels: what belongs to a longer number, or to another label, is not theirs."""

import math
import random
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import tiny

from faithscope.interp import scoring
from faithscope.interp.edits import Knockout
from faithscope.interp.forest import Branch
from faithscope.interp.model import Model

# written apart from the code: what may not follow a number if that is to be the number
GOES_ON = re.compile(r"[0-9+=]|[-,./:_*( ^][0-9]|[eE][0-9+-]|[abcijknqruvwxyzBKM]")
MONEY_GOES_ON = re.compile(rf"{GOES_ON.pattern}|m")
"""A letter is a token by itself here, whatever follows it."""


def by_expansion(model: Model, prefix: tuple[int, ...], label: str, goes_on: re.Pattern) -> float:
    """P(label, then nothing that goes on), from every continuation of two tokens."""
    ids = model.encode(label)
    whole = (*prefix, *ids)
    starts = range(len(prefix) - 1, len(whole) - 1)
    (read,) = model.run([Branch(whole, ask=tuple(starts))], execution="loop").branches
    log_probs = read.logits.double().log_softmax(-1)
    total = math.exp(sum(float(log_probs[k, token]) for k, token in enumerate(ids)))
    size = len(model.tokenizer)
    branches = [Branch((*whole, t), ask=(-2, -1)) for t in range(size)]
    p = torch.stack([x.logits for x in model.run(branches).branches]).double().softmax(-1)
    ends = 0.0
    for one in range(size):
        for two in range(size):
            rest = model.decode((*ids, one, two))[len(label) :]
            if not goes_on.match(rest):
                ends += float(p[one, 0, one] * p[one, 1, two])
    return total * ends


@pytest.mark.in_time(2)
@pytest.mark.parametrize(
    ("label", "goes_on"),
    [(" $70", MONEY_GOES_ON), (" 7", GOES_ON), (" 7.5", GOES_ON), (" 1/2", GOES_ON)],
)
def test_a_number_is_scored_as_an_expansion_of_what_follows_reads_it(
    llama: Model, everything_run, label, goes_on
):
    prefix = llama.encode("so it is")
    (answered,) = llama.ask([prefix], [[llama.encode(label)]], boundary="number")
    expected = by_expansion(llama, prefix, label, goes_on)
    assert math.exp(answered.log_probs[0]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.in_time(2)
@pytest.mark.parametrize("execution", ["packed", "dense"])
def test_number_labels_in_a_pack_are_as_one_by_one(tree_model: Model, everything_run, execution):
    draw = random.Random(5)
    prefixes = [draw.choices(range(256), k=draw.randint(3, 30)) for _ in range(4)]
    texts = (" 7", " 70", " 70,000", " $70.00", " 1/2", "7")
    labels = [[tree_model.encode(x) for x in texts]] * len(prefixes)
    packed = tree_model.ask(prefixes, labels, boundary="number", execution=execution)
    loop = tree_model.ask(prefixes, labels, boundary="number", execution="loop")
    for p, q in zip(packed, loop, strict=True):
        assert p.log_probs == pytest.approx(q.log_probs, abs=1e-3)
        assert p.label_lengths == tuple(map(len, texts))


def test_tokens_behind_a_number_run_under_the_edits_of_its_prefix(llama: Model, everything_run):
    prefix = llama.encode("so it is 40 + 2, hence =")
    every = Knockout((12, None), (2, 9))
    one_head = Knockout((16, None), (0, 3), layers=(1,), heads=(0,))
    edits = [(), (every,), (every, one_head)]
    labels = [[llama.encode(x) for x in (" 7", " 70", " $70.00")]] * len(edits)
    packed, loop = (
        llama.ask([prefix] * 3, labels, boundary="number", edits=edits, execution=execution)
        for execution in ("packed", "loop")
    )
    for p, q in zip(packed, loop, strict=True):
        assert p.log_probs == pytest.approx(q.log_probs, abs=1e-4)
    assert len({p.log_probs for p in packed}) == len(edits)


def test_what_is_unlikely_to_follow_a_number_is_left_to_it(
    llama: Model, writes_numbers: Model, monkeypatch
):
    texts = (" 7", " 70", " 70,000", " $70")
    for model, exact in ((llama, ()), (writes_numbers, (" 7",))):
        prefix, labels = model.encode("so it is ="), [[model.encode(x) for x in texts]]
        (quick,) = model.ask([prefix], labels, boundary="number")
        with monkeypatch.context() as patch:
            patch.setattr(scoring, "LEAST_LIKELY", 1e-300)
            patch.setattr(scoring, "LEAST_SHARE", 1e-300)
            (whole,) = model.ask([prefix], labels, boundary="number")
        for text, p, q in zip(texts, quick.log_probs, whole.log_probs, strict=True):
            n_ways = sum(bool(between) for between, _ in model.number_ends.continuations(text))
            least = max(scoring.LEAST_LIKELY, scoring.LEAST_SHARE * math.exp(q))
            assert 0 <= math.exp(p) - math.exp(q) < n_ways * least
            assert (p == pytest.approx(q, abs=1e-4)) == (text in exact)


NUMBERS = st.from_regex(r"\A[ ]?[$]?(0|[1-9][0-9]{0,2}(,[0-9]{3})?)([.][0-9]{1,2}|/[1-9])?\Z")


@given(st.sets(NUMBERS, min_size=2, max_size=8))
@settings(max_examples=40)
def test_different_numbers_exclude_each_other(writes_numbers: Model, texts: set[str]):
    labels = [writes_numbers.encode(text) for text in texts]
    prefix = writes_numbers.encode("=")
    (answered,) = writes_numbers.ask([prefix], [labels], boundary="number")
    assert 0.0 < sum(map(math.exp, answered.log_probs)) <= 1 + 1e-6


@pytest.fixture(scope="module")
def writes_numbers() -> Model:
    """A model whose next token is a digit, a blank or a mark of a number nearly always."""
    model = tiny("llama", tie_word_embeddings=False)
    with torch.no_grad():
        head = model.hf.get_output_embeddings()
        head.bias = torch.nn.Parameter(torch.zeros(head.weight.shape[0]))
        for text in " $,./0123456789":
            head.bias[model.encode(text)[0]] = 12.0
    return model


def test_what_begins_another_label_is_left_to_that_one(llama: Model):
    prefix = llama.encode("is it? ")
    texts = ("no", "no one", "no one else", "none")
    labels = [llama.encode(text) for text in texts]
    apart = [llama.ask([prefix], [[label]])[0].log_probs[0] for label in labels]
    (together,) = llama.ask([prefix], [labels])
    p, alone = (
        dict(zip(texts, map(math.exp, x), strict=True)) for x in (together.log_probs, apart)
    )
    assert p["none"] == pytest.approx(alone["none"], rel=1e-4)
    assert p["no one"] == pytest.approx(alone["no one"] - alone["no one else"], rel=1e-4)
    left = alone["no"] - alone["no one"] - alone["none"]
    assert p["no"] == pytest.approx(left, rel=1e-4)
