"""``--relevance``: rows of the same pictures and captions by the model that says how relevant an item is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sources import Origin, encode_part, encoder_of
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.encoders.encode import EncodedCollection
    from diptych.evaluation import Relevance

__all__ = ["check_uses_relevance", "gains_beside", "relevance_named"]


def check_uses_relevance(name: str, measures: Sequence[str]) -> None:
    """See before the work that a relevance model changes a number.

    Raises:
        UsageError: no measure asks it.
    """
    from diptych.evaluation.measuring import GainMeasure, resolve

    plain, _ = resolve(measures)
    if not any(isinstance(one, GainMeasure) and one.gain.of == "similarity" for one in plain):
        raise UsageError(
            f"--relevance {name}: none of {', '.join(measures)} asks how relevant an item is",
            "add --measure DCG_CM@10 or --measure nDCG_CM@10",
        )


def gains_beside(encoded: EncodedCollection, relevance: Relevance | None) -> tuple[str, ...]:
    """The measures of gains that are computed beside the default ones where people's judgements are given."""
    if encoded.similarity != "cosine" and relevance is None:
        return ("nDCG@10",)  # penalties are no gains
    return ("nDCG@10", "DCG_CM@10", "nDCG_CM@10")


def relevance_named(name: str, encoded: EncodedCollection, origin: Origin, folder: Path) -> Relevance:
    """The relevance model called ``name``.

    Args:
        name: a folder of rows, as ``diptych embed`` writes it, of the same data, or a run or encoder, whose rows
            are made now and kept beside ``folder``.
        encoded: what is evaluated.
        origin: where it came from.
        folder: where its rows are.

    Raises:
        MismatchError: the rows are of other pictures or captions, or are compared by a penalty.
    """
    from diptych.encoders.encode import EncodedCollection
    from diptych.training.relevance_rows import relevance_of

    if all((Path(name) / file).is_file() for file in ("about.json", "caption_image.npy")):
        return relevance_of(encoded, EncodedCollection.open(name))
    encoder, _ = encoder_of(name)
    home = folder.with_name(f"{folder.name}-relevance-{encoder.fingerprint[:8]}")
    whole = Origin(name, origin.data, None, origin.captions, origin.centric)
    part = Origin(name, origin.data, origin.split, origin.captions, origin.centric)
    return relevance_of(encoded, encode_part(encoder, whole.collection(), part, home))
