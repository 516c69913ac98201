"""Generated ids cut into opener, reasoning and tail, exactly between tokens."""

import pytest
from chat_tokenizers import MARKED, tokenizer

from faithscope.interp.control import encode_text
from faithscope.interp.formats import detect_format
from faithscope.interp.responses import split_response


@pytest.mark.parametrize("name", MARKED)
def test_a_response_is_cut_at_the_closer_between_tokens(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    closer = tuple(tok(fmt.closer, add_special_tokens=False)["input_ids"])
    reasoning = encode_text(tok, "Two plus three makes 5.\n")
    answer = encode_text(tok, "\n\nSo it is 5.")
    cut = split_response(tok, fmt, reasoning + closer + answer)
    assert cut.closed
    assert (cut.opener_ids, cut.reasoning_ids) == ((), reasoning)
    assert cut.tail_ids == closer + answer
    unclosed = split_response(tok, fmt, reasoning)
    assert (unclosed.reasoning_ids, unclosed.tail_ids, unclosed.closed) == (reasoning, (), False)
    empty = split_response(tok, fmt, closer + answer)
    assert (empty.reasoning_ids, empty.tail_ids, empty.closed) == ((), closer + answer, True)


@pytest.mark.parametrize("name", MARKED)
def test_an_opener_that_the_model_wrote_is_set_apart(name: str):
    tok = tokenizer(name)
    fmt = detect_format(tok)
    opener, closer = (
        tuple(tok(t, add_special_tokens=False)["input_ids"]) for t in (fmt.opener, fmt.closer)
    )
    reasoning = encode_text(tok, "Two plus three makes 5.")
    cut = split_response(tok, fmt, opener + reasoning + closer)
    assert (cut.opener_ids, cut.reasoning_ids, cut.tail_ids) == (opener, reasoning, closer)
    alone = split_response(tok, fmt, opener)
    assert (alone.opener_ids, alone.reasoning_ids, alone.closed) == (opener, (), False)


def test_a_closer_spelled_in_ordinary_tokens_is_found_in_the_text():
    tok = tokenizer("smollm3_spelled")
    fmt = detect_format(tok)
    ids = tuple(tok("Two plus three.</think>\n\nSo 5.", add_special_tokens=False)["input_ids"])
    cut = split_response(tok, fmt, ids)
    assert cut.reasoning_ids + cut.tail_ids == ids
    # the token ".</" holds both: it goes to the tail whole
    assert tok.decode(cut.reasoning_ids) == "Two plus three"
    assert tok.decode(cut.tail_ids) == ".</think>\n\nSo 5."
    apart = encode_text(tok, "Two plus three.\n") + encode_text(tok, "</think>\n\nSo 5.")
    assert tok.decode(split_response(tok, fmt, apart).reasoning_ids) == "Two plus three.\n"


def test_the_final_channel_without_analysis_is_all_answer():
    tok = tokenizer("gpt_oss")
    fmt = detect_format(tok)
    ids = tuple(tok("<|channel|>final<|message|>5", add_special_tokens=False)["input_ids"])
    cut = split_response(tok, fmt, ids)
    assert (cut.reasoning_ids, cut.tail_ids, cut.closed) == ((), ids, True)


def test_a_second_analysis_message_is_still_reasoning():
    tok = tokenizer("gpt_oss")
    between = "<|end|><|start|>assistant<|channel|>analysis<|message|>"
    final = "<|end|><|start|>assistant<|channel|>final<|message|>"
    ids = tuple(tok(f"Two{between}plus three{final}5", add_special_tokens=False)["input_ids"])
    cut = split_response(tok, detect_format(tok), ids)
    assert tok.decode(cut.reasoning_ids) == f"Two{between}plus three"
    assert tok.decode(cut.tail_ids) == f"{final}5"


def test_without_marks_everything_is_reasoning():
    tok = tokenizer("qwen2_5")
    ids = encode_text(tok, "Two plus three makes 5.")
    cut = split_response(tok, detect_format(tok), ids)
    assert (cut.reasoning_ids, cut.tail_ids, cut.closed) == (ids, (), True)
