"""MedQA, CommonsenseQA and ARC-Challenge: the multiple-choice tasks of the paper (SLRC, 4.6).

ARC has questions of three and of five options, and some whose options are called 1 to 4: the
letters that a model is shown follow the options' order.
"""

from __future__ import annotations

from faithscope.experiments.data.tasks.kinds import exam
from faithscope.experiments.data.tasks.sources.hub import HubData

MEDQA = exam(
    HubData("medqa", "GBaker/MedQA-USMLE-4-options", "test"),
    "medical exam questions",
    "medical",
    ("answer_idx", "answer"),
)
COMMONSENSE_QA = exam(
    # the test split of CommonsenseQA has no answers
    HubData("commonsense_qa", "tau/commonsense_qa", "validation"),
    "commonsense questions",
    "commonsense",
    ("answerKey",),
)
ARC_CHALLENGE = exam(
    HubData("arc_challenge", "allenai/ai2_arc", "test", "ARC-Challenge"),
    "science exam questions",
    "science",
    ("answerKey",),
)
