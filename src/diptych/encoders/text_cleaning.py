"""Cleaning of captions before tokenizers, as published models do it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from diptych.core.errors import MismatchError


@dataclass(frozen=True)
class Cleaning:
    """The rule of one model."""

    name: str  # whose it is
    marks: str  # the characters that are taken out of a text
    substitute: str  # what stands in the place of each
    replaced: tuple[tuple[str, str], ...] = ()  # texts that are replaced after that, in order
    words: int = 30  # how many words are kept; more are cut

    def _words(self, text: str) -> list[str]:
        text = re.sub(f"[{re.escape(self.marks)}]", self.substitute, text.lower())
        for old, new in self.replaced:
            text = text.replace(old, new)
        return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ").split(" ")

    def __call__(self, text: str) -> str:
        """Return ``text`` cleaned and cut.

        >>> ALBEF_CLEANING("A man's well-lit dog, Rex, runs!")
        'a mans well lit dog rex runs'
        >>> BLIP_CLEANING("A man's well-lit dog, Rex, runs!")
        "a man's well-lit dog, rex, runs"
        """
        return " ".join(self._words(text)[: self.words])

    def counts(self, texts: Sequence[str], tokens: Sequence[int], limit: int) -> list[int]:
        """Return how many of ``tokens`` each cut text has; above ``limit`` where words were lost."""
        cut = [len(self._words(text)) > self.words for text in texts]
        return [limit + 1 if lost else count for lost, count in zip(cut, tokens, strict=True)]

    def describe(self) -> dict[str, Any]:
        return {"like": self.name, "words": self.words}


_HYPHENS = (("-", " "), ("/", " "), ("<person>", "person"))

ALBEF_CLEANING = Cleaning("ALBEF", ",.'!?\"()*#:;~", "", _HYPHENS)  # and X-VLM's
BLIP_CLEANING = Cleaning("BLIP", '.!"()*#:;~', " ")

_ENCODE_TOKEN = "[ENC]"


@dataclass(frozen=True)
class TextRule:
    """Padding and length of the texts of one model type."""

    padding: Literal["longest", "max_length"]  # "longest" of the batch, or always "max_length"
    limit: int | None = None  # tokens the model was trained with, where its configuration does not say so
    mask: bool = True  # whether the model takes the attention mask
    reserved: int = 0  # position rows that no token uses (RoBERTa numbers positions from pad id + 1)


TEXT_RULES: dict[str, TextRule] = {
    "clip": TextRule("longest"),
    "groupvit": TextRule("longest"),
    "metaclip_2": TextRule("longest"),
    "chinese_clip": TextRule("longest"),
    "altclip": TextRule("longest", reserved=2),
    "align": TextRule("max_length", limit=64),
    "siglip": TextRule("max_length", mask=False),
    "siglip2": TextRule("max_length", limit=64, mask=False),
}
"""By ``model_type`` of ``config.json``."""


def encode_token(tokenizer: Any, vocabulary: int, name: str) -> int:
    """Return the id of [ENC], first where BLIP reads text with image: the tokenizer's, else the model's last row."""
    known = tokenizer.get_vocab()
    if _ENCODE_TOKEN in known:
        return int(known[_ENCODE_TOKEN])
    if max(known.values()) >= vocabulary - 1:
        raise MismatchError(
            f"the tokenizer of {name} has {max(known.values()) + 1:,} tokens without {_ENCODE_TOKEN}, the model "
            f"{vocabulary:,}: none is left for it",
            "the tokenizer files are another model's: use its own",
        )
    return vocabulary - 1
