"""Any letter instead of another: the published code's fourteenth change, which the thesis does not report."""

from __future__ import annotations

import string

from pydantic import BaseModel, ConfigDict, Field

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, TextPerturbation
from diptych.analysis.perturbations.letters import in_case_of, with_changes
from diptych.analysis.perturbations.published_typos import letter_change, published_form
from diptych.core.draws import Draws


class LetterChange(BaseModel):
    """How often.

    Attributes:
        rate: the chance of each word with a letter a–z.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: float = Field(0.1, gt=0, le=1)


def _change(caption: Caption, draws: Draws, options: LetterChange) -> str:
    changes, any_letter = [], False
    for word in caption.words:
        places = [
            place for place in range(word.start, word.end) if caption.text[place] in string.ascii_letters
        ]
        any_letter = any_letter or bool(places)
        if places and draws.uniform() < options.rate:
            place = draws.choice(places)
            letter = caption.text[place]
            other = draws.choice(string.ascii_lowercase.replace(letter.lower(), ""))
            changes.append((place, place + 1, in_case_of(other, letter)))
    if not any_letter:
        raise Unchanged("no letter a–z")
    if not changes:
        raise Unchanged("no word was drawn")
    return with_changes(caption.text, changes)


PERTURBATIONS.add(
    TextPerturbation(
        name="letter-change",
        description="in each word with chance .1, any other letter a–z instead of one",
        group="typos",
        source="the thesis's published code (probability_based_letter_change); not reported",
        keeps_meaning=True,
        options=LetterChange,
        apply=_change,
        published=published_form(letter_change),
    )
)
