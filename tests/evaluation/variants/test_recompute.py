"""Cells of variants against ways of scoring written out query by query."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any

import numpy as np
import pytest
from ranking import scored
from refusals import refused
from two_stage import TwoStage

from diptych.core.errors import DataError, NumericalError, UsageError
from diptych.data import Collection
from diptych.data.images import FolderSource
from diptych.evaluation.printed import Target
from diptych.evaluation.variants import (
    AXES,
    Choice,
    NotPossible,
    Recompute,
    Scored,
    Settings,
)
from diptych.evaluation.variants.axes import KEPT
from diptych.metrics import Candidates, GroundTruth, Reranked, similarity

CELLS = tuple(f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10))
NOTHING = Target.of(dict.fromkeys(CELLS, 10.0), 1)


@pytest.fixture(scope="module")
def model() -> TwoStage:
    return TwoStage(100, k=5)


@pytest.fixture(scope="module")
def truth(model: TwoStage) -> GroundTruth:
    return GroundTruth.from_caption_image(model.home, 100)


def cosine(images: np.ndarray, texts: np.ndarray, truth: GroundTruth, **options: Any) -> Scored:
    return Scored(similarity("cosine").source(images, texts), truth, **options)


def chosen(source: Scored, target: Target = NOTHING, **wanted: str) -> Settings:
    """Settings with choices made by axis and name, as the explorer makes them."""
    fields: dict[str, Any] = {}
    for axis in AXES:
        options = {one.name: one for one in axis.choices({"test": source}, target)}
        fields |= options[wanted.get(axis.name, next(iter(options)))].fields
    return Settings(**fields)


def cells(source: Scored, wanted: Settings, names: tuple[str, ...] = CELLS) -> dict[str, float]:
    return Recompute({"test": source}, names, 16, threads=1).cells(wanted)


def test_columns(model: TwoStage, truth: GroundTruth) -> None:
    source = cosine(model.images, model.texts, truth)
    plain = cells(source, chosen(source))
    rotated = cells(source, chosen(source, columns="i2t rotated to R@5, R@10, R@1"))
    assert [rotated[f"i2t R@{k}"] for k in (1, 5, 10)] == [plain[f"i2t R@{k}"] for k in (5, 10, 1)]
    assert rotated["t2i R@5"] == plain["t2i R@5"]
    swapped = cells(source, chosen(source, columns="directions swapped"))
    assert all(swapped[f"i2t R@{k}"] == plain[f"t2i R@{k}"] for k in (1, 5, 10))


def test_what_cannot_be(model: TwoStage, truth: GroundTruth) -> None:
    images, texts, scores = model.images, model.texts, model.contrastive
    some = scored(images, texts, model.matching, 4)
    other = TwoStage(40)
    broken = model.matching.copy()
    broken[3, 7] = np.nan
    matched: dict[str, Any] = {"depth": 2, "matched": True}
    stranger = scored(other.images, other.texts, other.matching, 4)
    plain = cosine(images, texts, truth)
    few = cosine(images, texts, truth, reranked=some)
    both: dict[str, Any] = {"matching": model.matching, "reranked": some}
    of_40 = "candidates of 40 images and 200 texts for a ground truth of 100 images and 500 texts"
    refused(DataError, of_40, cosine, images, texts, truth, reranked=stranger)
    refused(DataError, "40 image rows for a ground truth of 100", cosine, images[:40], texts, truth)
    refused(DataError, "500 image rows for a ground truth of 100", Scored, scores.T, truth)
    refused(DataError, "2 image ids for 100 images", Scored, scores, truth, image_ids=["a", "b"])
    refused(UsageError, "give one of them", Scored, scores, truth, **both)
    refused(NumericalError, "row 3 and text row 7 is nan", Scored, scores, truth, matching=broken)
    refused(NotPossible, "no matching scores", cells, plain, Settings("test", **matched))
    refused(NotPossible, "only some candidates", cells, few, Settings("test", matched=True))


def test_two_measures_called_map(model: TwoStage, truth: GroundTruth) -> None:
    """Over the positives that are found, and over all five that could be."""
    source = cosine(model.images, model.texts, truth)
    target = Target.of({"i2t mAP@5": 40.0}, 0)
    plain, over_hits = (chosen(source, target, mAP=name) for name in ("over positives", "over hits"))
    order = np.argsort(-model.contrastive, axis=1)[:, :5]
    hits = model.home[order] == np.arange(100)[:, None]
    precision = np.cumsum(hits, axis=1) / np.arange(1, 6)
    sums = np.sum(precision * hits, axis=1)
    names = ("i2t mAP@5", "i2t R@5")
    found = [cells(source, one, names) for one in (plain, over_hits)]
    assert found[0]["i2t mAP@5"] == pytest.approx(100 * np.mean(sums / 5))
    assert found[1]["i2t mAP@5"] == pytest.approx(100 * np.mean(sums / np.maximum(hits.sum(axis=1), 1)))
    assert found[0]["i2t R@5"] == found[1]["i2t R@5"]
    assert len(list(AXES.get("mAP").choices({"test": source}, NOTHING))) == 1


def test_random_captions_are_those_that_embedding_draws() -> None:
    """``diptych embed --captions random:1`` and ``captions = random, seed 1`` mean the same captions."""
    counts = np.random.default_rng(0).integers(1, 7, 60)
    home = np.repeat(np.arange(60), counts)
    ids = [f"{row:03d}.jpg" for row in np.random.default_rng(1).permutation(60)]
    collection = Collection(
        name="made-up",
        image_ids=ids,
        captions=[f"caption {row}" for row in range(len(home))],
        caption_ids=[str(row) for row in range(len(home))],
        caption_image=home,
        splits=["test"] * 60,
        source=FolderSource("nowhere", ids),
        source_rows=np.arange(60),
    )
    scores = np.zeros((60, len(home)))
    source = Scored(scores, GroundTruth.from_caption_image(home, 60), image_ids=ids)
    for seed in (0, 1, 2):
        settings = chosen(source, captions=f"random, seed {seed}")
        kept = KEPT[settings.captions](source.truth, source.image_keys)
        assert list(map(str, kept)) == list(collection.random_captions(seed=seed).caption_ids)


VARIED = ("captions", "counting", "k_test", "unranked", "ties")


class Case:
    """Whole-number scores of a few pictures with uneven captions, some of which fit other pictures too."""

    def __init__(self, seed: int, kind: str) -> None:
        draw = np.random.default_rng(seed)
        self.n = int(draw.choice([4, 6, 8]))
        self.home = draw.permutation(np.repeat(np.arange(self.n), draw.integers(1, 8, self.n)))
        shape = (self.n, len(self.home))
        self.scores = draw.integers(0, draw.integers(2, 30), shape).astype(float)
        self.matching = draw.integers(-4, 4, shape).astype(float)
        self.adds = bool(seed % 2)
        own = self.home[None, :] == np.arange(self.n)[:, None]
        self.relevant = {
            "i2t": own | (draw.random(shape) < 0.08),
            "t2i": (own | (draw.random(shape) < 0.08)).T,
        }
        self.truth = GroundTruth.from_directions(
            np.nonzero(self.relevant["i2t"]),
            np.nonzero(self.relevant["t2i"])[::-1],
            *shape,
            text_image=self.home,
        )
        self.stored: dict[str, np.ndarray] = {}
        reranked = None
        if kind == "stored":
            k = int(draw.integers(2, self.n + 1))
            sides = []
            for name, first, second in self.directions():
                items = np.argsort(-first, axis=1, kind="stable")[:, :k]
                self.stored[name] = items
                sides.append(
                    Candidates(
                        items, *(np.take_along_axis(one, items, 1).astype("f4") for one in (first, second))
                    )
                )
            reranked = Reranked(*sides, adds_contrastive=self.adds)
        whole = self.matching if kind == "whole" else None
        self.source = Scored(
            self.scores, self.truth, matching=whole, reranked=reranked, adds_contrastive=self.adds
        )

    def directions(self) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
        yield "i2t", self.scores, self.matching
        yield "t2i", self.scores.T, self.matching.T

    def cells(self, wanted: Settings, folds: int, counting: str) -> dict[str, float] | None:
        """What a variant is, ranked with a list per query; None where there are too few candidates."""
        texts: Iterable[int] = range(len(self.home))
        if wanted.captions:
            texts = KEPT[wanted.captions](self.truth, self.source.image_keys).tolist()
        found: dict[str, list[float]] = {name: [] for name in CELLS}
        size = self.n // folds
        for fold in range(folds):
            images = list(range(fold * size, (fold + 1) * size))
            here = [text for text in texts if folds == 1 or self.home[text] // size == fold]
            for name, first, second in self.directions():
                queries, gallery = (images, here) if name == "i2t" else (here, images)
                chosen = self.chosen(wanted, name, first, queries, gallery)
                if chosen is None:
                    return None
                hits: dict[int, list[float]] = {1: [], 5: [], 10: []}
                for query in queries:
                    positives = {item for item in gallery if self.relevant[name][query, item]}
                    if counting == "first caption" and name == "i2t":
                        positives &= set([text for text in here if self.home[text] == query][:1])
                    final = (
                        second[query] + (first[query] if self.adds else 0.0)
                        if wanted.matched
                        else first[query]
                    )
                    order = self.order(wanted, first[query], final, chosen[query], gallery, positives)
                    for cutoff, values in hits.items():
                        values.append(expected(order, cutoff, len(positives), counting))
                for cutoff, values in hits.items():
                    found[f"{name} R@{cutoff}"].append(100 * float(np.mean(values)))
        return {name: float(np.mean(values)) for name, values in found.items()}

    def chosen(
        self, wanted: Settings, name: str, first: np.ndarray, queries: list[int], gallery: list[int]
    ) -> dict[int, list[int]] | None:
        """The candidates of every query of a gallery."""
        if wanted.depth == "everything":
            return {query: gallery for query in queries}
        depth = min(wanted.depth, len(gallery))
        if not wanted.matched or not self.stored:
            return {q: sorted(gallery, key=lambda item: (-first[q, item], item))[:depth] for q in queries}
        lists = {q: [item for item in self.stored[name][q].tolist() if item in gallery] for q in queries}
        least = min(map(len, lists.values()))
        if not least or least < (min(10, depth) if wanted.shrinks else depth):
            return None
        return {query: items[: min(least, wanted.depth)] for query, items in lists.items()}

    def order(
        self,
        wanted: Settings,
        first: np.ndarray,
        final: np.ndarray,
        chosen: list[int],
        gallery: list[int],
        positives: set[int],
    ) -> list[tuple[int, int]]:
        """Positives and negatives of every group of which the order is open, best group first."""
        keyed = [(0, -final[item], item) for item in chosen]
        if wanted.depth != "everything":
            others = [item for item in gallery if item not in chosen]
            if wanted.unranked_rule == "contrastive":
                keyed += [(1, -first[item], item) for item in others]
            elif wanted.unranked_rule == "published":
                keyed += [(0, 100.0 if wanted.matched else 1e9, item) for item in others]
        found: list[tuple[int, int]] = []
        for _, group in groupby(sorted(keyed), key=lambda one: one[:2]):
            right = [item in positives for _, _, item in group]
            hits, misses = sum(right), len(right) - sum(right)
            found += {
                "expected": [(hits, misses)],
                "pessimistic": [(0, 1)] * misses + [(1, 0)] * hits,
                "optimistic": [(1, 0)] * hits + [(0, 1)] * misses,
                "compat": [(int(one), int(not one)) for one in reversed(right)],
            }[wanted.tie_rule]
        return found


def expected(order: list[tuple[int, int]], cutoff: int, positives: int, counting: str) -> float:
    """R@cutoff of one query, over all orders of what is tied."""
    before, hits = 0, 0.0
    for right, wrong in order:
        places = max(0, min(cutoff - before, right + wrong))
        if counting not in ("share of all", "share of possible"):
            if right:
                return 1 - math.comb(wrong, places) / math.comb(right + wrong, places)
        elif places:
            hits += places * right / (right + wrong)
        before += right + wrong
    return hits / max(1, positives if counting == "share of all" else min(positives, cutoff))


@pytest.mark.parametrize("kind", ["contrastive alone", "whole", "stored"])
@pytest.mark.parametrize("seed", range(6))
def test_every_pair_of_choices(seed: int, kind: str) -> None:
    case = Case(seed, kind)
    most = case.source.most_matched
    recompute = Recompute({"test": case.source}, CELLS, 256 if most is None else most or 16, threads=1)
    default, options = chosen(case.source), []
    for axis in AXES:
        _, *others = axis.choices({"test": case.source}, NOTHING)
        options += [(axis.name, one) for one in others if axis.name in VARIED]
    pairs: list[tuple[tuple[str, Choice], ...]] = [()]
    pairs += [(one,) for one in options]
    pairs += [(one, other) for one, other in combinations(options, 2) if one[0] != other[0]]
    compared = 0
    for number, pair in enumerate(pairs):
        wanted = default
        for _, choice in pair:
            wanted = replace(wanted, **choice.fields)
        if not all(choice.applies(wanted) for _, choice in pair):
            continue
        folds = 1 + number % 2
        wanted = replace(wanted, partition="full" if folds == 1 else "folds(2)")
        counting = next((choice.name for axis, choice in pair if axis == "counting"), "")
        by_hand = case.cells(wanted, folds, counting)
        if by_hand is None:
            with pytest.raises(NotPossible):
                recompute.cells(wanted)
            continue
        compared += 1
        assert recompute.cells(wanted) == pytest.approx(by_hand), [(axis, one.name) for axis, one in pair]
    assert compared > 20
