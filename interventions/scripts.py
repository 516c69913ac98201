"""Writing systems: the characters that make up one word, and how much one character says."""

from __future__ import annotations

import re

WORD = r"\d_A-Za-zª²³µ¹ºÀ-ÖØ-öø-ʯ\u0300-ԯḀ-῿⁰-ₜＡ-Ｚａ-ｚ"
"""Inside a regular expression's brackets: digits, and letters of the scripts that part words by
blanks and write digits apart from them. A letter of any other script (Han, kana, Hangul, Thai,
Arabic, …) may stand right beside a number or a Latin letter and is no part of it: 答案是10。"""
_HAN = re.compile("[々-〇㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff]")
_CONSONANTS = re.compile("[א-תء-يپچژگک]")
_SYLLABLES = re.compile("[ぁ-ヿㇰ-ㇿｦ-ﾟ가-힣]")


def length_in_letters(text: str) -> int:
    """The length of a text, white space at its ends aside, in characters of an alphabet.

    A Han character counts as three, a syllable of kana or Hangul as two, and three letters of
    Arabic or Hebrew, which leave out most vowels, as four: about as many as an English translation
    takes. "十二减二等于10" is as much of a sentence as "12 less 2 makes 10".
    """
    text = text.strip()
    more = 2 * len(_HAN.findall(text)) + len(_SYLLABLES.findall(text))
    return len(text) + more + len(_CONSONANTS.findall(text)) // 3
