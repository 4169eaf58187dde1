"""Scoring an encoder on a collection, with everything written that the number depends on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diptych.data.collection import Collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import EncodedCollection, encode_collection
from diptych.evaluation import (
    DEFAULT_MEASURES,
    Bootstrap,
    GroundTruth,
    Result,
    evaluate,
    write_trec,
)

__all__ = ["evaluate_encoded", "evaluate_encoder", "ground_truth_of"]

TREC_DEPTH = 100
"""How many items per query a TREC run file holds."""


def ground_truth_of(encoded: EncodedCollection) -> GroundTruth:
    """Which caption describes which picture, as evaluation wants it."""
    return GroundTruth.from_caption_image(encoded.caption_image, len(encoded.images))


def evaluate_encoded(
    encoded: EncodedCollection,
    folder: Path | str | None = None,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    protocol: str = "full",
    ties: str = "expected",
    samples: int = 1000,
    trec: bool = True,
    about: dict[str, Any] | None = None,
) -> Result:
    """Measure retrieval in both directions on stored embeddings.

    Args:
        encoded: pictures, captions, and who describes whom.
        folder: the result, values per query, TREC run and qrels files go there; nowhere when None.
        measures: names such as ``R@5`` or ``mAP@10``.
        protocol: ``full``, ``coco-1k``, ``coco-5k`` or ``folds(n)``.
        ties: the tie rule.
        samples: bootstrap resamples for the intervals; 0 for none.
        trec: whether to write the TREC files (only of the full gallery).
        about: what else the numbers depend on.

    Raises:
        NumericalError: a row is not finite; the message names it.
        DataError: the test set is not the protocol's.
    """
    said = {
        "dataset": encoded.about["dataset"],
        "split": encoded.about["split"] or "all",
        "encoder": encoded.images.encoder,
        "data": encoded.about["data"],
    }
    truth = ground_truth_of(encoded)
    result = evaluate(
        encoded.images.rows,
        encoded.texts.rows,
        truth,
        measures,
        protocol=protocol,
        ties=ties,
        bootstrap=Bootstrap(samples),
        image_ids=encoded.images.ids,
        text_ids=encoded.texts.ids,
        about={**said, **(about or {})},
    )
    if folder is not None:
        folder = result.save(folder)
        if trec:
            ids = ([_without_space(name) for name in side.ids] for side in (encoded.images, encoded.texts))
            write_trec(folder, encoded.images.rows, encoded.texts.rows, truth, *ids, k=TREC_DEPTH)
    return result


def evaluate_encoder(
    encoder: DualEncoder, collection: Collection, folder: Path | str, **options: Any
) -> Result:
    """Embed a collection and measure it; options as in :func:`evaluate_encoded`.

    Embeddings go to ``folder/embeddings`` and are used again when nothing has changed.
    """
    encoded = encode_collection(encoder, collection, Path(folder) / "embeddings")
    return evaluate_encoded(encoded, Path(folder) / "evaluation", **options)


def _without_space(name: str) -> str:
    """TREC files are split at white space, file names are not."""
    return "_".join(name.split())
