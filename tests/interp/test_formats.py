"""Marks of reasoning as chat templates name them, and as users state them."""

import copy

import pytest
from chat_tokenizers import TEMPLATES, tokenizer

from faithscope.interp.control import control_token_at_an_end, encode_text
from faithscope.interp.errors import UserError
from faithscope.interp.formats import detect_format
from faithscope.interp.marks import MARKS, unknown_marks
from faithscope.interp.prompts import render
from faithscope.interp.responses import split_response

ASKED = [{"role": "user", "content": "What is 2 + 3?"}]
REASONING, ANSWER = "Two plus three makes 5.\n", "\n\nSo it is 5."


def with_template(addition: str, begins: str = ""):
    """ChatML that names something where it looks for earlier reasoning, and may open a block."""
    tok = copy.deepcopy(tokenizer("smollm2"))
    head = "{%- for m in messages %}{% if " + repr(addition) + " in m['content'] %}{% endif %}"
    head += "{% endfor %}"
    tok.chat_template = head + tok.chat_template + begins
    return tok


PAIRS = [m for m in MARKS if m.name != "harmony"]


@pytest.mark.parametrize("marks", PAIRS, ids=lambda m: m.name)
def test_a_template_that_names_known_marks_has_their_format(marks):
    for named in (marks.closer, f"{marks.opener}…{marks.closer}"):
        if marks.shown_by and marks.shown_by not in named:
            continue
        tok = with_template(named)
        fmt = detect_format(tok)
        assert (fmt.name, fmt.closer) == (marks.name, marks.closer)
        prompt = render(tok, fmt, ASKED)
        assert prompt.text.endswith(fmt.opener)
        response = encode_text(tok, f"{REASONING}{marks.closer}{ANSWER}")
        cut = split_response(tok, fmt, response)
        assert tok.decode(cut.reasoning_ids) == REASONING
        assert tok.decode(cut.tail_ids) == f"{marks.closer}{ANSWER}"
    # a template that opens the block itself
    tok = with_template(marks.closer, begins=f"{{{{ {marks.opener!r} }}}}")
    assert render(tok, detect_format(tok), ASKED).opener_by_template


def test_a_line_break_after_the_opener_is_read_off_the_template():
    assert detect_format(with_template("<seed:think>\n")).opener == "<seed:think>\n"
    assert detect_format(with_template("<seed:think>")).opener == "<seed:think>"
    assert detect_format(with_template("</thought>")).opener == "<thought>\n"


def test_a_template_that_opens_the_answer_asks_for_no_thinking():
    tok = with_template("<|END_THINKING|>", begins="<|START_RESPONSE|>")
    assert not render(tok, detect_format(tok), ASKED).opener_in_prompt


@pytest.mark.parametrize(
    "mark",
    [
        *("</my_think>", "[/REASONING]", "◁/mull▷", "<|end_of_reasoning|>", "<|thinking_end|>"),
        *("<｜end▁of▁thinking｜>", "<|/thought|>", "<|thoughts|>"),
    ],
)
def test_a_template_with_marks_that_are_not_known_is_refused_and_users_may_state_them(mark):
    tok = with_template(mark)
    with pytest.raises(UserError, match=r"model\.marks") as refused:
        detect_format(tok, name="org/m")
    assert str(refused.value).startswith(f"org/m: its chat template names {mark}, ")
    assert not detect_format(tok, marks="none").marks
    fmt = detect_format(tok, marks=["<mull>\n", mark])
    assert (fmt.opener, fmt.closer) == ("<mull>\n", mark)
    response = encode_text(tok, f"{REASONING}{mark}{ANSWER}")
    assert tok.decode(split_response(tok, fmt, response).reasoning_ids) == REASONING


def test_templates_of_models_name_no_unknown_marks():
    for path in TEMPLATES.glob("*.jinja"):
        template = path.read_text("utf-8")
        assert any(m.shown_in(template) for m in MARKS) or not unknown_marks(template)


@pytest.mark.parametrize(
    ("begins", "opener"),
    [
        ("{%- macro op(t) -%}<|open|>{{ t }}<|sep|>{%- endmacro -%}{{ op('think') }}",
         "<|open|>think<|sep|>"),
        ("{{ '<think' + ':6124c78e' + '>' }}", "<think:6124c78e>"),
        ("{% if thinking %}{{ '<mm:' + 'think>' }}{% endif %}", "<mm:think>"),
    ],
)  # fmt: skip
def test_marks_that_only_a_rendered_prompt_shows_are_found(begins, opener):
    # a template that strips the marks of other families has its own all the same
    for named in ("x", "</think>"):
        fmt = detect_format(with_template(named, begins=begins))
        assert (fmt.opener, "/" in fmt.closer or "close" in fmt.closer) == (opener, True)


@pytest.mark.parametrize("begins", ["<ifm|think_fast>", "{{ '<' + 'scratchpad>' }}", "[REASON]"])
def test_unknown_marks_that_a_prompt_ends_with_are_refused(begins):
    with pytest.raises(UserError, match=r"model\.marks"):
        detect_format(with_template("</think>", begins=begins))


@pytest.mark.parametrize(
    ("marks", "problem"),
    [
        ("think_tag", "did you mean 'think_tags'"),
        (["<a>"], r"give \[OPENER, CLOSER\]"),
        (["<a>", "<a>"], "two different texts"),
        (["", "</a>"], "two different texts"),
    ],
)
def test_marks_that_are_none_are_refused(marks, problem):
    with pytest.raises(UserError, match=problem):
        detect_format(tokenizer("smollm2"), marks=marks)
    with pytest.raises(UserError, match="has no chat template"):
        detect_format(tokenizer("gpt2"), marks="think_tags")
    assert detect_format(tokenizer("mimo"), marks="think_tags").opener == "<think>\n"


@pytest.mark.parametrize("name", ["qwen3", "smollm3_spelled", "ministral3_reasoning"])
def test_a_block_within_the_reasoning_is_part_of_it(name):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    opener, closer = fmt.opener.rstrip(), fmt.closer
    reasoning = f"They may write {opener}12{closer} there. So 5."
    ids = tuple(tok(f"{reasoning}{closer}\n\n5", add_special_tokens=False)["input_ids"])
    cut = split_response(tok, fmt, ids)
    assert cut.reasoning_ids + cut.tail_ids == ids
    assert tok.decode(cut.tail_ids).lstrip(".") == f"{closer}\n\n5"
    # an inner block that ends is no end of what is still open
    open_ids = tuple(tok(reasoning, add_special_tokens=False)["input_ids"])
    assert not split_response(tok, fmt, open_ids).closed


@pytest.mark.parametrize(
    "text",
    [
        *("{% if enable_thinking %}", "<|no_think|>", "<|/no_think|>", "<|reasoning_effort|>"),
        *("message.reasoning_content", "[THOUGHTS]", "a < b thinking > c"),
    ],
)
def test_what_is_no_mark_is_not_taken_for_one(text):
    assert not unknown_marks(text)


def test_a_text_that_was_rendered_begins_or_ends_with_a_control_token():
    tok = tokenizer("smollm2")
    for text in ("Hi<|im_end|>\n", "<|im_start|>user\nHi", " <|endoftext|>Hi"):
        token = control_token_at_an_end(tok, text)
        assert token is not None
        assert text.strip().startswith(token) or text.strip().endswith(token)
    for text in ("What is <|im_end|> for?", "Hi", "It ends in </think>"):
        assert control_token_at_an_end(tok, text) is None
