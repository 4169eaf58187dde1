"""Errors as people leave them in what they type: how many, of which kind, and where.

Dhakal et al. watched 168,000 people copy sentences. In what they left, 1.17 of 100 characters were wrong; their
errors, put right or not, were 1.65 wrong, 0.80 missing and 0.67 extra characters per 100. That gives the rate
and the weights of three kinds. The fourth of Damerau's kinds, two neighbours in each other's place, is none of
theirs; its weight here, a tenth of a wrong character's, is a choice.

Few errors are in the first letter of a word (Yannakoudakis and Fawthrop; Kukich); that one in the first place
is a quarter as likely as another is a choice too. A wrong letter is that of a touching key. An extra one is as
likely the letter once more, for doubling is the most important cause of extra letters (Pollock and Zamora), as
that of a touching key beside it.

Sources: Dhakal et al., Observations on Typing from 136 Million Keystrokes, CHI 2018, Table 3. Damerau, A
Technique for Computer Detection and Correction of Spelling Errors, CACM 7(3), 1964. Kukich, Techniques for
Automatically Correcting Words in Text, ACM Computing Surveys 24(4), 1992. Yannakoudakis and Fawthrop, The Rules
of Spelling Errors, Information Processing & Management 19(2), 1983. Pollock and Zamora, Collection and
Characterization of Spelling Errors in Scientific and Scholarly Text, JASIS 34(1), 1983.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, TextPerturbation
from diptych.analysis.perturbations.letters import (
    KeyboardName,
    Letter,
    in_case_of,
    key_of,
    letters_of,
    neighbours,
    with_changes,
)
from diptych.core.draws import Draws
from diptych.data.language import Word


class TypingErrors(BaseModel):
    """How many errors, of which kinds and where.

    Attributes:
        rate: expected errors per letter or digit.
        substitution: weight of a letter of a touching key instead of one.
        omission: weight of a letter missing.
        insertion: weight of a letter too many.
        transposition: weight of two letters in each other's place.
        first_letter: how likely a word's first letter is hit, as a share of another's chance.
        keyboard: whose keys touch.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: float = Field(0.0117, gt=0, le=0.5)
    substitution: float = Field(1.65, ge=0)
    omission: float = Field(0.80, ge=0)
    insertion: float = Field(0.67, ge=0)
    transposition: float = Field(0.165, ge=0)
    first_letter: float = Field(0.25, ge=0)
    keyboard: KeyboardName = "qwerty"


def _mistype(caption: Caption, draws: Draws, options: TypingErrors) -> str:
    words = [letters_of(word) for word in caption.words]
    count = sum(map(len, words))
    if not count:
        raise Unchanged("no letter")
    firsts = sum(1 for letters in words if letters)
    weights = firsts * options.first_letter + (count - firsts)
    unit = options.rate * count / weights if weights else 0.0
    near = neighbours(options.keyboard)
    changes: list[tuple[int, int, str]] = []
    for word, letters in zip(caption.words, words, strict=True):
        changes += _errors(word, letters, draws, options, unit, near)
    if not changes:
        raise Unchanged("no error was drawn")
    return with_changes(caption.text, changes)


def _errors(
    word: Word,
    letters: list[Letter],
    draws: Draws,
    options: TypingErrors,
    unit: float,
    near: Mapping[str, str],
) -> list[tuple[int, int, str]]:
    """What is changed in one word: (start, end, replacement), apart from each other.

    A letter after the first is hit with chance ``unit``. Where it is hit and no kind of error is possible, as
    in a word of one letter that the keyboard does not have, there is none.
    """
    changes: list[tuple[int, int, str]] = []
    left, free = len(letters), word.start
    for number, letter in enumerate(letters):
        chance = unit * (1.0 if number else options.first_letter)
        if letter.start < free or draws.uniform() >= chance:
            continue
        keys = near.get(key_of(letter.text), "")
        after = letters[number + 1] if number + 1 < len(letters) else None
        swapped = ""
        if after is not None and after.start == letter.end:
            swapped = in_case_of(after.text, letter.text) + in_case_of(letter.text, after.text)
            swapped = "" if swapped == letter.text + after.text else swapped
        weights = {
            "substitution": options.substitution if keys else 0.0,
            "omission": options.omission if left > 1 else 0.0,  # a word keeps a letter
            "insertion": options.insertion,
            "transposition": options.transposition if swapped else 0.0,
        }
        kind = _drawn(weights, draws)
        if kind == "substitution":
            changes.append((letter.start, letter.end, in_case_of(draws.choice(keys), letter.text)))
        elif kind == "omission":
            changes.append((letter.start, letter.end, ""))
            left -= 1
        elif kind == "insertion":
            twice = not keys or draws.below(2) == 0
            extra = letter.text if twice else draws.choice(keys)
            changes.append((letter.end, letter.end, in_case_of(extra, letter.text)))
        elif kind == "transposition" and after is not None:
            changes.append((letter.start, after.end, swapped))
            free = after.end
    return changes


def _drawn(weights: Mapping[str, float], draws: Draws) -> str | None:
    """One of the names, as likely as its weight; None where all are 0."""
    place = draws.uniform() * sum(weights.values())
    for name, weight in weights.items():
        if place < weight:
            return name
        place -= weight
    return None


PERTURBATIONS.add(
    TextPerturbation(
        name="typing-errors",
        description="wrong, missing, extra and exchanged letters, as many as people leave in what they type",
        group="typos",
        source="Dhakal et al., CHI 2018; Damerau 1964",
        keeps_meaning=True,
        options=TypingErrors,
        apply=_mistype,
    )
)
