"""The second stage of ``diptych evaluate``: candidates that are stored already, or made by the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sources import encoder_of
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.encoders.origin import Origin
    from diptych.metrics import Reranked


class SecondStage:
    """What ``--rerank`` and ``--unranked`` ask for."""

    def __init__(self, k: int, unranked: str, protocol: str) -> None:
        from diptych.evaluation.reranking import check_unranked
        from diptych.evaluation.result import one_gallery

        check_unranked(unranked)
        one_gallery(protocol)
        self.k, self.unranked = k, unranked
        self._encoder: DualEncoder | None = None

    @classmethod
    def asked(cls, k: int | None, unranked: str | None, protocol: str) -> SecondStage | None:
        """The second stage, or None where none is asked for."""
        if k is None:
            if unranked is not None:
                raise UsageError(
                    f"--unranked {unranked} without --rerank: every candidate is ranked", "add --rerank K"
                )
            return None
        return cls(k, unranked or "miss", protocol)

    def look(self, encoder: DualEncoder) -> None:
        """See before the work that ``encoder`` has a matching head, and keep it."""
        from diptych.encoders.rerank import require_matching

        require_matching(encoder)
        self._encoder = encoder

    def candidates(self, folder: Path, encoded: EncodedCollection, origin: Origin, beside: Path) -> Reranked:
        """The candidates stored in ``folder`` or ``beside``, scored now into ``beside`` unless there are enough."""
        from diptych.encoders.origin import check_still_there
        from diptych.encoders.rerank import rerank, stored_candidates

        for place in dict.fromkeys((folder, beside)):
            found = stored_candidates(place / "reranked", encoded, self.k)
            if found is not None:
                return found
        if self._encoder is None:
            check_still_there(origin.model, folder)
            self.look(encoder_of(origin.model)[0])
        assert self._encoder is not None
        return rerank(self._encoder, origin.collection(), encoded, self.k, folder=beside / "reranked")

    def target(self, base: Path) -> Path:
        """Where the evaluation of this stage goes, beside that of the first."""
        return base.with_name(f"{base.name}-reranked-{self.k}-{self.unranked}")

    @property
    def title(self) -> str:
        """What stands above its table."""
        return f"re-ranked: the best {self.k:,} of each query, scored again by the matching head"
