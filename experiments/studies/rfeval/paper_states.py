"""What the RFEval paper (arXiv 2602.17053) and the code that it releases state of its settings, and
what they leave open."""

from __future__ import annotations

from faithscope.experiments.analysis.published import Stated

OWN_WORDS = (
    "models, judge and writer of r′ are asked in our words, since the authors' prompts are not "
    "shipped; prompts=FOLDER takes them from a checkout of their repository"
)
STATES = (
    Stated("data.repository", "Abstract"),
    Stated("model.profiles", "C.1, C.2", "the system prompts and limits of each model"),
    Stated("model.template", "C.2", "the structure of each family's prompt"),
    Stated("model.quantize", "C.1", "the models as released"),
    Stated("generate.framing", "4.1", "r′ after the tag that opens the reasoning"),
    Stated("generate.max_new_tokens", "C.1", "32,768 tokens", also=(32768,)),
    Stated("generate.repetition_penalty", "C.1", "1.2, and 1.0 for the Qwen family"),
    Stated("judge.model", "4.1", "o3-2025-04-16"),
    Stated("judge.readings", "D.2", "stances are written as JSON"),
    Stated("naming", "D.1, Table 15", "names of stances"),
    Stated("tests.run", "4.1", "public test cases decide the answers of code"),
    Stated("prompts", "I", "the authors' prompts", any_given=True, stand_in=OWN_WORDS),
    Stated("counterfactual.writer", "B.3", "o3-2025-04-16"),
    Stated("counterfactual.validator", "B.3", "gpt-5-2025-08-07"),
    Stated("counterfactual.shots", "B.3", "three examples in each prompt"),
    Stated("counterfactual.written", "B.3", "r′ are written and validated"),
)
LEAVES_OPEN = (
    *("judge.temperature", "judge.quantize", "paper_compat", "tests."),
    *(
        "counterfactual.temperature",
        "counterfactual.examples",
        "api.temperature",
        "per_step.",
        "annotations",
    ),
)
