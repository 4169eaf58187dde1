"""From the names of transformers' weights to those of the published code."""

from __future__ import annotations

import re

import transformers

from diptych.core.errors import MismatchError

__all__ = ["Renaming"]

_PARTS = {"q": 0, "k": 1, "v": 2}


class Renaming:
    """Rules from a whole name of ours to one of theirs, the first that fits.

    A rule with a group called ``part`` names a third of their weight: queries, keys or values, which the
    published code keeps in one.

    >>> Renaming((r"layers\\.(\\d+)\\.(?P<part>[qkv])\\.(\\w+)", r"blocks.\\1.qkv.\\3"))("layers.3.k.bias")
    ('blocks.3.qkv.bias', 1)
    """

    def __init__(self, *rules: tuple[str, str]) -> None:
        self._rules = [(re.compile(pattern), name) for pattern, name in rules]

    def __call__(self, name: str) -> tuple[str, int | None]:
        """Their name, and which third; None for all of it.

        Raises:
            MismatchError: no rule fits: transformers calls its weights otherwise than these rules know.
        """
        for pattern, theirs in self._rules:
            found = pattern.fullmatch(name)
            if found:
                return found.expand(theirs), _PARTS.get(found.groupdict().get("part", ""))
        raise MismatchError(
            f"transformers {transformers.__version__} has a weight {name!r} that is not known here",
            "the names are those of transformers 5.23: install that version",
        )
