"""Recompute: the cells of any variant, everything that several variants share being computed once.

A ranking depends on the view alone (which embeddings, texts, galleries and relevance), a re-ranking on the
view and how many candidates; ties, counting and columns cost next to nothing after that. The candidates of
the last few views are kept, ranks of positives (a few numbers per query) of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from diptych.core.draws import keys_of
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.printed.target import SUM_PARTS, cell_parts, sum_cells
from diptych.evaluation.reranking import CandidateRanks, FirstStage, check_candidates, first_stages
from diptych.evaluation.result import Fold, neighbours, partition
from diptych.evaluation.variants.settings import LEAST_SHRUNK, NotPossible, Settings, View
from diptych.metrics.candidates import Candidates, Reranked
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.metrics.measuring import Measure, measure
from diptych.metrics.ranks import Ranks, check_sizes, ranks_of, tie_groups
from diptych.metrics.sources import GivenScores, Rows, ScoreSource
from diptych.metrics.sources import similarity as similarity_of
from diptych.metrics.topk import best_of


class Scored:
    """A test set with contrastive scores, and matching scores as a matrix or of stored candidates."""

    def __init__(
        self,
        source: ScoreSource,
        truth: GroundTruth,
        *,
        matching: GivenScores | None = None,
        reranked: Reranked | None = None,
        adds_contrastive: bool = False,
        about: Mapping[str, Any] | None = None,
        image_ids: Sequence[str] | None = None,
    ) -> None:
        if matching is not None and reranked is not None:
            raise UsageError("matching scores as a matrix and of candidates", "give one of them")
        for one in (source, matching):
            if one is not None:
                check_sizes(one, truth)
        if image_ids is not None and len(image_ids) != truth.n_images:
            raise DataError(f"{len(image_ids):,} image ids for {truth.n_images:,} images")
        if reranked is not None:
            check_candidates(reranked, truth)
        self.truth = truth
        self.about: Mapping[str, Any] = dict(about or {})  # what the scores depend on; JSON-able
        # Whole numbers that follow the images wherever they stand: of their ids, else their rows.
        self.image_keys = np.arange(truth.n_images) if image_ids is None else keys_of(image_ids)
        self._source, self._matching, self._reranked = source, matching, reranked
        self._adds = adds_contrastive
        # Candidates per query with matching scores: 0 for none, None for all.
        self.most_matched: int | None = 0 if reranked is None else reranked.k
        if matching is not None:
            self.most_matched = None

    def part(self, images: Rows, texts: Rows, matched: bool) -> ScoreSource:
        """Return scores of some images and texts; of the matching head where ``matched``."""
        part = self._source.part(images, texts)
        if not matched:
            return part
        if self._matching is None:
            raise NotPossible("only some candidates have matching scores", "choose how many are ranked")
        final = self._matching.part(images, texts)
        if not self._adds:
            return final
        assert isinstance(part, GivenScores)
        return GivenScores(final.scores + part.scores)

    def candidates(
        self, direction: Direction, images: Rows, texts: Rows, k: int, matched: bool
    ) -> tuple[Candidates, bool]:
        """Return the ``k`` best of each query by contrastive score, and whether the final score adds it.

        Without ``matched`` the final score ranks as the contrastive score does. Fewer than ``k`` where the
        gallery is smaller, or where some query has no more stored matching scores in it.
        """
        if matched and self._matching is None:
            return _stored(self._reranked, direction, images, texts, k)
        items, contrastive = best_of(self._source.part(images, texts), direction, k)
        if not matched or self._matching is None:
            return _in_order(items, contrastive), False
        matching = self._matching.part(images, texts).scores
        turned = matching if direction == "i2t" else matching.T
        final = np.take_along_axis(turned, items, axis=1)
        return Candidates(items, contrastive.astype(np.float32), final.astype(np.float32)), self._adds


class RowScores(Scored):
    """Scores of (n, d) image rows and (m, d) text rows, with stored matching scores of their candidates."""

    def __init__(
        self,
        images: np.ndarray,
        texts: np.ndarray,
        truth: GroundTruth,
        *,
        similarity: str = "cosine",
        **options: Any,
    ) -> None:
        super().__init__(similarity_of(similarity).source(images, texts), truth, **options)


class MatrixScores(Scored):
    """Scores of a (n_images, n_texts) contrastive matrix, and of a matching matrix of the same shape."""

    def __init__(
        self, scores: np.ndarray, truth: GroundTruth, *, matching: np.ndarray | None = None, **options: Any
    ) -> None:
        second = None if matching is None else GivenScores(matching)
        super().__init__(GivenScores(scores), truth, matching=second, **options)


def _in_order(items: np.ndarray, scores: np.ndarray) -> Candidates:
    """Return candidates that the contrastive score itself ranks."""
    # The final score is minus how many different scores stand above: float32 cannot tell all of float64 apart.
    steps = np.zeros(scores.shape, dtype=np.float32)
    np.cumsum(scores[:, 1:] < scores[:, :-1], axis=1, out=steps[:, 1:])
    return Candidates(items, scores.astype(np.float32), -steps)


def _stored(
    reranked: Reranked | None, direction: Direction, images: Rows, texts: Rows, k: int
) -> tuple[Candidates, bool]:
    """Return stored candidates of some queries, without those that are not in the part's gallery."""
    if reranked is None:
        raise NotPossible("there are no matching scores", "re-rank these embeddings too")
    one = reranked.candidates(direction)
    queries, gallery = (images, texts) if direction == "i2t" else (texts, images)
    size = reranked.n_texts if direction == "i2t" else reranked.n_images
    rows = np.arange(size)[gallery]
    place = np.full(size, -1, dtype=np.int64)
    place[rows] = np.arange(len(rows))
    items = place[one.items[queries]]
    inside = items >= 0
    least = int(np.count_nonzero(inside, axis=1).min(initial=one.k))
    if not least:
        raise NotPossible(
            "some query has no stored candidate left in the smaller gallery", "re-rank more candidates"
        )
    order = np.argsort(~inside, axis=1, kind="stable")[:, : min(k, least)]
    arrays = (items, one.contrastive[queries], one.matching[queries])
    return Candidates(*(np.take_along_axis(one, order, axis=1) for one in arrays)), reranked.adds_contrastive


_KEPT = 6  # views whose candidates are kept
_Both = dict[Direction, Ranks]


class Recompute:
    def __init__(
        self, sources: Mapping[str, Scored], cells: Iterable[str], most: int, threads: int | None = None
    ) -> None:
        self._sources, self._most, self._threads = dict(sources), most, threads
        self._wanted = tuple(cells)
        kinds = [kind for _, kind in map(cell_parts, self._wanted) if kind != "rsum"]
        self._measures = [cast(Measure, measure(name)) for name in dict.fromkeys([*SUM_PARTS, *kinds])]
        self._every = any(member.positives == "all" for member in self._measures)
        self._parts: dict[View, list[Fold]] = {}
        self._ranks: dict[tuple[View, bool, bool], list[_Both]] = {}
        self._second: dict[tuple[View, int, bool, bool, str], list[_Both]] = {}
        self._candidates: dict[tuple[View, bool], list[dict[Direction, tuple[Candidates, bool]]]] = {}
        self._values: dict[Settings, dict[str, float]] = {}

    def cells(self, settings: Settings) -> dict[str, float]:
        """Return the wanted cells, shares in per cent, with all their digits."""
        key = replace(settings, rewrite=None, rule="round")
        if key not in self._values:
            self._values[key] = self._compute(key)
        values = self._values[key]
        if settings.rewrite is not None:
            values = settings.rewrite.of(values)
        return {
            name: sum(values[part] for part in sum_cells(name)) if name.endswith("rsum") else values[name]
            for name in self._wanted
        }

    def sizes(self, settings: Settings) -> dict[Direction, tuple[int, float, int]]:
        """Return per direction the size of one gallery, mean positives of a query, number of queries."""
        parts = self._view(settings.view)
        found: dict[Direction, tuple[int, float, int]] = {}
        for name in DIRECTIONS:
            positives = [part.ground_truth.positives(name) for part in parts]
            counts = np.concatenate([one.counts for one in positives])
            found[name] = positives[0].gallery, float(counts.mean()), len(counts)
        return found

    def _compute(self, settings: Settings) -> dict[str, float]:
        parts = self._view(settings.view)
        ranked = self._ranked(settings)
        totals: dict[str, list[float]] = {}
        for part, both in zip(parts, ranked, strict=True):
            for name in DIRECTIONS:
                groups = tie_groups(both[name], settings.tie_rule)
                asked = part.ground_truth.queries(name)
                for printed in self._measures:
                    member = printed
                    if settings.precision is not None:  # the measure that the printed name stands for
                        member = cast(Measure, measure(settings.precision.of(printed.name)))
                    if settings.counting is not None and member.name.startswith("R@"):
                        values = settings.counting.of(groups, member.cutoff or 1)
                    else:
                        values = member.values(groups)
                    scale = 100 if member.kind == "share" else 1
                    value = scale * member.aggregate.of(values[asked])
                    totals.setdefault(f"{name} {printed.name}", []).append(value)
        return {name: float(np.mean(values)) for name, values in totals.items()}

    def _view(self, view: View) -> list[Fold]:
        if view not in self._parts:
            label, keep, cut, relevance = view
            truth = self._sources[label].truth
            images, texts = np.arange(truth.n_images), np.arange(truth.n_texts)
            if keep is not None:
                texts = keep.of(truth, self._sources[label].image_keys)
                truth = truth.subset(images, texts)
            count = partition(cut).count
            if truth.n_images % count or (np.any(truth.text_image < 0) and count > 1):
                raise NotPossible(
                    f"{truth.n_images:,} images of {label} cannot be cut into {count} galleries"
                )
            if relevance is not None:
                truth = relevance.of(truth)
            self._parts[view] = [
                Fold(neighbours(images[fold.images]), neighbours(texts[fold.texts]), fold.ground_truth)
                for fold in partition(cut).folds(truth)
            ]
        return self._parts[view]

    def _ranked(self, settings: Settings) -> list[_Both]:
        view, counts_all = settings.view, self._every or settings.counting is not None
        if settings.depth == "everything":
            return self._whole(view, settings.matched, counts_all)
        depth = settings.depth
        key = (view, depth, settings.matched, settings.shrinks, settings.unranked_rule)
        if key not in self._second:
            parts, chosen = self._view(view), self._chosen(view, settings.matched)
            least = min(LEAST_SHRUNK, depth) if settings.shrinks else depth
            first: list[dict[Direction, FirstStage]] = [{}] * len(parts)
            if settings.unranked_rule == "contrastive":
                first = self._first_stages(view)
            second: list[_Both] = []
            for part, both, stage in zip(parts, chosen, first, strict=True):
                ranks: _Both = {}
                for name, (candidates, adds) in both.items():
                    positives = part.ground_truth.positives(name)
                    if candidates.k < min(least, positives.gallery):
                        text = "some query has too few stored candidates left in the smaller gallery"
                        raise NotPossible(text, "re-rank more candidates")
                    held = CandidateRanks(candidates.first(min(depth, candidates.k)), adds, positives)
                    ranks[name] = held.ranks(settings.unranked_rule, True, stage.get(name))
                second.append(ranks)
            self._second[key] = second
        return self._second[key]

    def _whole(self, view: View, matched: bool, every: bool) -> list[_Both]:
        """Return ranks of everything by one score; those of all positives serve where the best are wanted."""
        for complete in (True, every):
            if (view, matched, complete) in self._ranks:
                return self._ranks[view, matched, complete]
        source = self._sources[view[0]]
        self._ranks[view, matched, every] = [
            ranks_of(
                source.part(part.images, part.texts, matched),
                part.ground_truth,
                every=every,
                threads=self._threads,
            )
            for part in self._view(view)
        ]
        return self._ranks[view, matched, every]

    def _chosen(self, view: View, matched: bool) -> list[dict[Direction, tuple[Candidates, bool]]]:
        """Return the candidates of every gallery, as many as any variant wants."""
        key = ((*view[:3], None), matched)  # candidates do not depend on what is relevant
        if key not in self._candidates:
            source = self._sources[view[0]]
            self._candidates[key] = [
                {
                    name: source.candidates(name, part.images, part.texts, self._most, matched)
                    for name in DIRECTIONS
                }
                for part in self._view(view)
            ]
        self._candidates[key] = self._candidates.pop(key)  # the last one used
        while len(self._candidates) > _KEPT:
            del self._candidates[next(iter(self._candidates))]
        return self._candidates[key]

    def _first_stages(self, view: View) -> list[dict[Direction, FirstStage]]:
        """The contrastive order of everything, to follow the candidates."""
        source = self._sources[view[0]]
        return [
            first_stages(source.part(part.images, part.texts, False), part.ground_truth, both)
            for part, both in zip(self._view(view), self._whole(view, False, True), strict=True)
        ]
