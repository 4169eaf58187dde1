"""What ALBEF, X-VLM and BLIP do to a caption before it is tokenised, to the letter.

The models were trained on cleaned captions; an apostrophe that is left in gives another row. Each rule is
the ``pre_caption`` of the published code: lower case, some marks removed (BLIP: made spaces), at most
30 words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Cleaning:
    """One model's rule.

    Attributes:
        name: whose it is.
        marks: the characters that are taken out of a text.
        substitute: what stands in the place of each.
        replaced: texts that are replaced after that, in order.
        words: how many words are kept; more are cut.
    """

    name: str
    marks: str
    substitute: str
    replaced: tuple[tuple[str, str], ...] = ()
    words: int = 30

    def whole(self, text: str) -> str:
        """``text`` cleaned, however long it is."""
        text = re.sub(f"[{re.escape(self.marks)}]", self.substitute, text.lower())
        for old, new in self.replaced:
            text = text.replace(old, new)
        return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ")

    def __call__(self, text: str) -> str:
        """``text`` cleaned and cut.

        >>> ALBEF_CLEANING("A man's well-lit dog, Rex, runs!")
        'a mans well lit dog rex runs'
        >>> BLIP_CLEANING("A man's well-lit dog, Rex, runs!")
        "a man's well-lit dog, rex, runs"
        """
        return " ".join(self.whole(text).split(" ")[: self.words])

    def cuts(self, text: str) -> bool:
        """Whether words of ``text`` are lost."""
        return len(self.whole(text).split(" ")) > self.words

    def counts(self, texts: Sequence[str], tokens: Sequence[int], limit: int) -> list[int]:
        """How many tokens each text has, of which it has ``tokens`` after it is cut: above ``limit`` where words
        were lost."""
        return [limit + 1 if self.cuts(text) else count for text, count in zip(texts, tokens, strict=True)]

    def describe(self) -> dict[str, Any]:
        """What a number depends on."""
        return {"like": self.name, "words": self.words}


_HYPHENS = (("-", " "), ("/", " "), ("<person>", "person"))

ALBEF_CLEANING = Cleaning("ALBEF", ",.'!?\"()*#:;~", "", _HYPHENS)
"""Also X-VLM's, whose code is the same (but for refusing an empty caption)."""

BLIP_CLEANING = Cleaning("BLIP", '.!"()*#:;~', " ")
