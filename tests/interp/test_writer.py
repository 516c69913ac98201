"""Texts that a server writes in a model's place: the same as it would write here."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

import pytest
from completions_server import CompletionsServer, changed, dies
from families import bushy
from tiny_models import NO_TREE, tiny

from faithscope.interp.answered import Answered
from faithscope.interp.backends import BackendError, BackendLost
from faithscope.interp.backends.server import connect
from faithscope.interp.edits import Knockout
from faithscope.interp.errors import UserError
from faithscope.interp.generation import Generation
from faithscope.interp.model import Model

pytest.importorskip("openai")

LABELS = [[[5, 6], [7], [8, 9, 10]]]


@pytest.fixture(
    scope="module",
    params=["llama", pytest.param("gpt2", marks=pytest.mark.slow), next(iter(NO_TREE))],
)
def here(request: pytest.FixtureRequest) -> Model:
    return tiny(request.param)


@pytest.fixture
def server(here: Model) -> Iterator[CompletionsServer]:
    # a copy, which is written for by nobody
    with CompletionsServer(copy(here)) as running:
        yield running


@pytest.fixture
def there(here: Model, server: CompletionsServer) -> Iterator[Model]:
    here.writer = connect("org/m", [server.url], retries=0)
    server.asked.clear()
    yield here
    here.writer = None


def texts(answers: list[Answered]) -> list[Generation | None]:
    return [a.generated for a in answers]


def same(found: list[Generation | None], expected: list[Generation | None]) -> None:
    assert found == expected
    for a, b in zip(found, expected, strict=True):
        assert (a.gaps if a else ()) == pytest.approx(b.gaps if b else (), abs=2e-5)


def test_answers_are_those_of_this_process(here: Model, server: CompletionsServer):
    prefixes = bushy()[:4]
    asked = (prefixes, LABELS * 4, [40, 0, 7, 40])
    written = here.ask(*asked)
    here.writer = connect("org/m", [server.url])
    try:
        found = here.ask(*asked)
    finally:
        here.writer = None
    same(texts(found), texts(written))
    for a, b in zip(found, written, strict=True):
        assert a.log_probs == pytest.approx(b.log_probs, abs=2e-5)
    assert found[1].generated is None


def stop_at(n: int):
    """A rule that ends a text at its n-th character."""
    return lambda text: len(text) >= n


def test_a_text_ends_where_its_rule_says(here: Model, server: CompletionsServer):
    prefixes = bushy()[:3]
    stops = [stop_at(5), stop_at(20), stop_at(10_000)]
    written = here.ask(prefixes, None, [30, 60, 40], stop=stops)
    here.writer = connect("org/m", [server.url])
    server.asked.clear()
    try:
        found = here.ask(prefixes, None, [30, 60, 40], stop=stops)
        alone = here.generate(prefixes, 60, stop=stop_at(20))
    finally:
        here.writer = None
    same(texts(found), texts(written))
    assert alone == here.generate(prefixes, 60, stop=stop_at(20))
    # asked for no more than a little beyond where the rules end the texts
    assert max(a["max_tokens"] for a in server.asked) < 60


def test_drawn_texts_are_one_request_each(there: Model, server: CompletionsServer):
    prompts = bushy()[:3]
    settings = {"temperature": 1.0, "top_p": 0.9, "seed": (3, 4, 5)}
    found = there.generate(prompts, 48, stop=stop_at(40), **settings)
    assert [a["max_tokens"] for a in server.asked] == [48] * 3
    there.writer = None
    assert found == there.generate(prompts, 48, stop=stop_at(40), **settings)


def test_texts_under_edits_are_written_here(there: Model, server: CompletionsServer):
    prefix = bushy()[0]
    cut = (Knockout((4, None), (1, 2)),)
    if not there.supports_tree:
        # nobody continues an edited prefix there, and nothing is asked of the server
        with pytest.raises(UserError, match=there.name):
            there.ask([prefix], None, 8, edits=[cut])
        assert server.asked == []
        return
    under, plain = there.ask([prefix, prefix], None, 8, edits=[cut, ()])
    # nor is what they are compared with: the arms of a comparison have one writer
    assert server.asked == []
    there.writer = None
    assert texts([under, plain]) == texts(there.ask([prefix, prefix], None, 8, edits=[cut, ()]))


def test_a_server_without_log_probs_is_told_what_it_lacks(there: Model, server: CompletionsServer):
    prefix = bushy()[0]
    server.plan[prefix[0]] = [changed(logprobs=None)]
    with pytest.raises(BackendError, match="--max-logprobs 2"):
        there.ask([prefix], None, 8)


def test_a_server_that_is_gone_is_no_fault_of_a_text(there: Model, server: CompletionsServer):
    prefix = bushy()[0]
    server.plan[prefix[0]] = [dies]
    with pytest.raises(BackendLost, match="no server of org/m answers any more"):
        there.ask([prefix], None, 8)
