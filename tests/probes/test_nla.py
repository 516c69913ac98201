"""Natural-language autoencoders on tiny models laid out as the released ones: the vector that is
read, where it is put, the words, and the way back, each against transformers alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
import yaml
from chat_models import chat
from probe_records import table_of
from sample_trace import asking
from tiny_nla import checkpoints

from faithscope.interp.errors import UserError
from faithscope.interp.model import Model
from faithscope.interp.verbalise import load_reconstructor, load_verbaliser
from faithscope.interventions import Question, Trace, from_ids
from faithscope.probes.nla import NlaSettings, nla

ASKED = "Is the film positive or negative? Fine film."
CHAIN = "The acting was superb. So it is positive. That is the answer."


def chain(model: Model) -> Trace:
    question = Question("q1", "made", "Fine film.", "label", "positive", ("positive", "negative"))
    ids = model.encode(CHAIN)
    return from_ids(question, model.prompt(ASKED).ids, ids, model.pieces(ids), answer="positive")


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Path, Path]:
    """A model, and a verbaliser and a reconstructor of its width, in folders as on the hub."""
    model = chat("qwen3")
    return model, *checkpoints(model, tmp_path_factory.mktemp("nla"))


def test_each_step_is_described_from_its_last_state(pair: tuple[Model, Path, Path]) -> None:
    model, av, ar = pair
    trace = chain(model)
    settings = NlaSettings(verbaliser=str(av), reconstructor=str(ar), pattern=".", max_new_tokens=6)
    (found,) = nla(model, trace, asking(), settings)
    ids = torch.tensor([[*trace.prompt_ids, *trace.reasoning_ids]])
    with torch.inference_mode():
        streams = model.hf(input_ids=ids, output_hidden_states=True).hidden_states
    assert (found["layer"], found["n_steps"]) == (1, 3)
    verbaliser = load_verbaliser(str(av), model.dtype, str(model.device))
    table = verbaliser.hf.get_input_embeddings()
    rebuilt = []
    for step, text in zip(trace.counted_steps, found["descriptions"], strict=True):
        state = streams[1][0, len(trace.prompt_ids) + step.tokens[1] - 1].float()
        with torch.inference_mode():
            embeds = table(torch.tensor([verbaliser.ids]))
            embeds[0, verbaliser.place] = state / state.norm() * 3
            written: list[int] = []
            for _ in range(6):  # greedily, token by token, without a cache
                logits = verbaliser.hf(inputs_embeds=embeds).logits[0, -1]
                written.append(int(logits.argmax()))
                embeds = torch.cat([embeds, table(torch.tensor([written[-1:]]))], dim=1)
        assert text == verbaliser.tokenizer.decode(written).strip()
        rebuilt.append(_back(ar, model, text) @ state / state.norm())
    assert found["cosines"] == pytest.approx([float(x) for x in rebuilt], abs=1e-5)
    assert found["cut"] == [True] * 3
    assert found["told"] == [False, True, True]
    assert found["early"] == [found["says_answer"][0], None, None]
    assert found["matches"] == [bool(text) for text in found["descriptions"]]


def _back(ar: Path, model: Model, text: str) -> torch.Tensor:
    """What the reconstructor makes of a text, as a unit vector, by another way: the stream before
    the last norm is the last hidden state that a hook on that norm sees."""
    from safetensors.torch import load_file

    ids = torch.tensor([model.tokenizer(f"Text: {text} End")["input_ids"]])
    seen = []
    handle = model.hf.model.norm.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    with torch.inference_mode():
        model.hf(input_ids=ids)
    handle.remove()
    vector = load_file(ar / "value_head.safetensors")["weight"] @ seen[0][0, -1].float()
    return vector / vector.norm()


def test_an_explanation_is_read_between_its_tags(pair: tuple[Model, Path, Path]) -> None:
    verbaliser = load_verbaliser(str(pair[1]), pair[0].dtype, str(pair[0].device))
    encode = pair[0].encode
    stop = verbaliser.tokenizer.eos_token_id
    told = encode("Well. <explanation>\n Of films. </explanation> So.")
    assert verbaliser._read([*told, stop, *told]) == ("Of films.", False)
    assert verbaliser._read(encode("<explanation>Of films")) == ("Of films", True)
    assert verbaliser._read(encode("Of films")) == ("Of films", True)


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        ("tokens", None, "has no tokens"),
        ("tokens.injection_token_id", 3, "0 times, not once"),
        ("tokens.injection_token_id", "x", "tokens has no usable"),
        ("prompt_templates", {"ar": "x"}, "prompt_templates has no av"),
        ("extraction", {"injection_scale": "loud"}, "is no number"),
    ],
)
def test_files_that_do_not_fit_are_refused(
    pair: tuple[Model, Path, Path], tmp_path: Path, key: str, value: object, problem: str
) -> None:
    model, av, _ = pair
    for file in av.iterdir():
        (tmp_path / file.name).symlink_to(file)
    meta = yaml.safe_load((av / "nla_meta.yaml").read_text())
    (tmp_path / "nla_meta.yaml").unlink()
    outer, _, inner = key.partition(".")
    meta[outer] = {**meta[outer], inner: value} if inner else value
    (tmp_path / "nla_meta.yaml").write_text(yaml.safe_dump(meta))
    with pytest.raises(UserError, match=problem):
        load_verbaliser(str(tmp_path), model.dtype, "cpu")


def test_what_does_not_belong_together_is_refused(
    pair: tuple[Model, Path, Path], tmp_path: Path
) -> None:
    model, av, _ = pair
    trace = chain(model)
    with pytest.raises(UserError, match="no value_head"):
        load_reconstructor(str(av), model.dtype, "cpu")
    with pytest.raises(UserError, match="no natural-language autoencoder"):
        load_verbaliser(str(tmp_path), model.dtype, "cpu")
    deep = NlaSettings(verbaliser=str(av), layer=99)
    with pytest.raises(UserError, match=r"nla\.layer"):
        nla(model, trace, asking(), deep)
    wide = replace(load_verbaliser(str(av), model.dtype, "cpu"))
    with pytest.raises(UserError, match="reads vectors of"):
        wide.describe(torch.zeros(1, 3), 2)
    with pytest.raises(FloatingPointError):
        wide.describe(torch.full((1, wide.width), torch.nan), 2)
    assert [*NlaSettings().lacks()] == ["verbaliser"]
    assert not NlaSettings(verbaliser="x").lacks()
    (left,) = nla(model, trace, asking(), NlaSettings())
    assert left["excluded"] == "no_verbaliser"


def test_a_row_has_what_is_named_and_what_another_is() -> None:
    row = {
        "model": "m", "task": "t", "item": "q", "probe": "nla", "variant": "",
        "steps": [0, 1], "n_steps": 2, "n_layers": 3, "layer": 2, "descriptions": ["a", "b"],
        "cut": [False, False], "cosines": [0.5, 0.7], "says_answer": [True, False],
        "told": [False, True], "early": [True, None], "says_other": [0.0, 0.5],
        "matches": [None, None],
    }  # fmt: skip
    (line,) = table_of("nla", [row], resamples=20).to_dict("records")
    assert (line["cosine"], line["says_answer"], line["early"]) == (pytest.approx(0.6), 0.5, 1)
    assert (line["says_other"], line["layer"]) == (0.25, 2)
