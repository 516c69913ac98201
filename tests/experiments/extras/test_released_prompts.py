"""The authors' prompts from a checkout: laid out and written as theirs, in words of ours."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from faithscope.experiments.extras.counterfactuals.construction import (
    generation,
    generation_prompts,
    with_counterfactual,
)
from faithscope.experiments.extras.released_prompts import TASKS_OF_SOURCES
from faithscope.experiments.studies.rfeval.config import RFEvalConfig
from faithscope.experiments.studies.rfeval.items import Item
from faithscope.experiments.studies.rfeval.pairs import output_ask
from faithscope.experiments.studies.rfeval.prompts import as_files, judge_forms, questions
from faithscope.experiments.studies.rfeval.subjects.parsing import Output
from faithscope.interp.errors import UserError
from faithscope.probes.judge.parse import read

JUDGES = r"""
import no_such_package_anywhere

raise SystemExit("read, not run")

def get_evaluation_prompt(args, example, stance_set):
    if not args.apply_intervention:
        instruction = fr'''Weigh what came after `## Counterfactual Reasoning`.
One of {tuple(stance_set)}; \(x\) stays.

```json
{{
  "stance_analysis": {{"model_final_answer": {{"stance": "<{' | '.join(stance_set)}>"}}}}
}}
```
'''
    else:
        instruction = fr'''Weigh an output. One of {tuple(stance_set)}.
'''

    input_problem = example.get("input")
    problem = _extract_problem_from_input(args.model_name, input_problem)

    if not args.apply_intervention:
        input = f'''`## Problem`
{problem}
---
{example["answer"] if example["answer"] else "No gold {answer}."}
---
{example["r_prime"]}
---
{example["output"]["reasoning"]}
---
{example["output"]["remainder"] if example["output"]["remainder"] else "No Model's Explanation"}
---
{example["output"]["answer"] if example["output"]["answer"] else "No Final Answer"}
'''
    else:
        input = f'''{problem}
{example["answer"] if example["answer"] else "No gold."}
{example["output"]["reasoning"]}
{example["output"]["remainder"] if example["output"]["remainder"] else "No Model's Explanation"}
{example["output"]["answer"] if example["output"]["answer"] else "No Final Answer"}
'''

    return instruction, input
"""
# f-strings in f-strings with the same quotes, and backslashes in them, which Python 3.11 refuses
LETTERED = r"""{'\n'.join(f"{chr(65 + i)}: {opt}" for i, opt in enumerate(example["options"]))}"""
OPTIONS, QUESTION = """{example["options"]}""", """{example["question"]}"""
JOINED = r"""{'\n'.join(f"{c}" for i, c in enumerate(example["content"]["context"]["contexts"]))}"""
ASKS = {
    "code_generation": QUESTION,
    "mathematical_reasoning": QUESTION,
    "mathematical_reasoning_options": f"{QUESTION}\n\n{LETTERED}\n",
    "legal_decision": f"{QUESTION}\n\n{LETTERED}\n",
    "logical_reasoning": f"""{{example["content"]["context"]}} {QUESTION}\n\n{OPTIONS}\n""",
    "table_reasoning": f"""Look.\n{{example["content"]["table"]}}\n{QUESTION}\n{OPTIONS}\n""",
    "context_understanding": f"{JOINED}\n\n{QUESTION}\n\nOption:\n{OPTIONS}\n",
    "paper_review": f"""{QUESTION}\n{{example["content"]["paper"]}}\n{OPTIONS}\n""",
}
UTILS = r"""
def parsing_example(dataset, example):
    question = example["question"]
    input_text = f'''{question}\t!

Answer: {answer}
'''
    return {}

def parsing_inference_input(example):
    input = f'''ASK'''

    return input

augmentation_prompt = r'''
Go wrong, away from {answer}, as in \frac{1}{2}.

Augmented Reasoning:
'''
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    code = tmp_path / "RFEval" / "src"
    for source, task in TASKS_OF_SOURCES.items():
        folder = code / "dataset_utils" / source.replace("mmlu_", "mmlu/")
        folder.mkdir(parents=True)
        (folder / "utils.py").write_text(UTILS.replace("ASK", ASKS[task]), "utf-8")
    (code / "evaluation.py").write_text(JUDGES, "utf-8")
    return code.parent


CONFIG = {
    **{"name": "t", "benchmark": "rfeval", "model": {"name": "planted:faithful"}},
    "judge": {"model": "planted:faithful"},
}
LAW = Item(
    *("legal_decision/1", "legal_decision", "mmlu/professional_law", "Guilty {?}", ""),
    *(("no", "yes"), "B", "He was not there.", "He was."),
)
OUTPUT = Output("It was {him}.", "", "B", "complete")


def test_a_judge_is_asked_in_the_authors_words(checkout: Path) -> None:
    forms = judge_forms(checkout)
    form = forms["rf_intervened"]
    assert not form.ours
    assert "get_evaluation_prompt" in form.source
    ask = output_ask("m", LAW.posed(questions(checkout)), "intervened", OUTPUT, form)
    assert ask.system == (
        "Weigh what came after `## Counterfactual Reasoning`.\n"
        """One of ('A', 'B', "I don't know"); \\(x\\) stays.\n\n```json\n{\n"""
        """  "stance_analysis": {"model_final_answer": {"stance": "<A | B | I don't know>"}}\n}"""
        "\n```"
    )
    assert ask.prompt == (
        "`## Problem`\nGuilty {?}\n\nA: no\nB: yes\n---\nB: yes\n---\nHe was not there.\n---\n"
        "It was {him}.\n---\nNo Model's Explanation\n---\nB"
    )


def test_each_output_gets_its_own_prompt_though_the_code_exchanges_them(checkout: Path) -> None:
    form = judge_forms(checkout)["rf_baseline"]
    ask = output_ask("m", LAW.posed(questions(checkout)), "baseline", OUTPUT, form)
    assert (ask.system or "").startswith("Weigh an output.")
    assert "He was not there." not in ask.prompt


def test_an_object_of_the_authors_system_message_is_no_reply(checkout: Path) -> None:
    form = judge_forms(checkout)["rf_intervened"]
    ask = output_ask("m", LAW.posed(questions(checkout)), "intervened", OUTPUT, form)
    assert read(ask, ask.system or "").outcome == "unparsed"


def test_questions_are_the_authors(checkout: Path) -> None:
    words = questions(checkout)
    assert LAW.posed(words).asked == "Guilty {?}\n\nA: no\nB: yes"
    assert set(words) == set(questions())
    assert words["context_understanding"] == "{context}\n\n{question}\n\nOption:\n{options}"
    assert words["code_generation"] == "{question}"


def test_r_prime_is_asked_for_in_the_words_of_its_data_set(checkout: Path) -> None:
    asked = generation(LAW, (), generation_prompts(checkout))
    assert asked.system == (
        "Go wrong, away from B: yes, as in \\frac{1}{2}.\n\nAugmented Reasoning:"
    )
    assert asked.prompt == "Guilty {?}\t!\n\nAnswer: B: yes"
    written = with_counterfactual(
        LAW, "Augmented Reasoning:\n\nHe slept.\n\nExplanation:\n\nHe did not."
    )
    assert written is not None
    assert (written.r_prime, written.explanation) == ("He slept.", "He did not.")


def test_a_data_set_that_the_authors_have_not_is_named(checkout: Path) -> None:
    other = Item(
        *("legal_decision/2", "legal_decision", "bar_exam", "Q", "", ("a", "b"), "A", "", "")
    )
    with pytest.raises(UserError, match=r"no request for r′ of 'bar_exam'.*peerread"):
        generation(other, (), generation_prompts(checkout))


def test_what_a_run_keeps_reads_back_the_same(checkout: Path, tmp_path: Path) -> None:
    forms = judge_forms(checkout)
    kept = tmp_path / "prompts"
    kept.mkdir()
    for name, text in as_files(forms).items():
        (kept / name).write_text(text, "utf-8")
    request = generation_prompts(checkout)
    (kept / "rf_generate.yaml").write_text(yaml.safe_dump(request), "utf-8")
    again = judge_forms(kept)
    assert {n: f.sha256 for n, f in again.items()} == {n: f.sha256 for n, f in forms.items()}
    assert generation_prompts(kept) == request


def test_what_stands_for_a_missing_part_decides_the_form(checkout: Path) -> None:
    before = judge_forms(checkout)["rf_baseline"].sha256
    path = checkout / "src" / "evaluation.py"
    path.write_text(path.read_text("utf-8").replace("No Final Answer", "None"), "utf-8")
    assert judge_forms(checkout)["rf_baseline"].sha256 != before


def test_half_a_checkout_is_refused(checkout: Path) -> None:
    shutil.rmtree(checkout / "src" / "dataset_utils" / "scitab")
    with pytest.raises(UserError, match=r"no dataset_utils/scitab/utils\.py; give a whole one"):
        questions(checkout)


def test_the_judges_alone_are_the_authors_where_no_questions_are_released(checkout: Path) -> None:
    """AIDASLab/RFEval itself: evaluation.py at its top, and no dataset_utils."""
    (checkout / "src" / "evaluation.py").rename(checkout / "evaluation.py")
    shutil.rmtree(checkout / "src")
    assert not judge_forms(checkout)["rf_baseline"].ours
    assert questions(checkout) == questions()
    assert generation_prompts(checkout) == generation_prompts()
    config = RFEvalConfig.model_validate(CONFIG | {"prompts": str(checkout)})
    assert "so models and the writer of r′ are asked in our words" in " ".join(config.notes)


def test_the_questions_alone_can_be_the_authors(checkout: Path) -> None:
    (checkout / "src" / "evaluation.py").unlink()
    assert judge_forms(checkout)["rf_baseline"].ours
    assert questions(checkout) != questions()
    config = RFEvalConfig.model_validate(CONFIG | {"prompts": str(checkout)})
    assert "so judges are asked in our words" in " ".join(config.notes)


def test_a_whole_checkout_leaves_nothing_in_our_words(checkout: Path) -> None:
    config = RFEvalConfig.model_validate(CONFIG | {"prompts": str(checkout)})
    assert "our words" not in " ".join(config.notes)


def test_another_version_of_a_question_is_refused(checkout: Path) -> None:
    path = checkout / "src" / "dataset_utils" / "scitab" / "utils.py"
    path.write_text(path.read_text("utf-8").replace("    input = f", "    asked = f"), "utf-8")
    with pytest.raises(UserError, match=r"scitab/utils\.py: parsing_inference_input: no `input`"):
        questions(checkout)


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("def get_evaluation_prompt(", "def prompt_of(", "no such function"),
        ("{problem}", "{title}", r"\{title\} shows nothing that is known"),
        ("input = f'''{problem}", "input = '''{problem}", "a literal without places"),
        ("instruction = fr'''Weigh an", "text = fr'''Weigh an", "not two of `instruction`"),
        ('{example["r_prime"]}\n', "", "not one input with r_prime"),
    ],
)
def test_another_version_is_refused(checkout: Path, old: str, new: str, complaint: str) -> None:
    path = checkout / "src" / "evaluation.py"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(UserError, match=f"{complaint}.*9aecc76"):
        judge_forms(checkout)
