"""Characters as a machine misreads them in print: one for another of its shape, one for two, two for one.

The table holds shapes that lie close in common type: strokes that touch (``rn`` and ``m``), an opening that is
closed (``c`` and ``e``), round and straight strokes (``O`` and ``0``, ``l``, ``1`` and ``I``), a bar or a tail
that is lost. Such are the confusions that Nagy, Nartker and Rice show and Kukich names. Every pair is read
either way; case is not kept, for shapes decide.

Each place of the table is misread with the same chance. Holley calls one to two characters wrong of a hundred
good recognition of newspapers; the default is the worse of the two.

Sources: Nagy, Nartker and Rice, Optical Character Recognition: An Illustrated Guide to the Frontier, 1999.
Kukich, Techniques for Automatically Correcting Words in Text, ACM Computing Surveys 24(4), 1992. Holley, How
Good Can It Get?, D-Lib Magazine 15(3/4), 2009.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from functools import cache

from pydantic import BaseModel, ConfigDict, Field

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import PERTURBATIONS, TextPerturbation
from diptych.analysis.perturbations.letters import with_changes
from diptych.core.draws import Draws

CONFUSIONS = (
    *("rn m", "nn m", "cl d", "vv w", "VV W", "ri n", "li h", "ii u", "tl d"),
    *("l 1", "l I", "1 I", "i l", "O 0", "o 0", "O Q", "O D", "S 5", "B 8", "Z 2", "z 2", "g 9", "q 9"),
    *("b 6", "G 6", "T 7", "e c", "o c", "o e", "a o", "a e", "h b", "n h", "u n", "v y", "f t", "i j"),
    *("C G", "E F", "P R", "M N", "U V", "s 8", "w v", "k x"),
)
"""What is read for what, either way."""


class RecognitionErrors(BaseModel):
    """How often.

    Attributes:
        rate: the chance that a character, or pair, of the table is misread.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    rate: float = Field(0.02, gt=0, le=1)


@cache
def _readings() -> Mapping[str, list[tuple[str, str]]]:
    """By first character: what can stand there, and what may be read for it."""
    readings: dict[str, list[tuple[str, str]]] = {}
    for pair in CONFUSIONS:
        one, other = pair.split()
        readings.setdefault(one[0], []).append((one, other))
        readings.setdefault(other[0], []).append((other, one))
    return readings


def _misread(caption: Caption, draws: Draws, options: RecognitionErrors) -> str:
    text, readings = caption.text, _readings()
    changes, any_place, place = [], False, 0
    while place < len(text):
        possible = [
            (shape, read)
            for shape, read in readings.get(text[place], ())
            if text.startswith(shape, place) and not _accent_at(text, place + len(shape))
        ]
        any_place = any_place or bool(possible)
        if possible and draws.uniform() < options.rate:
            shape, read = draws.choice(possible)
            changes.append((place, place + len(shape), read))
            place += len(shape)
        else:
            place += 1
    if not any_place:
        raise Unchanged("no character that looks like another")
    if not changes:
        raise Unchanged("no error was drawn")
    return with_changes(text, changes)


def _accent_at(text: str, place: int) -> bool:
    """Whether what stands there is drawn on the character before it, which so has another shape."""
    return place < len(text) and not text[place].isascii() and unicodedata.category(text[place])[0] == "M"


PERTURBATIONS.add(
    TextPerturbation(
        name="recognition-errors",
        description="characters misread for others of their shape, as in recognised print",
        group="typos",
        source="Nagy, Nartker and Rice 1999; Holley 2009",
        keeps_meaning=True,
        options=RecognitionErrors,
        apply=_misread,
    )
)
