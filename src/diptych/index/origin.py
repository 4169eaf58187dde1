"""What made an index's vectors, and the refusal of vectors that something else made."""

from __future__ import annotations

from typing import Any, ClassVar

from diptych.core.errors import MismatchError, UsageError

__all__ = ["Origin"]


class Origin:
    """Attributes: see :class:`diptych.index.hooks.Hooks`."""

    engine_name: ClassVar[str]
    encoder: str
    width: int
    terms: tuple[str, ...]
    about: dict[str, Any]

    def check_encoder(self, encoder: str) -> None:
        """Refuse vectors that other weights made.

        Raises:
            MismatchError: ``encoder`` is not the fingerprint of what made the index's vectors.
        """
        if encoder != self.encoder:
            raise MismatchError(
                f"the vectors given were made by encoder {encoder}, those of the index by {self.encoder}",
                "rebuild the index with this encoder, or use the encoder the index was built with",
            )

    def check_vocabulary(self, vocabulary: str) -> None:
        """Refuse vectors over other terms, whose columns mean other things.

        Raises:
            UsageError: the index is of a dense engine, which has no vocabulary.
            MismatchError: ``vocabulary`` is not the fingerprint of the index's.
        """
        if "vocabulary" not in self.about:
            raise UsageError(
                f"the {self.engine_name} engine holds dense vectors, which have no vocabulary",
                "check the encoder instead",
            )
        if vocabulary != self.about["vocabulary"]:
            raise MismatchError(
                f"an index opened with another vocabulary: the vectors given are over {vocabulary}, those of "
                f"the index over {self.about['vocabulary']} ({self.width:,} terms)",
                "use the head that the index was built with, or rebuild the index with this one",
            )

    def _check_origin(self, encoder: str | None, vocabulary: str | None) -> None:
        """Compare those fingerprints that are given."""
        if encoder is not None:
            self.check_encoder(encoder)
        if vocabulary is not None:
            self.check_vocabulary(vocabulary)
