"""Exact@k and Semantic@k of the captions of a split, as means and per caption."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from diptych.core.artifact import Artifact
from diptych.evaluation import Result
from diptych.metrics import DIRECTIONS, measure
from diptych.sparse.measures import (
    CaptionWords,
    Faithfulness,
    StaticEmbedding,
    contained,
    exact_at,
    leading_terms,
    semantic_at,
)
from diptych.sparse.vocabulary import TermVocabulary


@dataclass(frozen=True)
class Deviation:
    """Whether captions' heaviest terms are what captions say.

    Attributes:
        k: how many terms.
        exact: mean Exact@k.
        semantic: mean Semantic@k; None without a static embedding.
        embedding: which static embedding.
        unknown_terms: share of the leading terms that the captions do not contain and the embedding does not
            know (continuations of words among them); they add 0.
        unknown_words: share of the captions' words that the embedding does not know.
    """

    k: int
    exact: float
    semantic: float | None = None
    embedding: str | None = None
    unknown_terms: float | None = None
    unknown_words: float | None = None


def measure_deviation(
    rows: csr_array,
    caption_terms: csr_array,
    vocabulary: TermVocabulary,
    k: int = 20,
    *,
    embedding: StaticEmbedding | None = None,
    words: CaptionWords | None = None,
    positive_only: bool = True,
) -> tuple[Deviation, dict[str, np.ndarray]]:
    """Exact@k and, by an embedding, Semantic@k of captions' rows: means, and values per caption.

    Args:
        rows: (n, |V|) sparse rows of captions.
        caption_terms: (n, |V|) which terms each caption contains.
    """
    how: dict[str, Any] = {"left_out": vocabulary.special, "positive_only": positive_only}
    exact = exact_at(rows, caption_terms, k, **how)
    if embedding is None:
        return Deviation(k, float(exact.mean())), {"exact": exact}
    vectors = embedding.of_terms(vocabulary.terms, vocabulary.special)
    semantic = semantic_at(rows, caption_terms, vectors, k, words=words, **how)
    known = np.any(vectors, axis=1)
    leading = leading_terms(rows, k, **how)
    others = (leading >= 0) & ~contained(leading, caption_terms)  # what captions contain needs no vector
    unknown = others & ~known[leading]
    return (
        Deviation(
            k=k,
            exact=float(exact.mean()),
            semantic=float(semantic.mean()),
            embedding=embedding.name,
            unknown_terms=float(unknown.sum() / max(1, others.sum())),
            unknown_words=None if words is None else words.unknown,
        ),
        {"exact": exact, "semantic": semantic},
    )


class KeptRow(NamedTuple):
    """A measure of both kinds of rows; shares in per cent, ``kept`` of the dense value, ``p`` corrected."""

    measure: str
    dense: str
    sparse: str
    kept: str
    p: str


@dataclass(frozen=True, eq=False)
class SparseMeasures(Artifact, kind="sparse_measures", recreate="diptych sparsify"):
    """What :func:`~diptych.sparse.evaluate.measure_sparsified` returns.

    Attributes:
        about: dataset, split, sizes, fingerprints of dense encoder, head and vocabulary, expansion in training
            and in use, and how terms are counted.
        dense: retrieval by the dense rows.
        sparse: retrieval by the sparse rows.
        flops: mean number of common terms of a caption and a picture (Eq. 3.1).
        nonzeros: mean number of terms, of ``images`` and of ``texts``.
        empty: share of rows without a term, likewise.
        deviation: what captions' terms mean.
        faithful: per direction, how much the sparse rankings are the dense ones.
        p: ``"t2i R@1"`` … → p-value of sparse against dense, paired t-test over pictures with Bonferroni's
            correction; None where it says nothing.
        values: per caption ``exact`` and ``semantic``, and per query ``overlap t2i`` and ``overlap i2t``.
    """

    about: dict[str, Any]
    dense: Result
    sparse: Result
    flops: float
    nonzeros: dict[str, float]
    empty: dict[str, float]
    deviation: Deviation
    faithful: dict[str, Faithfulness]
    p: dict[str, float | None]
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def kept(self, name: str, direction: str) -> float:
        """The sparse value as a share of the dense one; NaN where the dense one is 0."""
        dense = self.dense.value(name, direction)
        return self.sparse.value(name, direction) / dense if dense else math.nan

    def recalls(self) -> list[KeptRow]:
        """Rows for printing: every measure of both directions, dense, sparse, what was kept."""
        rows = []
        for direction in self.dense.scores:
            for name in self.dense.scores[direction]:
                label = f"{direction} {name}" if direction in DIRECTIONS else name
                show, kept, p = measure(name).show, self.kept(name, direction), self.p.get(label)
                rows.append(
                    KeptRow(
                        label,
                        show(self.dense.value(name, direction)),
                        show(self.sparse.value(name, direction)),
                        "–" if math.isnan(kept) else f"{100 * kept:.1f} %",
                        "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
                    )
                )
        return rows

    def table(self) -> list[tuple[str, str]]:
        """Names and values of everything but recalls, for printing."""
        deviation = self.deviation
        rows = [
            ("FLOPs", f"{self.flops:.2f}"),
            ("terms per picture", f"{self.nonzeros['images']:.1f}"),
            ("terms per caption", f"{self.nonzeros['texts']:.1f}"),
            ("pictures without a term", _percent(self.empty["images"])),
            ("captions without a term", _percent(self.empty["texts"])),
            (f"Exact@{deviation.k}", _percent(deviation.exact)),
        ]
        if deviation.semantic is not None:
            rows += [
                (f"Semantic@{deviation.k}", _percent(deviation.semantic)),
                ("leading terms without a vector", _percent(deviation.unknown_terms)),
                ("words without a vector", _percent(deviation.unknown_words)),
            ]
        for direction, one in self.faithful.items():
            rows += [(f"{direction} Pearson {name}", _percent(value)) for name, value in one.pearson.items()]
            rows += [
                (f"{direction} overlap of the top {one.k}", _percent(one.overlap)),
                (f"{direction} Kendall τ of the common", f"{one.kendall:.3f}".replace("nan", "–")),
            ]
        return rows

    def line(self) -> str:
        """One line, to be printed with the numbers."""
        return "; ".join(f"{key} {value}" for key, value in self.about.items() if value is not None)


def _percent(share: float | None) -> str:
    return "–" if share is None or math.isnan(share) else f"{100 * share:.1f} %"
