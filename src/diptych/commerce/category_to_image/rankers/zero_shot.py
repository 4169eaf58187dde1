"""What zero-shot rankers share: rows of products and of categories by the same frozen encoder, compared as they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from diptych.commerce.category_to_image.ranker import Ranker
from diptych.core.errors import MismatchError
from diptych.core.fingerprint import fingerprint


class ZeroShot(Ranker):
    """A frozen encoder's own rows.

    A product without a title or picture has a row of zeros, and so has a category of which the encoder knows no
    word: their scores are 0, which is no ranking.
    """

    unmatched: Literal["ranked", "unranked"] = "unranked"
    side: ClassVar[str]
    """``text`` or ``image``: whose rows they are, as features' ``about`` calls it."""

    def __init__(self, encoder: Mapping[str, Any]) -> None:
        self._encoder = encoder

    @property
    def fingerprint(self) -> str:
        """Of the encoder."""
        return fingerprint(self.name, self._encoder["fingerprint"])

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {"name": self.name, "encoder": dict(self._encoder), "fingerprint": self.fingerprint}

    def _check(self, about: Mapping[str, Any], what: str) -> None:
        """See that rows are of the same encoder."""
        other = about.get(self.side) or {}
        if other.get("fingerprint") != self._encoder["fingerprint"]:
            raise MismatchError(
                f"{self.name} was made for rows of {self._encoder['fingerprint']}, those of the {what} are of "
                f"{other.get('fingerprint')}",
                "make the features of both with the same FeatureMaker",
            )
