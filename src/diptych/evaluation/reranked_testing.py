"""Scoring the second stage of an encoder with a matching head on what was embedded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from diptych.core.errors import MismatchError
from diptych.data.extended_positives import ExtendedPositives
from diptych.encoders.encoded import EncodedCollection
from diptych.evaluation import Result, evaluate_reranked
from diptych.evaluation.testing import TREC_DEPTH, said_of, trec_ids, truth_of
from diptych.metrics import (
    DEFAULT_MEASURES,
    DIRECTIONS,
    Bootstrap,
    GroundTruth,
    Reranked,
    write_qrels,
    write_run,
)


def evaluate_encoded_reranked(
    encoded: EncodedCollection,
    reranked: Reranked,
    folder: Path | str | None = None,
    measures: Sequence[str] = DEFAULT_MEASURES,
    *,
    k: int | None = None,
    unranked: str = "miss",
    positives: ExtendedPositives | None = None,
    ground_truth: GroundTruth | None = None,
    protocol: str = "full",
    ties: str | None = None,
    samples: int = 1000,
    trec: bool = True,
    about: dict[str, Any] | None = None,
) -> Result:
    """Measure retrieval in both directions by the scores of the matching head."""
    _check_same(encoded, reranked)
    truth = truth_of(encoded, positives, ground_truth)
    result = evaluate_reranked(
        reranked,
        truth,
        measures,
        k=k,
        unranked=unranked,
        images=encoded.images.rows,
        texts=encoded.texts.rows,
        similarity=encoded.similarity,
        protocol=protocol,
        ties=ties,
        bootstrap=Bootstrap(samples),
        image_ids=encoded.images.ids,
        text_ids=encoded.texts.ids,
        about={**said_of(encoded, positives), **(about or {})},
    )
    if folder is not None:
        folder = result.save(folder)
        if trec:
            _write_trec(folder, encoded, reranked if k is None else reranked.first(k), truth)
    return result


def _check_same(encoded: EncodedCollection, reranked: Reranked) -> None:
    for what, made, have in (
        ("encoder", reranked.about.get("encoder"), encoded.images.encoder),
        ("data", reranked.about.get("data"), encoded.about["data"]),
    ):
        if made != have:
            raise MismatchError(
                f"the candidates are of {what} {made}, the embeddings of {have}",
                "re-rank these embeddings: diptych evaluate --rerank",
            )


def _write_trec(folder: Path, encoded: EncodedCollection, reranked: Reranked, truth: GroundTruth) -> None:
    """The candidates in their final order, of the queries that are asked."""
    images, texts = trec_ids(encoded)
    for name in DIRECTIONS:
        asked, positives = truth.queries(name), truth.positives(name)
        query_ids, gallery_ids = (images, texts) if name == "i2t" else (texts, images)
        final = reranked.final(name)[asked].astype(np.float64)
        order = np.argsort(-final, axis=1, kind="stable")[:, :TREC_DEPTH]
        rows = np.take_along_axis(reranked.candidates(name).items[asked], order, axis=1)
        names = [query_ids[row] for row in asked.tolist()]
        scores = np.take_along_axis(final, order, axis=1)
        write_run(folder / f"{name}.run", names, gallery_ids, rows, scores)
        write_qrels(folder / f"{name}.qrels", names, gallery_ids, positives.taken(asked))
