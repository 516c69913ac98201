"""Parsers of answers, on what models really write."""

import time
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faithscope.experiments.data.answers import (
    first_label,
    first_number,
    last_category,
    last_label,
    last_number,
)
from faithscope.experiments.data.choices import first_choice, last_choice
from faithscope.experiments.data.expressions import same_answer
from faithscope.experiments.data.numbers import canonical_form, canonical_number, find_numbers

SENTIMENT = ("positive", "negative")
NO_LABEL = ("neutral", "mixed")
NEWS = ("World", "Sports", "Business", "Sci/Tech")


NUMBERS: dict[str | None, tuple[str, ...]] = {
    "80": (
        "60 pencils went. Therefore, the answer (arabic numerals) is 80. \n\n\nQ: 30 students?",
        "So it is 16.\n\n# Answer\n\n80",
        "# Answer\n\n160 / 2",
        "The answer is:\n\nx + y = 138\n58 + y = 138\ny = 80",
        "The answer is: 7 * 80 = 560\n\n560 / 7 = 80",
        "I put it in <answer> and </answer> tags. It is 80.",
        "The form is <answer> final answer here </answer>. The answer is 80.",
        "The answer is obvious: 80.",
        "9 * 8 + 8 = <<9*8+8=80>>80 eggs",
        "9 * 8 + 8 = 80. The answer is correct.",
        "\\boxed{81}. Wait, that is wrong. The final answer is 80.",
        "<answer>81</answer> So the final answer is 80 eggs.",
        "The answer is 320 / 4 = 80 meters per minute.",
        "The answer is 60 + 10 = 70, 70 + 10 = 80.",
        "The answer is 80. So the final answer is",
    ),
    "18": (
        "She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18",
        "**Answer: 18**\n\nHere 9 * 2 is used in step 3 of 4",
        "18\n\nShe sells 9 eggs for $2 each.",
        "She earns $18 (9 * 2).",
        "That makes 18.\n#### 18\n\nQuestion: Tom has 4 pens and buys 5.\n#### 9",
        "#### 18\n\nTom has 4 pens and buys 5.\n#### 9",
        "The answer is 18.\n\nProblem: 4 and 5?\nThe answer is 9.",
        "\\boxed{18}\n\nQ: 4 and 5?\nA: \\boxed{9}",
        "Question: 9 eggs?\nAnswer: 18",
        "#### Step 1\nWe add 3.\n#### 18",
        "so it is...18",
        "\\boxed{\\$18}",
        "\\boxed{18.00}",
        "\\boxed{\\text{18 dollars}}",
        "\\boxed{18\\text{ dollars per day}}",
        "\\boxed{18 \\text{ km/h}}",
        "The answer is $18 per day.",
        "The answer is 18, since 9*2=18.",
        "The answer is: 18",
        "The final answer is $18$.",
        "Final Answer: 18 eggs",
        "The total is 18 dollars.",
        "She makes $18 every day at the farmers' market.",
        "#### 18 dollars",
        "#### x = 18",
        "#### $18",
    ),
    "10": (
        "The answer is 10.",
        "The answer is 10.0",
        "The answer is \\boxed{10}. This took 3 steps of 2 minutes.",
        "The answer is 10. It took 3 steps of 2 minutes.",
        "The answer is 10. She had to wait 2 minutes.",
        "It is **10**.",
        "答案是10。",
        "所以还剩10支笔。",
        "答えは10です。",
        "답은 10입니다.",
        "คำตอบคือ10",
        "the answer is\n\n10.",
        "<answer>10</answer>",
        "<answer> 10 </answer>",
        "<answer>\n10\n</answer>",
        "So 12 - 2 = 10.\n<answer>10</answer>",
        "12 pens, 2 lost.\n\n<answer>10</answer>",
        "<answer>$10</answer>",
        "<answer>10 pens</answer>",
        "<b>10</b>",
        "The answer is <b>10</b>.",
        "Final answer: <answer>10</answer>",
        "<final>10</final>",
        "**Answer:** <u>10</u>",
        "<answer>\n\\boxed{10}\n</answer>",
        "<answer>The answer is 10.</answer>",
        "<answer>x = 10</answer>",
        "<ANSWER>10</ANSWER>",
        "<final_answer>10</final_answer>",
        "<answer>10",
        "<p>The answer is <strong>10</strong>.</p>",
        "<answer>10%</answer>",
        "\\boxed{10} apples",
        "答案是10个。",
        "答案：<b>10</b>",
        "Ответ: 10",
        "Respuesta: 10",
        "The answer is 10kg",
        "The answer is 10 kg of rice.",
    ),
    "1234.5": (
        "So the total is **$1,234.50**.",
        "<answer>1,234.5 dollars</answer>",
    ),
    "1234": (
        "$$\\boxed{1{,}234}$$",
        "<result>1,234</result>",
    ),
    "0.75": (
        "\\[\\boxed{\\frac{3}{4}}\\]",
        "3/4 of the cake",
    ),
    "-1/3": ("\\boxed{-\\dfrac{1}{3}}",),
    "70000": (
        "\\boxed{70,\\!000 \\text{ dollars}}",
        "The result:\n\n70000",
    ),
    "15": (
        "That is 15% of it",
        "So 18 - 3 = 15 eggs",
    ),
    "-3": (
        "The temperature is -3 degrees.",
        "差是-3。",
        "<answer>-3</answer>",
        "\\boxed{-3}",
    ),
    "-7": ("The change is −7.",),
    "-5": (
        "He owes -$5",
        "The answer is -$5.",
    ),
    "12": (
        "15-3 = 12",
        "The answer is 12, as the 3rd row says",
        "Final answer: 12 pens, since 3 * 4 = 12 and 1 box is 4",
        "The answer is 10. Wait, that leaves out one box: 12.",
        "There are 12 pens, not 5.",
        "So it is 12 rather than 5.",
        "So 12 out of 20 pass.",
        "The area is 12 cm^2.",
        "答案是１２。",
        "\\boxed{12\\text{ m}}",
        "\\boxed{12\\text{m}}",
        "The answer is 12 apples.",
        "= 3 * 4 = 12 apples",
        "- Total: 12",
        "| Total | 12 |",
    ),
    None: (
        "Six: 1\n\nSo the final answer is",
        "It costs 100.\n\nSo, the final answer is:\n",
        "The answer is 72 hours / 3 weeks = 23 hours.\nSo, Jim spends 23 and 23 times 3 = 78",
        "The answer is 3 + 4 = 7; 7 * 2 = 14.",
        "The answer is x = 5; y = 3.",
        "The answer is 0,111.",
        "Therefore, the answer (arabic numerals) is 16 flashlights and 9 candles.",
        "It is 4 days on.\n\n# Answer\n\nSaturday",
        "By 0.36.\n\n# Answer\n\nDana has larger meals than Anna.",
        "The answer is Saturday. It is 4 days on.",
        "It is 2.\n\n# Answer\n\n(2, 1)",
        "I put it in <answer> tags. There are 3 * 4",
        "# Answer\n\n0, -1, 1",
        "So $a = 2$.\n\n# Answer\n\n2(x^2 - 6x + 10)",
        "# Answer\n\n-x - y - z = 0",
        "It comes to 15-3",
        "between 10,20",
        "She has H2O and x2",
        "No number at all",
        "",
        "1/0",
        "Year 12/25/2024",
        "The answer is eighteen. It took 9 and 2.",
        "The answer is 10 or 12.",
        "The answer is 3 to 5.",
        "The answer is 3-5.",
        "The answer is 3 and 5.",
        "The answer is either 3 or 5.",
        "The answer is somewhere between 10 and 12 pens.",
        "It is between 3 and 5",
        "It is between 3 pens and 5 pens.",
        "It goes from 3 to 5.",
        "It goes from $3 to $5.",
        "It is 3-5.",
        "It is 3–5 pens.",
        "It is 3 to 5 pens.",
        "It is 3 or 4.",
        "So she needs either 3 pens or 4 pens.",
        "一共3到5支。",
        "#### between 3 and 5",
        "It takes 5k.",
        "It takes 5M people.",
        "She has 5 dozen eggs.",
        "The answer is not 5.",
        "答案不是10。",
        "\\boxed{3} or \\boxed{4}",
        "It is 3. So \\boxed{5\\sqrt{2}}",
        "It takes 2 hours and 30 minutes.",
        "It begins at 2:30.",
        "She has 3 + 4.",
        "Here 18 > 5.",
        "Both were ill with COVID-19.",
        "11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111",
        "1e999",
        "\\boxed{R - 7}",
        "\\boxed{18 - T}",
        "\\boxed{p - 1}",
        "\\boxed{m - 18}",
        "\\boxed{x_1 - 7}",
        "\\boxed{3q}",
        "\\boxed{2T}",
        "\\boxed{(10,200)}",
        "\\boxed{[1,100]}",
        "\\boxed{(3,125)}",
        "The answer is (3,125).",
        "\\boxed{\\text{Box 3}}",
        "The answer is Player 2.",
        "\\boxed{T - 18}",
        "\\boxed{(312,123,231)}",
        "\\boxed{7 (mod 11)}",
        "The answer is 7 (mod 11).",
        "The answer is 3 dozen.",
        "<answer>(3, 4)</answer>",
        "<answer>10 or 12</answer>",
        "<answer>none</answer>",
        "\\boxed{n+1}",
        "\\boxed{12k}",
        "\\boxed{2\\sqrt{3}}",
        "\\boxed{A_3}",
        "\\boxed{\\{1,2,3\\}}",
        "\\boxed{(1,234)}",
        "\\boxed{[0, 5)}",
        "\\boxed{x \\ge 5}",
        "\\boxed{5!}",
        "\\boxed{\\binom{5}{2}}",
        "\\boxed{f(3)}",
        "\\boxed{|5|}",
        "\\boxed{\\log 5}",
        "\\boxed{5 \\mod 7}",
        "\\boxed{3 \\pmod{7}}",
        "\\boxed{11_2}",
        "\\boxed{101_{2}}",
        "\\boxed{1:2}",
        "\\boxed{3 : 4}",
        "\\boxed{5+2i}",
        "\\boxed{10^{10^{10}}}",
        "\\boxed{2AB}",
        "\\boxed{ab}",
        "\\boxed{\\frac{x}{2}}",
        "\\boxed{7\\text{ or }8}",
        "\\boxed{Q4}",
        "\\boxed{\\text{Team 4}}",
        "\\boxed{\\text{Day } 5}",
        "\\boxed{5\\text{ dozen}}",
        "The answer is x - 3.",
        "The answer is 3x.",
        "The answer is (1, 2).",
        "The answer is 2 dozen eggs.",
        "The answer is 5 mod 7.",
        "The answer is Team 3.",
        "The answer is room 12.",
        "The answer is 5 apples and 3 pears.",
        "The answer is 12:30.",
        "The answer is one.",
        "There are T - 18 left.",
        "She has 2 dozen.",
        "We get 7 (mod 11).",
        "Total = 12 + x",
        "the number is 5'3",
        "#### (3,125)",
        "#### 3 dozen",
    ),
    "3": (
        "- 3 apples are left",
        "The answer is 3 out of 4.",
        "The answer is 3-year-old",
    ),
    "2.5": ("It takes 2 1/2 hours.",),
    "1/3": ("about 1/3.",),
    "1500": ("= 1.5 \\times 10^{3}",),
    "200000": (
        "roughly 2e5.",
        "\\boxed{2 \\times 10^5}",
    ),
    "5": (
        "The answer is 5km.",
        "She gives 3 pens to 5 children.",
        "It is at least 5.",
        "It takes 5m of rope.",
        "\\boxed{x=5}",
        "The answer is 5 (five).",
        "Thus x = 4 and y = 5",
    ),
    "42": (
        "The answer is 42.\n\nStep 4: Check.",
        "The total is 42.\n4. Check the result",
    ),
    "72": ("Answer: 48/2 = 24 in May. Together 48 + 24 = 72.",),
    "17": ("The answer is 12 more than 5, so 17.",),
    "3.14": (
        "The answer is 3.14 to 2 decimal places.",
        "It is 3.14 to 2 decimal places.",
        "\\boxed{\\approx 3.14}",
    ),
    "9": (
        "The answer is 12-3 = 9",
        "It comes to 12-3 = 9.",
    ),
    "4": (
        "It is between 3 and 5, so 4.",
        "\\boxed{4\\text{ pairs}}",
    ),
    "8": ("The sum of 3 and 5 is 8.",),
    "1000": (
        "It is 10**3.",
        "It is 10^3.",
        "\\boxed{1{,}000}",
        "Answer: $1,000",
        "The answer is 10<sup>3</sup>",
    ),
    "5000": ("It takes $5k.",),
    "2500000": ("It costs $2.5 million.",),
    "120": ("一共120元",),
    "1200": (
        "合計は1,200円です。",
        "الجواب هو ١٬٢٠٠",
    ),
    "12000": ("共1.2万元",),
    "0.5": (
        "the answer is .5",
        "<answer>1/2</answer>",
        "The answer is 0.5%.",
    ),
    "7": (
        "The answer is 7 . ",
        "I will write <answer></answer> tags. 3+4=7.\n<answer>7</answer>",
        "\\boxed{3+4=7}",
    ),
    "3.5": ("\\boxed{3\\frac12}",),
    "50": ("\\boxed{50\\%}",),
    "90": ("\\boxed{90^\\circ}",),
    "5.3": ("The answer is approximately 5.3.",),
    "6": ("so 18/3 = 6.",),
}
FIRST_NUMBERS: dict[str | None, tuple[str, ...]] = {
    "18": (
        " 18.",
        " $18 per day, from 9 eggs at $2.",
        " 18\n\nThe 3 eggs she eats",
        "\n\n**18**\n",
        " 18 (9*2)",
    ),
    "7": (
        " 3 + 4 = 7.",
        " 3 apples + 4 apples = 7 apples and 2 pears",
        " 3 + 4 = 7 = 7",
    ),
    "9": (" 16 - 3 - 4 = 9, 9 * 2 = 18",),
    "10": (
        " 10. Check: 5 + 6 = 11",
        " 10. The reason is 5",
        "是10。",
        "10支笔。",
    ),
    "12": (
        " \\boxed{12}",
        " 12 x-rays",
    ),
    "-3": (" -3",),
    None: (
        " 12 hours and 30 minutes",
        " 10 or 12",
        " between 3 and 5.",
        " 3-5",
        " not 5.",
        " 5\\sqrt{2}",
        " unclear.\n12",
        "",
        " 3200 / 16 * 2 =",
        " 3200 / 16 * 2 pounds.",
        " 3 + 4 = 7 * 2",
        " 3 + 4 = 7*2",
        " 70*2.",
        " 3 apples * 60.",
        " goes from 3 pens to 5 pens",
        " 70+ people",
        " 12 - 15 of them",
    ),
    "0.5": (" $\\frac{1}{2}$",),
    "30": (":\n\\[\n\\boxed{30}\n\\]",),
    "1000": (" 10^3",),
    "2000000": (" 2 million",),
}
CHOICES: dict[int, dict[str | None, tuple[str, ...]]] = {
    4: {
        "B": (
            "The answer is (B).",
            "The answer is B. A patient with this would die.",
            "Answer:\n\nb",
            "A patient has a fever.\nB. Vitamin A",
            "A) one B) two C) three. So (B)",
            "I think it must be B",
            "B\n\nA has no fur, and C and D are fish.",
            "the answer is b, since it has fur",
            "B is correct. A, C and D are incorrect.",
            "So it is B.\n\nOptions:\nA. w\nB. x\nC. y\nD. z",
            "\\boxed{B. otter}",
            "Answer: B\n\nQuestion: Which one?\nA. x\nB. y\nAnswer: C",
            "答案是B。",
            "정답은 B입니다.",
            "คำตอบคือB",
            "الجواب هو B",
            "Die Antwort ist B.",
            "Everything except B is plausible, hence B.",
            "The correct answer is B. Here's why: A is heat, and option B is correct, it is work.",
            "\\boxed  {B}",
            "Final answer - B",
            "My choice: B\nConfidence: A lot",
            "Vitamin C is the answer, so option B.",
            "The answer is vitamin C, which is option B.",
            "**Answer:** $\\mathbf{B}$",
            "Answer: $B$",
            "答案：B",
            "Réponse : B",
            "الإجابة: B",
            "The answer is Ｂ.",
            "The answer is Ⓑ",
            "The answer is 𝐁",
            "Option A) is wrong. Option B) is right.",
            "<answer>B</answer>",
            "The answer is (B) Wrong answer due to fish",
            "Answer: B. Never",
            "answer is B, Not A",
            "The answer is B: Nothing happens",
            "Answer: B. Excluded from the list",
            "Answer: option B",
            "Answer = B",
            "Answer - (B)",
            "Final Answer: B) 12",
            "The final answer is: $\\boxed{B}$",
            "Therefore, B.",
            "B\n",
            "(B)",
            "B.",
            "b)",
            "**B**",
            "答案：（B）",
            "정답: B. 아니다",
            "答えはBです。",
            "The correct answer would be option B (false).",
            "I would choose B.",
            "Select B",
            "The answer is not A. It is B.",
            "A is incorrect; the answer must be B.",
            '{"reasoning": "A looks right", "answer": "B"}',
        ),
        "C": (
            "\\boxed{C} is right. D is wrong.",
            "\\boxed{\\text{C}}",
            "The answer is a matter of taste, so C",
            "Option B is out. The correct option is C because A is a trap",
            "Answer: C\nOption D would be right if it had fur.",
            "A is wrong, B is wrong, so C",
            "The answer is B. Wait, C fits better. So C.",
            "正确答案为C，因为A是鱼。",
            "選項Cが正しい",
            "Answer: I think it is C",
            "Eliminating A, B, and D, the answer has to be C.",
            "The answer cannot be A. The answer cannot be B. So the answer: C",
            "\\boxed{\\text{C: the lung}}",
            "\\boxed{(C)\\ \\text{lung}}",
            "\\boxed{ C }",
            "Answer is option (c).",
            "<answer>C</answer>",
            "<answer> (C) </answer>",
            '{"answer": "C"}',
            "ANSWER: C\n",
            "The answer is: C) 12 m. (Not A or B.)",
            "답: C",
            "Antwort: C",
            "<think>A is right</think>\n<answer>C</answer>",
            "The answer is Group B streptococcus, so C",
            "I think the answer is C but I'm not sure.",
            "The answer is most likely C.",
            "Answer: neither A nor B, so C",
            "答案为 C. 不正确",
            "Correct Answer: C. Not true",
            "Option C is the correct answer.",
            "Choose (C).",
            "'answer': 'C'",
        ),
        "D": (
            "**Answer: D**",
            "**Answer: D**\n\n- Option A: incorrect, a fish\n- Option C: incorrect, a newt",
            "Only D remains. A is wrong.",
            "The correct option is (D), not (A).",
            "The answer would be C if fish had fur; D is right.",
            "所以选择D",
            "Answer: D. Impossible to tell",
            "Answer: It is not B, the answer is D",
            "Answer: rules out C, leaving D",
            "Answer: D, not B",
            "That rules out A and B. C fails too, so we are left with D.",
            "\\boxed{\\mathrm{D}}",
            "The answer is blood type A, i.e. option D",
            "Answer: D. None of A-C fits",
            "Therefore, the correct option is\n\n**(D)**",
            "the answer is (d) all of the above",
            "Thus the best choice is D.",
            "I'd say it's D.",
        ),
        None: (
            "A patient came in.",
            "The answer is not B",
            "The answer is E",
            "The answer is A or B",
            "None of the options A-D fits",
            "Both A and C are correct.",
            "\\boxed{A, C}",
            "答案是A还是B？",
            "",
            "Actually this one is tricky, I'm unsure",
            "I cannot determine the answer.",
            "Error: rate limited",
            "A definitive answer is impossible here.",
            "\\boxed{4}",
            "The correct answer is Vitamin C.",
            "The answer is hepatitis B.",
            "The answer is Group A streptococcus.",
            "Ответ: Б",
            "The answer is B (or C if the valve is open).",
            "Treat with vitamin D.",
            "It is caused by influenza A.",
            "The blood group is type B.",
            "She has stage B disease.",
            "Plan B works.",
            "The vertices are A, B and C.",
            "Triangle ABC has angle C.",
            "Temperature is 37 C",
            "The current is 5 A.",
            "The answer is A patient.",
            "The answer is A and B.",
            "The answer is both A and B.",
            "The answer is A, B, and C.",
            "The answer is A/B.",
            "Answer: A & C",
            "Answer: A B",
        ),
        "A": (
            "The answer is A because it has fur",
            "\\boxed{\\mathbf{A.}}",
            "Respuesta: A",
            "The patient has hepatitis C. Answer: A",
            "The answer is definitely (A).",
            "The answer is A.",
            "The answer is a.",
            "The answer is (A) and not (B).",
            "The answer is (A), not (B).",
            "The answer is A rather than B.",
        ),
    },
    2: {
        "B": (
            "Water boils at 50 C here.\n\nAnswer: B. False",
            "The answer is (B) False.",
            "Answer: B) False",
            "**Answer: B. False**",
            "The answer is B: False",
            "\\boxed{B. False}",
            "\\boxed{B}",
            "Answer: B. Wrong",
            "Answer: B. Out of stock",
            "A. True\nB. False\n\nAnswer: B. False",
            "A is what most people think. Answer: B. False",
            "Option A says true. The claim is wrong. The answer is (B) False.",
            "A: entailment, B: not entailment.\nThe answer is B: not entailment.",
            "The correct choice is B (not entailment).",
            "The answer is B - not entailment",
            "Answer: B — false",
            "正确答案是B：错误",
        ),
    },
    3: {
        "C": (
            "The passage does not say.\n\nAnswer: C. Not enough information",
            "The answer is (C) Not known.",
            "The answer is: (C) Not answerable",
            "So the answer is C. Incorrect",
            "The answer is C. Cannot be determined",
            "Answer: C - Undetermined",
        ),
        "A": ("Answer: (A) Not A, but both are healthy",),
    },
    5: {
        "E": (
            "So \\boxed{\\text{E}}",
            "\\boxed{E: A polygenic risk score}",
            "A and C are true, so the answer is E (both A and C).",
        ),
        "B": (
            "\\boxed{\\textbf{(B)}\\ 12}",
            "We get \\boxed{E = mc^2}. Answer: B",
            "The energy is \\boxed{E = hf}. Therefore the answer is \\boxed{B}",
            "\\boxed{\\text{(B) }}",
            "\\boxed{B: 12}",
        ),
        "D": (
            "\\boxed{A = \\pi r^2}, so the answer is D.",
            "Given that there is only one answer (E), it is D.",
            "The correct letter of the right option is D.\n39.1°C (102.3°F) is high.",
            "The options are:\nA. Some\nB. None\nD. All\n\nD. All",
            "\\boxed{B}. Wait, no. The final answer is D.",
            "The answer is (A). You should choose option (D).",
        ),
        None: (
            "The answer is E. coli.",
            "Let us evaluate each option:\nA. Some do.\n- It is.\nB. None do.\n- So.\nC. M and",
            "A. It is so.\n- That is clear.\nB. What is the proportion of",
            "Temperature: 38.4°C (101.1°F)",
            "It is caused by C. difficile, so nothing helps.",
            "Those who have a Ph.D.have Beijing household registration",
            "A 65-year-old man takes etoposide (Veurin-A).",
            "\\boxed{A = \\pi r^2}",
            "\\boxed{D_{max}}",
            "\\boxed{C_6H_{12}}",
            "\\boxed{B^2}",
        ),
        "C": ("\\boxed{\\textbf{(C)}}",),
        "A": ("$\\boxed{\\textbf{(A) } 12}$",),
    },
    10: {
        "D": ("The gap is \\boxed{\\langle H\\rangle \\ll \\Delta E}. \n\n**Answer: D**",),
        "C": ("Energy: \\boxed{4 J}. The answer is (C).",),
        "J": ("The best answer is J.",),
        "I": (
            "I'd go with I.",
            "The answer is I.",
        ),
        None: ("I think I is right",),
    },
}
OF_OPTIONS: dict[tuple[str, ...], dict[str | None, tuple[str, ...]]] = {
    ("Yes.", "No.", "Wait, no"): {
        "B": ("The answer is B. No. It is so.", "Answer: (B) No.\nIt is."),
        "C": ("The answer is C. Wait, no", "The answer is B. No, wait, it is C. The answer is C."),
        None: ("The answer is (B) is incorrect.",),
    },
    ("15", "-15", "D/(M-3)", "-15", "C"): {
        "A": ("Answer: (A) 15", "The answer is 15.", "A: 15"),
        "B": ("Answer: B. -15",),
        "C": ("So the answer is C (D/(M-3)).", "The answer is D/(M-3).", "(C) D/(M-3)"),
        "D": ("The answer is D, -15.",),
        "E": ("Answer: E\nNo.1 is of type A.",),
        None: ("Answer: -15", "So the answer is A (C)."),
    },
    ("Paris", "Vitamin C", "hepatitis B", "None of the above"): {
        "B": (
            "The answer is Vitamin C.",
            "\\boxed{\\text{Vitamin C}}",
            "The answer is B. Vitamin C",
        ),
        "C": (
            "The answer is hepatitis B.",
            "Answer: (C) hepatitis B",
            "The correct answer is hepatitis B, option C.",
        ),
        "A": (
            "**Answer:** Paris",
            "\\boxed{\\text{Paris}}",
        ),
        "D": ("The answer is none of the above.",),
        None: (
            "The answer is B. hepatitis B",
            "The answer is vitamin C deficiency.",
        ),
    },
    ("True", "False"): {
        "B": (
            "The answer is False.",
            "Answer: False",
            "<answer>False</answer>",
            "<answer>B. False</answer>",
            "<answer>\n(B)\n</answer>",
            "Answer: **B** False",
            "Answer: B False",
            "Answer: B\nFalse",
            "B. False",
            "B. False\n\nThe claim says A, which is not so.",
        ),
        None: ("Answer: B. True",),
        "A": ("The claim is A. True",),
    },
    ("Yes", "No"): {
        "B": (
            "Answer: No",
            "The answer is No, because fish have no fur.",
            "Answer: B. No",
        ),
        "A": ("Answer: A. Yes",),
    },
    ("Both", "Neither", "One"): {
        "B": ("Answer: B) Neither",),
    },
    ("S. aureus", "E. coli", "a", "b", "c"): {
        "B": ("The answer is E. coli.",),
    },
    ("C. difficile infection", "x1", "x2", "x3"): {
        "A": ("The answer is C. difficile infection.",),
    },
    ("flu", "C. difficile", "x2", "x3"): {
        "B": ("Answer: C. difficile",),
    },
    ("Refuse", "Disclose", "1", "1.5 mg"): {
        "B": (
            "B. Disclose\n\nIt is right, since A. Refuse is not.",
            "The answer is indeed Disclose.",
        ),
        "C": ("The answer is 1.",),
        "D": ("The answer is 1.5 mg.",),
        None: (
            "B. Refuse",
            "So A. Disclose is right.",
            "The answer is 1.5.",
            "A. Disclose\nB. Refuse",
        ),
    },
    ("3", "4", "5", "6"): {
        "B": (
            "Answer: 4",
            "The answer is 4.",
            "\\boxed{4}",
        ),
        "C": ("Answer: C. 5",),
        None: ("Answer: C. 4",),
    },
}
FIRST_CHOICES: dict[str | None, tuple[str, ...]] = {
    "B": (
        " B",
        " b.",
        " A patient with B",
        "是B。",
    ),
    "C": (
        " (C) because A",
        " C) The third",
    ),
    "A": ("\n**A**",),
    None: (
        " a trap",
        " E",
        " B or C",
        " None of the options A-D fits",
    ),
    "D": (" \\boxed{D}",),
}


def wrong(read: Callable[[str], str | None], right: Mapping[str | None, Sequence[str]]) -> dict:
    """Text -> (what is read, what is right), of the texts that are read otherwise."""
    read_as = [(text, read(text), answer) for answer, texts in right.items() for text in texts]
    return {text: (found, answer) for text, found, answer in read_as if found != answer}


def test_numbers_are_read_as_they_are_stated() -> None:
    assert wrong(last_number, NUMBERS) == {}


def test_numbers_of_a_continuation_come_first() -> None:
    assert wrong(first_number, FIRST_NUMBERS) == {}


@pytest.mark.parametrize("n_options", CHOICES)
def test_letters_are_read_as_they_are_stated(n_options: int) -> None:
    assert wrong(lambda text: last_choice(text, n_options), CHOICES[n_options]) == {}


@pytest.mark.parametrize("options", OF_OPTIONS)
def test_texts_of_options_are_read_with_the_options_at_hand(options: tuple[str, ...]) -> None:
    read = lambda text: last_choice(text, len(options), options)  # noqa: E731
    assert wrong(read, OF_OPTIONS[options]) == {}


def test_letters_of_a_continuation_come_first() -> None:
    assert wrong(lambda text: first_choice(text, 4), FIRST_CHOICES) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\frac{-3}{4}", "-0.75"),
        ("-\\dfrac{1}{3}", "-1/3"),
        ("\\tfrac13", "1/3"),
        ("12\\text{ cm}^2", "12"),
        ("12\\,\\mathrm{m/s}^{2}", "12"),
        ("2\\frac{1}{2}", "2.5"),
        ("-2 1/2", "-2.5"),
        ("2½", "2.5"),
        ("10^3", "1000"),
        ("10³", "1000"),
        ("2^{-3}", "0.125"),
        ("(-3)^2", "9"),
        ("\\sqrt{16}", "4"),
        ("30^\\circ", "30"),
        ("1.5 \\times 10^{-3}", "0.0015"),
        ("12 out of 20", "12"),
        ("18 (that is 3 x 6)", "18"),
        ("3 \\times 6 = 18", "18"),
        ("x = 5", "5"),
        ("x_1 = 5", "5"),
        ("1 000", "1000"),
        ("1_000", "1000"),
        ("1\\,000", "1000"),
        ("1,00,000", "100000"),
        ("٣", "3"),
        ("5 hours", "5"),
        *(
            (text, None)
            for text in ("5\\sqrt{2}", "\\frac{\\sqrt{2}}{2}", "pi/2", "2\\pi", "4*sqrt(2)")
        ),
        *(
            (text, None)
            for text in ("2x", "3n + 1", "x > 5", "\\pm 3", "5!", "3i", "e^2", "2^x", "5(√3 + 1)")
        ),
        *(
            (text, None)
            for text in ("10 or 12", "5 - 10", "(3, 4)", "2:30", "1,5", "1.234,5", "5th", "1/2/3")
        ),
        *(
            (text, None)
            for text in ("5 feet 3 inches", "A = 5, B = 6", "15% of 200", "1/0", "twelve", "")
        ),
    ],
)
def test_what_cannot_be_read_whole_is_no_number(text, expected):
    assert canonical_number(text) == expected


@given(st.fractions(min_value=-(10**9), max_value=10**9, max_denominator=400))
def test_a_canonical_number_reads_back_as_itself(value):
    text = canonical_form(value)
    assert canonical_number(text) == text
    assert [n.value for n in find_numbers(text)] == [value]


@given(st.integers(-(10**12), 10**12), st.integers(0, 5))
def test_equal_values_have_one_form(whole, zeros):
    plain = str(whole)
    forms = [f"{whole}.{'0' * zeros}", f"{whole:,}", f"**{whole}**", f"{whole}."]
    assert {last_number(form) for form in forms} == {plain}


@given(st.decimals(-(10**6), 10**6, places=4))
def test_decimals_keep_their_value(value):
    assert find_numbers(f"It is {value}.")[-1].value == Fraction(value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The word 'awful' is negative, but overall it is Positive.", "positive"),
        ("**Sentiment: Negative**", "negative"),
        ('The sentiment is "positive".', "positive"),
        ("POSITIVE", "positive"),
        ("It is positive, not negative.", "positive"),
        ("It is more negative than positive.", "negative"),
        ("It is positive rather than negative.", "positive"),
        ("It is more positive than the initial negative sentiment.", "positive"),
        ("It was more than positive.", "positive"),
        ("Overall positive. There is nothing negative here.", "positive"),
        ("This isn't a positive review", None),
        ("I will conclude 'positive' or 'negative'.", None),
        ("Sentiment: positive/negative", None),
        ("It has both positive and negative sides. In the end it is negative.", "negative"),
        ("The cast is positive. So overall it is neutral.", None),
        ("positively thrilling", None),
        ("The sentiment is negative. It would be positive if the end were cut.", "negative"),
        ("Negative. A positive review would praise the end.", "negative"),
        ("**negative**\n\nThe cast is positive about it.", "negative"),
        ("The sentiment is negative. A positive review would praise it.", "negative"),
        ("It is negative. Without the end, it would have been positive.", "negative"),
        ("If it were positive, it would say so: it is negative.", "negative"),
        ("If I had to choose, it would be positive.", "positive"),
        ("The sentiment is positive. Wait, it is negative.", "negative"),
        ("Sentiment: negative\n\nReview: A joy.\nSentiment: positive", "negative"),
        ("情感是positive。", "positive"),
        ("non-negative", None),
        ("", None),
    ],
)
def test_last_sentiment_keyword(text, expected):
    assert last_label(text, SENTIMENT, NO_LABEL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" positive.\nBut some would say negative", "positive"),
        (" **Negative** because the positive words are few", "negative"),
        (" not positive but negative", "negative"),
        (" anything but positive", None),
        (" far from positive: it is negative", "negative"),
        (" positive or negative?", None),
        (" neutral, leaning positive", None),
        ("\n\nnegative", "negative"),
        ("", None),
    ],
)
def test_first_label(text, expected):
    assert first_label(text, SENTIMENT, NO_LABEL) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Category: Sports\n\nIt reports on the World Cup.", "Sports"),
        ("**Category:** Sci/Tech", "Sci/Tech"),
        ("It is about sports.\n\nSo this is what it is.\n\nThat is all.\n\nReally.", "Sports"),
        ("World or Business?\n\nBusiness", "Business"),
        ("Nothing fits.", None),
    ],
)
def test_last_category(text, expected):
    assert last_category(text, NEWS) == expected


def test_letters_need_a_sensible_number_of_options():
    with pytest.raises(ValueError, match="2 to 26"):
        last_choice("A", 1)


PARSERS = [
    last_number,
    first_number,
    lambda text: last_label(text, SENTIMENT, NO_LABEL),
    lambda text: last_category(text, NEWS),
    lambda text: last_choice(text, 4),
    lambda text: first_choice(text, 4),
]


@given(st.text(alphabet="0123456789.,/-$ \n\\frac{}boxed*AB()=e^x", max_size=200))
def test_no_text_breaks_a_parser(text):
    for parse in PARSERS:
        assert parse(text) is None or parse(text)


@pytest.mark.parametrize(
    "stuck",
    ["1,", "1/", "$-", "\\boxed{", "{", "3 + ", "1 ", "positive and ", "A. ", "\n", "*_", "not a "],
)
def test_parsing_takes_linear_time(stuck):
    text = stuck * (8_000 // len(stuck))
    started = time.process_time()
    for parse in PARSERS:
        parse(text)
    assert time.process_time() - started < 1.5


LABELS: dict[tuple[str, ...], dict[str | None, tuple[str, ...]]] = {
    ("Yes", "No"): {
        "No": ("The answer is yes, they are.\nTherefore, the answer (Yes or No) is No.",),
        "Yes": ("Therefore, the answer (Yes or No) is:\n\nYes, some have no such thing.",),
    },
    ("yes", "no"): {
        "yes": (
            "<answer>yes</answer>",
            "There is no evidence.\n<answer>yes</answer>",
        ),
        "no": (
            "\\boxed{\\text{no}}",
            "Answer: No, it isn't a yes.",
            "The answer is no.",
        ),
        None: ("I do not know.",),
    },
    ("entailment", "not entailment"): {
        "not entailment": ("Answer: not entailment",),
        "entailment": ("The label is entailment.",),
    },
    ("entailment", "not_entailment"): {
        "not_entailment": ("Label: **not_entailment**",),
    },
    ("true", "false"): {
        "false": (
            "False. The claim is not true.",
            "The claim is false",
        ),
    },
    ("supports", "refutes", "not enough info"): {
        "not enough info": ("Answer: Not enough info",),
    },
    ("YES", "NO"): {
        "NO": ("**Answer: NO**",),
    },
    ("acceptable", "unacceptable"): {
        "unacceptable": ("The answer is: unacceptable",),
        None: ("It is not acceptable.",),
    },
    ("acceptable", "not acceptable"): {
        "not acceptable": ("Answer: not acceptable",),
    },
}


@pytest.mark.parametrize("labels", LABELS)
def test_labels_are_read_as_closed_units(labels: tuple[str, ...]) -> None:
    assert wrong(lambda text: last_label(text, labels), LABELS[labels]) == {}


SAME = (
    (r"\frac{\sqrt{3}}{2}", r"\sqrt{3}/2"),
    ("x^2+1", "$1 + x^2$"),
    ("(3,125)", "(3, 125)"),
    (r"\{1,2\}", r"\{2,1\}"),
    ("1,000", "10^3"),
    (r"\boxed{2\sqrt{2}}", r"\sqrt{8}"),
    ("Paris", "**paris**."),
    ("4:30", "4:30"),
    ("<answer>x+1</answer>", "1+x"),
)
OTHER = (
    ("2ab", "2"),
    ("(3,125)", "3125"),
    ("[0,5)", "(0,5)"),
    (r"2\pi", "6.28"),
    ("Paris", "London"),
    ("north", "thorn"),
    (r"10^{10^{10}}", "5"),
    ("7 (mod 11)", "7"),
    ("T - 18", "18 - T"),
    ("3 dozen", "3"),
    ("", ""),
)


@pytest.mark.in_time(8)
def test_free_answers_are_the_same_where_their_values_or_words_are() -> None:
    assert [pair for pair in SAME if not same_answer(*pair)] == []
    assert [pair for pair in OTHER if same_answer(*pair)] == []
