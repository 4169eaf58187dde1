"""Every pair of axes against rankings written out item by item: ties, further positives, uneven captions."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, groupby

import numpy as np
import pytest

from diptych.evaluation.printed import Target
from diptych.evaluation.variants import AXES, Choice, Inputs, MatrixScores, NotPossible, Recompute, Settings
from diptych.metrics import Candidates, GroundTruth, Reranked

CELLS = tuple(f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10))
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
        self.source = MatrixScores(
            self.scores, self.truth, matching=whole, reranked=reranked, adds_contrastive=self.adds
        )

    def directions(self) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
        yield "i2t", self.scores, self.matching
        yield "t2i", self.scores.T, self.matching.T

    def cells(self, wanted: Settings, folds: int, counting: str) -> dict[str, float] | None:
        """What a variant is, ranked with a list per query; None where there are too few candidates."""
        texts = (
            range(len(self.home))
            if wanted.keep is None
            else wanted.keep.of(self.truth, self.source.image_keys).tolist()
        )
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
    inputs = Inputs({"test": case.source}, Target.of(dict.fromkeys(CELLS, 10.0), 1))
    most = case.source.most_matched
    recompute = Recompute({"test": case.source}, CELLS, 256 if most is None else most or 16, threads=1)
    default, options = Settings("test"), []
    for axis in AXES:
        first, *others = axis.choices(inputs)
        default = first.apply(default)
        options += [(axis.name, one) for one in others if axis.name in VARIED]
    pairs: list[tuple[tuple[str, Choice], ...]] = [()]
    pairs += [(one,) for one in options]
    pairs += [(one, other) for one, other in combinations(options, 2) if one[0] != other[0]]
    compared = 0
    for number, pair in enumerate(pairs):
        wanted = default
        for _, choice in pair:
            wanted = choice.apply(wanted)
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
