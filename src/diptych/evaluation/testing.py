"""Scoring an encoder on a collection, with everything written that the number depends on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diptych.core.errors import UsageError
from diptych.data.collection import Collection
from diptych.data.extended_positives import ExtendedPositives, read_extended_positives
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.encoders.encoded import EncodedCollection
from diptych.evaluation import Result, evaluate
from diptych.metrics import (
    DEFAULT_MEASURES,
    DIRECTIONS,
    Bootstrap,
    Grades,
    GroundTruth,
    Relevance,
    write_trec,
)

TREC_DEPTH = 100
"""How many items per query a TREC run file holds."""


def positives_of(encoded: EncodedCollection, source: str, **options: Any) -> ExtendedPositives:
    """Extended positives of what was embedded; ``source`` is ``FORMAT:PATH``.

    Options and errors as of :func:`~diptych.data.extended_positives.read_extended_positives`.
    """
    return read_extended_positives(
        source, encoded.images.ids, encoded.texts.ids, encoded.caption_image, **options
    )


def ground_truth_of(encoded: EncodedCollection, positives: ExtendedPositives | None = None) -> GroundTruth:
    """Which caption describes which picture, as evaluation wants it: the collection's pairs, or extended ones."""
    if positives is None:
        return GroundTruth.from_caption_image(encoded.caption_image, len(encoded.images))
    return GroundTruth.from_directions(
        positives.i2t,
        positives.t2i,
        len(encoded.images),
        len(encoded.texts),
        text_image=encoded.caption_image,
        asked={name: positives.asked[name] for name in DIRECTIONS if name in positives.asked},
    )


def grades_of(positives: ExtendedPositives | None) -> Grades | None:
    """Grades of pairs, where the extended positives have any."""
    if positives is None or positives.grades is None:
        return None
    return Grades(*positives.grades, what=positives.what.split(",")[0])


def truth_of(
    encoded: EncodedCollection, positives: ExtendedPositives | None, ground_truth: GroundTruth | None
) -> GroundTruth:
    """The given ground truth, or :func:`ground_truth_of`."""
    if positives is not None and ground_truth is not None:
        raise UsageError("both extended positives and a ground truth are given", "give one of them")
    return ground_truth_of(encoded, positives) if ground_truth is None else ground_truth


def said_of(encoded: EncodedCollection, positives: ExtendedPositives | None) -> dict[str, Any]:
    """What every number made of ``encoded`` carries: dataset, split, fingerprints, extended positives, and
    that a checkpoint is one of pre-training, evaluated as it is."""
    said = {
        "dataset": encoded.about["dataset"],
        "split": encoded.about["split"] or "all",
        "encoder": encoded.images.encoder,
        "data": encoded.about["data"],
    }
    if encoded.about.get("encoder", {}).get("stage") == "pre-training":  # rows made by hand say nothing
        said["stage"] = "pre-training"
    return said if positives is None else said | {"positives": positives.line()}


def trec_ids(encoded: EncodedCollection) -> tuple[list[str], list[str]]:
    """Ids of pictures and captions without white space: TREC files are split at it, file names are not."""
    images, texts = (
        ["_".join(name.split()) for name in side.ids] for side in (encoded.images, encoded.texts)
    )
    return images, texts


def evaluate_encoded(
    encoded: EncodedCollection,
    folder: Path | str | None = None,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    positives: ExtendedPositives | None = None,
    ground_truth: GroundTruth | None = None,
    protocol: str = "full",
    ties: str = "expected",
    relevance: Relevance | None = None,
    samples: int = 1000,
    trec: bool = True,
    about: dict[str, Any] | None = None,
) -> Result:
    """Measure retrieval in both directions on stored embeddings."""
    truth = truth_of(encoded, positives, ground_truth)
    result = evaluate(
        encoded.images.rows,
        encoded.texts.rows,
        truth,
        measures,
        similarity=encoded.similarity,
        protocol=protocol,
        ties=ties,
        relevance=relevance,
        grades=grades_of(positives),
        bootstrap=Bootstrap(samples),
        image_ids=encoded.images.ids,
        text_ids=encoded.texts.ids,
        about={**said_of(encoded, positives), **(about or {})},
    )
    if folder is not None:
        folder = result.save(folder)
        if trec:
            write_trec(
                folder,
                encoded.images.rows,
                encoded.texts.rows,
                truth,
                *trec_ids(encoded),
                k=TREC_DEPTH,
                similarity=encoded.similarity,
            )
    return result


def evaluate_encoder(
    encoder: DualEncoder, collection: Collection, folder: Path | str, **options: Any
) -> Result:
    """Embed a collection and measure it; options as in :func:`evaluate_encoded`.

    Embeddings go to ``folder/embeddings`` and are used again when nothing has changed.
    """
    encoded = encode_collection(encoder, collection, Path(folder) / "embeddings")
    return evaluate_encoded(encoded, Path(folder) / "evaluation", **options)
