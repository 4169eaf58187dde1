"""One slip of a finger: two letters swapped, one missing, one too many, or the key beside it.

A place is drawn evenly among those where the slip changes the text. Only letters and digits of words slip
(:mod:`diptych.analysis.perturbations.letters`), and a letter keeps the case of its place. Letters swap or go
missing in every script; an extra or a nearby letter is one of a touching key, so letters that the keyboard
does not have (``ж`` on all three, ``é`` on qwerty) are passed over.

The published forms are those of :mod:`diptych.analysis.perturbations.published_typos`.
"""

from __future__ import annotations

from itertools import pairwise

from pydantic import BaseModel, ConfigDict, Field

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, TextPerturbation
from diptych.analysis.perturbations.letters import (
    KeyboardName,
    Letter,
    drawn_apart,
    in_case_of,
    key_of,
    letters_of,
    neighbours,
    with_changes,
)
from diptych.analysis.perturbations.published_typos import (
    extra_character,
    missing_character,
    nearby_character,
    published_form,
    swapped_characters,
)
from diptych.core.draws import Draws

_SOURCE = "thesis §5.4.1; published with the package typo 0.1.7"


class Slips(BaseModel):
    """How many slips.

    Attributes:
        edits: slips per caption, each in another word; fewer in a caption that has no room for more.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    edits: int = Field(1, ge=1)


class SlipsToKeys(Slips):
    """How many slips, and on what.

    Attributes:
        keyboard: whose keys touch.
    """

    keyboard: KeyboardName = "qwerty"


def _swap(caption: Caption, draws: Draws, options: Slips) -> str:
    places = [
        (number, (first, second))
        for number, word in enumerate(caption.words)
        for first, second in pairwise(letters_of(word))
        if first.end == second.start and _swapped(first, second) != first.text + second.text
    ]
    if not places:
        raise Unchanged("no two different letters side by side")
    chosen = drawn_apart(places, draws, options.edits)
    return with_changes(caption.text, [(a.start, b.end, _swapped(a, b)) for a, b in chosen])


def _swapped(first: Letter, second: Letter) -> str:
    return in_case_of(second.text, first.text) + in_case_of(first.text, second.text)


def _miss(caption: Caption, draws: Draws, options: Slips) -> str:
    places = []
    for number, word in enumerate(caption.words):
        letters = letters_of(word)
        if len(letters) > 1:  # without its only letter a word would be missing, not a letter
            places += [(number, letter) for letter in letters]
    if not places:
        raise Unchanged("no word of two letters")
    chosen = drawn_apart(places, draws, options.edits)
    return with_changes(caption.text, [(letter.start, letter.end, "") for letter in chosen])


def _keys(caption: Caption, draws: Draws, options: SlipsToKeys) -> list[tuple[Letter, str]]:
    """Letters of the keyboard that were drawn, each with a touching one in its case."""
    near = neighbours(options.keyboard)
    places = [
        (number, letter)
        for number, word in enumerate(caption.words)
        for letter in letters_of(word)
        if key_of(letter.text) in near
    ]
    if not places:
        raise Unchanged(f"no letter of the {options.keyboard} keyboard")
    return [
        (letter, in_case_of(draws.choice(near[key_of(letter.text)]), letter.text))
        for letter in drawn_apart(places, draws, options.edits)
    ]


def _extra(caption: Caption, draws: Draws, options: SlipsToKeys) -> str:
    changes = []
    for letter, key in _keys(caption, draws, options):
        place = draws.choice((letter.start, letter.end))
        changes.append((place, place, key))
    return with_changes(caption.text, changes)


def _nearby(caption: Caption, draws: Draws, options: SlipsToKeys) -> str:
    chosen = _keys(caption, draws, options)
    return with_changes(caption.text, [(letter.start, letter.end, key) for letter, key in chosen])


PERTURBATIONS.add(
    TextPerturbation(
        name="character-swap",
        description="two different letters side by side in a word change places",
        group="typos",
        source=_SOURCE,
        keeps_meaning=True,
        options=Slips,
        apply=_swap,
        published=published_form(swapped_characters),
        suite=True,
    )
)
PERTURBATIONS.add(
    TextPerturbation(
        name="missing-character",
        description="a letter is missing in a word of two or more",
        group="typos",
        source=_SOURCE,
        keeps_meaning=True,
        options=Slips,
        apply=_miss,
        published=published_form(missing_character),
        suite=True,
    )
)
PERTURBATIONS.add(
    TextPerturbation(
        name="extra-character",
        description="before or after a letter, that of a touching key",
        group="typos",
        source=_SOURCE,
        keeps_meaning=True,
        options=SlipsToKeys,
        apply=_extra,
        published=published_form(extra_character),
        suite=True,
    )
)
PERTURBATIONS.add(
    TextPerturbation(
        name="nearby-character",
        description="instead of a letter, that of a touching key",
        group="typos",
        source=_SOURCE,
        keeps_meaning=True,
        options=SlipsToKeys,
        apply=_nearby,
        published=published_form(nearby_character),
        suite=True,
    )
)
