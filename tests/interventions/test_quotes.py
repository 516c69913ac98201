"""The splitter of sentences is shown no more quotation marks than it can look for the ends of."""

import pytest

from faithscope.interventions import sentences
from faithscope.interventions.segment import units


@pytest.mark.parametrize("mark", [*"“”„«»‹›‘`'「", "``", "“\n", "“ a. ", "“\n \n"])
def test_a_paragraph_of_quotation_marks_is_shown_without_them(monkeypatch, mark):
    shown: list[str] = []
    split = sentences.get_sentence_boundaries

    def seen(language: str, text: str):
        shown.append(text)
        return split(language, text)

    monkeypatch.setattr(sentences, "get_sentence_boundaries", seen)
    units(mark * 3_000 + "\n\nThen “it” ends. It does.", "sentences")
    for paragraph in "".join(shown).split("\n\n"):
        assert len(sentences._QUOTES.findall(paragraph)) <= sentences.MOST_QUOTES
    assert "“it”" in shown[0]


def test_quotation_marks_of_prose_are_shown():
    text = "He said “Hello. World.” She’s fine; it isn't. `x` is 3. «Oui. Non.» So it ends."
    assert sentences._with_few_quotes(text * 20) == text * 20
    assert "’" not in sentences._QUOTES.pattern  # an apostrophe, as in it’s
    assert not sentences._QUOTES.findall("isn't they're")
