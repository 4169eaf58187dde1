"""Measure a head on a split: what its sparse rows keep of the dense ones, what they cost, what they say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.chart import Chart, Series
from diptych.core.errors import MismatchError, UsageError
from diptych.core.table import Cell, Table, Tabular
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation import Result, compare, evaluate
from diptych.evaluation.agreement import Faithfulness, faithfulness, overlap_at
from diptych.metrics import DIRECTIONS, GroundTruth, measure, similarity
from diptych.metrics.sparse_products import sparse_top_k
from diptych.sparse.measures import (
    Deviation,
    StaticEmbedding,
    empty_share,
    flops,
    measure_deviation,
    nonzeros,
)
from diptych.sparse.sparsified import SparsifiedCollection
from diptych.sparse.vocabulary import TermVocabulary

_MEASURES = ("R@1", "R@5", "R@10", "MRR@10", "rsum")
_WAYS = {"i2t": "image → text", "t2i": "text → image"}
_LIST = 10  # items of a list that overlap and agreement are of


@dataclass(frozen=True, eq=False)
class SparseMeasures(Tabular, Artifact, kind="sparse_measures", recreate="diptych sparse train"):
    """Measures that :func:`measure_sparsified` returns."""

    about: dict[str, Any]  # dataset, split, sizes, fingerprints of encoder, head and vocabulary, expansion
    dense: Result  # retrieval by the dense rows
    sparse: Result  # retrieval by the sparse rows
    flops: float  # mean number of common terms of a caption and an image (Eq. 3.1)
    nonzeros: dict[str, float]  # mean number of terms, of ``images`` and of ``texts``
    empty: dict[str, float]  # share of rows without a term, likewise
    deviation: Deviation  # what captions' terms mean
    faithful: dict[str, Faithfulness]  # per direction
    p: dict[str, float | None]  # ``"t2i R@1"`` … → p-value of the paired t-test over images, corrected
    # per caption ``exact`` and ``semantic``, and per query ``overlap t2i`` and ``overlap i2t``
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def kept(self, name: str, direction: str) -> float:
        """The sparse value as a share of the dense one; NaN where the dense one is 0."""
        dense = self.dense.value(name, direction)
        return self.sparse.value(name, direction) / dense if dense else math.nan

    def tables(self) -> list[Table]:
        """Return retrieval dense and sparse, cost and terms, and how faithful the sparse rankings are."""
        deviation, ways = self.deviation, self.faithful.values()
        counted = {
            "FLOPs: terms that a caption and an image share": _number(self.flops, 2),
            "terms per image": _number(self.nonzeros["images"], 1),
            "terms per caption": _number(self.nonzeros["texts"], 1),
            "images without a term": _percent(self.empty["images"]),
            "captions without a term": _percent(self.empty["texts"]),
            f"Exact@{deviation.k}: leading terms that the caption contains": _percent(deviation.exact),
        }
        if deviation.semantic is not None:
            counted |= {
                f"Semantic@{deviation.k}: their likeness to its words": _percent(deviation.semantic),
                "leading terms without a vector": _percent(deviation.unknown_terms),
                "words without a vector": _percent(deviation.unknown_words),
            }
        measures = next(iter(ways)).pearson
        faithful = {f"Pearson {one}": [_percent(way.pearson[one]) for way in ways] for one in measures}
        faithful[f"overlap of the top {_LIST}"] = [_percent(way.overlap) for way in ways]
        faithful["Kendall τ of the common items"] = [_number(way.kendall, 3) for way in ways]
        return [
            Table(
                f"Dense and sparse embeddings, {self.about['split']} split",
                ("measure", "dense", "sparse", "kept", "p"),
                [self._kept(name, way) for way, scores in self.dense.scores.items() for name in scores],
                after="kept: of the dense value; p: paired t-test over images, corrected (Bonferroni)",
            ),
            Table("Cost and terms", ("", "sparse"), [[Cell(name), cell] for name, cell in counted.items()]),
            Table(
                "Faithfulness to the dense embeddings",
                ("", *(_WAYS[way] for way in self.faithful)),
                [[Cell(name), *cells] for name, cells in faithful.items()],
                after="Pearson: correlation of the values per query; overlap: items that both lists have",
            ),
        ]

    def _kept(self, name: str, direction: str) -> list[Cell]:
        label = f"{direction} {name}".removeprefix("both ")
        show, p = measure(name).show, self.p.get(label)
        values = [one.value(name, direction) for one in (self.dense, self.sparse)]
        chance = Cell("–") if p is None else Cell("< 0.001" if p < 0.001 else f"{p:.3f}", value=p)
        cells = (Cell(show(value), value=value) for value in values)
        return [Cell(label), *cells, _percent(self.kept(name, direction)), chance]

    def charts(self) -> list[Chart]:
        """Return how many of the best dense items the sparse lists have again (thesis, Figure 3.2b)."""
        bars = []
        for way, name in _WAYS.items():
            places = np.rint(self.values[f"overlap {way}"] * _LIST).astype(np.int64)
            shares = 100 * np.bincount(places, minlength=_LIST + 1) / len(places)
            bars.append(Series(f"{name}, mean {places.mean():.1f}", shares.tolist(), mark="bar"))
        title, categories = f"The {_LIST} best dense items in the sparse lists", map(str, range(_LIST + 1))
        return [Chart(title, bars, "items in both lists", "% of queries", tuple(categories))]

    def lines(self) -> list[str]:
        """Return what the numbers depend on."""
        return ["; ".join(f"{key} {value}" for key, value in self.about.items() if value is not None)]


def _percent(share: float | None) -> Cell:
    return Cell("–") if share is None or math.isnan(share) else Cell(f"{100 * share:.1f} %", value=share)


def _number(value: float, digits: int) -> Cell:
    return Cell("–") if math.isnan(value) else Cell(f"{value:.{digits}f}", value=value)


def measure_sparsified(
    encoded: EncodedCollection,
    sparsified: SparsifiedCollection,
    vocabulary: TermVocabulary,
    captions: Sequence[str] = (),
    *,
    embedding: StaticEmbedding | None = None,
    k: int = 20,
) -> SparseMeasures:
    """Measure what sparse rows keep of the dense ones, what they cost and what they mean, on one split.

    Args:
        captions: of the split; Semantic@k reads their words.
        embedding: what Semantic@k measures nearness by; without one it is left out.
        k: how many of a caption's leading terms are looked at.
    """
    images, texts = sparsified.images, sparsified.texts
    if [*encoded.images.ids, *encoded.texts.ids] != [*images.ids, *texts.ids]:
        raise MismatchError(
            f"{len(encoded.images):,} images and {len(encoded.texts):,} captions have dense rows, {len(images):,} and "
            f"{len(texts):,} sparse ones, or in another order",
            "compare the sparse rows with the dense ones that they were made of",
        )
    if texts.vocabulary != vocabulary.fingerprint:
        raise MismatchError(
            f"rows over the vocabulary {texts.vocabulary}, measured with {vocabulary.fingerprint}",
            "take the vocabulary of the head that made the rows",
        )
    if embedding is not None and not captions:
        raise UsageError("Semantic@k compares terms with the words of captions", "give the captions")
    truth = GroundTruth.from_caption_image(encoded.caption_image, len(encoded.images))
    about = encoded.about
    data = {"dataset": about["dataset"], "split": about["split"] or "all"}
    data |= {"encoder": encoded.images.encoder, "data": about["data"]}
    head = {
        "head": images.encoder,
        "vocabulary": vocabulary.fingerprint,
        "expansion in training": sparsified.about.get("expansion"),
        "expansion in use": "all terms" if texts.about.get("expansion", True) else "own terms only",
    }
    dense_rows, rows = (encoded.images.rows, encoded.texts.rows), (images.rows, texts.rows)
    dense = evaluate(
        *dense_rows, truth, _MEASURES, similarity=encoded.similarity, ties="expected", about=data
    )
    sparse = evaluate(*rows, truth, _MEASURES, ties="expected", about={**data, **head})
    own = sparsified.caption_terms
    deviation, values = measure_deviation(texts.rows, own, vocabulary, k, embedding, captions)
    faithful: dict[str, Faithfulness] = {}
    for direction in DIRECTIONS:
        best = similarity(encoded.similarity).best(*dense_rows, direction, _LIST)
        found = sparse_top_k(*(rows if direction == "i2t" else rows[::-1]), _LIST)
        faithful[direction] = faithfulness(dense, sparse, best, found, direction=direction)
        values[f"overlap {direction}"] = overlap_at(best[0], found[0])
    # The swaps of the other test, which is made as well, are not looked at: one is enough.
    compared = compare({"dense": dense, "sparse": sparse}, _MEASURES, test="t", samples=0, flips=1)
    return SparseMeasures(
        about={
            **data,
            "images": len(encoded.images),
            "captions": len(encoded.texts),
            **head,
            "terms": len(vocabulary),
            "unit": "terms of the vocabulary, special ones left out",
            "terms without weight": "never count",
            "f_enc": None if embedding is None else embedding.name,
        },
        dense=dense,
        sparse=sparse,
        flops=flops(texts.rows, images.rows),
        nonzeros={"images": nonzeros(images.rows), "texts": nonzeros(texts.rows)},
        empty={"images": empty_share(images.rows), "texts": empty_share(texts.rows)},
        deviation=deviation,
        faithful=faithful,
        p={f"{one.direction} {one.measure}".removeprefix("both "): one.p for one in compared.differences},
        values=values,
    )
