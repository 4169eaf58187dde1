"""Protocol: everything a number depends on besides the embeddings, printed with every number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from diptych.evaluation.partitioning import Partition
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.ground_truth import DIRECTIONS, GroundTruth
from diptych.metrics.measuring import GainMeasure, Measure

OWN_GAINS = "the cosine by the evaluated model"
"""How the protocol says that no other model says how relevant an item is."""

_REST = {
    "miss": "which rank after the gallery",
    "contrastive": "whose positives follow the candidates in contrastive order",
    "published": "whose positives tie with all that was not scored, at -100",
}


@dataclass(frozen=True)
class Reranking:
    """The second stage of a number: what was scored again, and what became of the rest."""

    k_test: dict[str, int]  # per direction, how many candidates of each query were scored again
    gallery: dict[str, int]  # per direction, how many items there were to choose from
    score: str  # what ranks the candidates: ``"matching"`` or ``"matching + contrastive"``
    unranked: str  # what became of positives that are no candidates; see :mod:`diptych.evaluation.reranking`
    queries: dict[str, int]  # per direction, how many queries are asked
    # per direction, how many of them have positives, none of which is a candidate
    without_ranked_positive: dict[str, int]

    def line(self) -> str:
        """Return one phrase for the protocol's line."""
        whole = [name for name, k in self.k_test.items() if k == self.gallery[name]]
        sizes = {
            f"{k:,}" if len(set(self.k_test.values())) == 1 else f"{k:,} {name}": None
            for name, k in self.k_test.items()
        }
        said = f" ({' and '.join(whole)}: the whole gallery)" if whole else ""
        counts = " and ".join(
            f"{count:,} of {self.queries[name]:,} {name}"
            for name, count in self.without_ranked_positive.items()
        )
        return (
            f"re-ranked k_test {', '.join(sizes)}{said} by {self.score} score, unranked {self.unranked}: "
            f"{counts} queries have no ranked positive, {_REST[self.unranked]}"
        )


@dataclass(frozen=True)
class Protocol:
    """Everything a number depends on besides the embeddings."""

    name: str  # the protocol's name, e.g. ``"coco-1k"``
    n_images: int  # images in the test set
    n_texts: int  # texts in the test set
    texts_per_image: tuple[int, int]  # least and most positives of an image query
    images_per_text: tuple[int, int]  # least and most positives of a text query
    galleries: int  # into how many folds the test set was cut; values are averaged over them
    ties: str  # the tie rule
    any_of_k: tuple[str, ...]  # measures for which only the best positive of a query counts
    all_positives: tuple[str, ...]  # measures for which every positive counts
    compat: tuple[str, ...]  # what follows published conventions instead of plain definitions
    without_positive: dict[str, int]  # per direction, queries that have none; they score 0 in every mean
    samples: int  # bootstrap resamples of images; 0 for no intervals
    confidence: float  # coverage of the intervals
    seed: int  # of the bootstrap
    # dataset, split, fingerprints, training seed: whatever else the numbers depend on
    about: dict[str, Any] = field(default_factory=dict)
    # by what rows are compared, ``"cosine"``, ``"dot"`` or ``"order"``; ``"given scores"``; empty where
    # candidates alone are known
    similarity: str = "cosine"
    # per direction, how many of its items are queries, where that is not all of them
    asked: dict[str, int] = field(default_factory=dict)
    reranking: Reranking | None = None  # the second stage; None where there is one stage alone
    # per measure of gains, what an item is worth and by what
    gains: dict[str, str] = field(default_factory=dict)
    items: str = ""  # a fingerprint of the ids of images and texts; empty where they have none
    # what the fingerprint of the data in ``about`` is of: ``"pictures"``, ``"regions"`` or, of given
    # embeddings, ``"rows"``
    data_kind: str = ""

    def line(self) -> str:
        """Return one line, to be printed with every number."""
        per_image = "–".join(str(count) for count in dict.fromkeys(self.texts_per_image))
        per_text = "–".join(str(count) for count in dict.fromkeys(self.images_per_text))
        parts = [f"{key} {value}" for key, value in self.about.items()]
        parts.append(
            f"{self.name}: {self.n_images:,} images, {self.n_texts:,} texts "
            f"({per_image} per image, {per_text} per text)"
        )
        parts += [f"{count:,} {direction} queries asked" for direction, count in self.asked.items()]
        if self.similarity:
            parts.append(f"similarity {self.similarity}")
        if self.reranking is not None:
            parts.append(self.reranking.line())
        if self.galleries > 1:
            parts.append(f"mean of {self.galleries} galleries")
        if self.any_of_k:
            parts.append(f"any-of-k for {', '.join(self.any_of_k)}")
        if self.all_positives:
            parts.append(f"all positives for {', '.join(self.all_positives)}")
        for worth in dict.fromkeys(self.gains.values()):
            names = ", ".join(name for name, said in self.gains.items() if said == worth)
            parts.append(f"gains of {names}: {worth}")
        parts.append(f"ties {self.ties}")
        parts += [f"compat {what}" for what in self.compat]
        parts += [
            f"{count:,} {direction} queries without a positive count as 0"
            for direction, count in self.without_positive.items()
            if count
        ]
        if self.samples:
            parts.append(
                f"{100 * self.confidence:g} % intervals from {self.samples:,} resamples of images, "
                f"seed {self.seed}"
            )
        return "; ".join(parts)


def protocol_of(
    truth: GroundTruth,
    chosen: Partition,
    ties: str,
    measures: Sequence[Measure | GainMeasure],
    how: Bootstrap,
    about: Mapping[str, Any] | None,
    similarity: str,
    reranking: Reranking | None = None,
    gains: Mapping[str, str] | None = None,
) -> Protocol:
    """Return the protocol of one evaluation."""

    def spread(direction: str) -> tuple[int, int]:
        counts = truth.positives(direction).counts[truth.queries(direction)]
        return int(counts.min()), int(counts.max())

    def size(direction: str) -> tuple[int, int]:
        return len(truth.queries(direction)), truth.positives(direction).n_queries

    published = ["ties"] if ties == "compat" else []
    if reranking is not None and reranking.unranked == "published":
        published.append("unranked")
    return Protocol(
        name=chosen.name,
        n_images=truth.n_images,
        n_texts=truth.n_texts,
        texts_per_image=spread("i2t"),
        images_per_text=spread("t2i"),
        galleries=chosen.count,
        ties=ties,
        any_of_k=tuple(member.name for member in measures if member.positives == "best"),
        all_positives=tuple(member.name for member in measures if member.positives == "all"),
        compat=tuple(published + [member.name for member in measures if member.compat]),
        without_positive={str(name): count for name, count in truth.without_positive.items()},
        samples=how.samples,
        confidence=how.confidence,
        seed=how.seed,
        about=dict(about or {}),
        similarity=similarity,
        asked={name: size(name)[0] for name in DIRECTIONS if size(name)[0] < size(name)[1]},
        reranking=reranking,
        gains=dict(gains or {}),
    )
