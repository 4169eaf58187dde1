"""Recompute: the cells of any variant, everything that several variants share being computed once.

A ranking depends on the view only (which embeddings, texts, galleries and relevance), a re-ranking on the
view and how many candidates; ties, counting and columns cost next to nothing after that. The candidates of
the last few views are kept, ranks of positives (a few numbers per query) of all.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from typing import Any, cast

import numpy as np

from diptych.core.draws import keys_of
from diptych.core.errors import DataError, UsageError
from diptych.evaluation.printed.target import SUM_PARTS, cell_parts, sum_cells
from diptych.evaluation.reranking import CandidateRanks, FirstStage, check_candidates, first_stages
from diptych.evaluation.result import Fold, neighbours, partition
from diptych.evaluation.variants.axes import KEPT, Settings, Sources, first_caption_relevant
from diptych.metrics import Candidates, Measure, Reranked, measure
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth, renumbered
from diptych.metrics.ranks import Ranks, TieGroups, check_sizes, ranks_of, tie_groups
from diptych.metrics.sources import GivenScores, Rows, ScoreSource
from diptych.metrics.topk import best_of

_LEAST = 10  # stored candidates left at least in a smaller gallery, so that R@10 is that of a ranking
_KEPT = 6  # views whose candidates are kept


class NotPossible(UsageError):
    """A variant that these inputs cannot give; it is left out, with its reason."""


@dataclass(eq=False)
class Scored:
    """A test set with contrastive scores, and matching scores as a matrix or of stored candidates."""

    scores: ScoreSource | np.ndarray  # contrastive ones; an array is the matrix (n_images, n_texts)
    truth: GroundTruth
    matching: np.ndarray | None = None  # (n_images, n_texts)
    reranked: Reranked | None = None
    adds_contrastive: bool = False  # whether the final score is matching + contrastive score
    about: Mapping[str, Any] = field(default_factory=dict)  # what the scores depend on; JSON-able
    image_ids: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.matching is not None and self.reranked is not None:
            raise UsageError("matching scores as a matrix and of candidates", "give one of them")
        self._source = self.scores if isinstance(self.scores, ScoreSource) else GivenScores(self.scores)
        self._matching = None if self.matching is None else GivenScores(self.matching)
        for one in (self._source, self._matching):
            if one is not None:
                check_sizes(one, self.truth)
        if self.image_ids is not None and len(self.image_ids) != self.truth.n_images:
            raise DataError(f"{len(self.image_ids):,} image ids for {self.truth.n_images:,} images")
        if self.reranked is not None:
            check_candidates(self.reranked, self.truth)
        # Whole numbers that follow the images wherever they stand: of their ids, else their rows.
        self.image_keys = (
            np.arange(self.truth.n_images) if self.image_ids is None else keys_of(self.image_ids)
        )
        # Candidates per query with matching scores: 0 for none, None for all.
        self.most_matched: int | None = 0 if self.reranked is None else self.reranked.k
        if self.matching is not None:
            self.most_matched = None

    def part(self, images: Rows, texts: Rows, matched: bool) -> ScoreSource:
        """Return scores of some images and texts; of the matching head where ``matched``."""
        part = self._source.part(images, texts)
        if not matched:
            return part
        if self._matching is None:
            raise NotPossible("only some candidates have matching scores", "choose how many are ranked")
        final = self._matching.part(images, texts)
        if not self.adds_contrastive:
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
            return _stored(self.reranked, direction, images, texts, k)
        items, contrastive = best_of(self._source.part(images, texts), direction, k)
        first = contrastive.astype(np.float32)
        if matched and self._matching is not None:
            matching = self._matching.part(images, texts).scores
            turned = matching if direction == "i2t" else matching.T
            final = np.take_along_axis(turned, items, axis=1).astype(np.float32)
            return Candidates(items, first, final), self.adds_contrastive
        # Minus how many different scores stand above: float32 cannot tell all of float64 apart.
        steps = np.zeros(first.shape, dtype=np.float32)
        np.cumsum(contrastive[:, 1:] < contrastive[:, :-1], axis=1, out=steps[:, 1:])
        return Candidates(items, first, -steps), False


def _stored(
    reranked: Reranked | None, direction: Direction, images: Rows, texts: Rows, k: int
) -> tuple[Candidates, bool]:
    """Return stored candidates of some queries, without those that are not in the part's gallery."""
    if reranked is None:
        raise NotPossible("there are no matching scores", "re-rank these embeddings too")
    one = reranked.candidates(direction)
    queries, gallery = (images, texts) if direction == "i2t" else (texts, images)
    size = reranked.n_texts if direction == "i2t" else reranked.n_images
    items = renumbered(np.arange(size)[gallery], size)[one.items[queries]]
    inside = items >= 0
    least = int(np.count_nonzero(inside, axis=1).min(initial=one.k))
    if not least:
        text = "some query has no stored candidate left in the smaller gallery"
        raise NotPossible(text, "re-rank more candidates")
    order = np.argsort(~inside, axis=1, kind="stable")[:, : min(k, least)]
    arrays = (items, one.contrastive[queries], one.matching[queries])
    return Candidates(*(np.take_along_axis(one, order, axis=1) for one in arrays)), reranked.adds_contrastive


_Both = dict[Direction, Ranks]


class Recompute:
    def __init__(self, sources: Sources, cells: Iterable[str], most: int, threads: int | None = None) -> None:
        self._sources, self._most, self._threads, self._cells = sources, most, threads, tuple(cells)
        kinds = [kind for _, kind in map(cell_parts, self._cells) if kind != "rsum"]
        self._measures = [cast(Measure, measure(name)) for name in dict.fromkeys([*SUM_PARTS, *kinds])]
        self._values, self._ranked = cache(self._compute), cache(self._rank)
        self._whole, self._view = cache(self._rank_all), cache(self._cut)
        self._chosen = lru_cache(_KEPT)(self._choose)

    def cells(self, settings: Settings) -> dict[str, float]:
        """Return the printed cells, shares in per cent, with all their digits."""
        values = self._values(replace(settings, columns=(), rule="round"))
        values = values | {name: values[other] for name, other in settings.columns}
        return {
            name: sum(values[part] for part in sum_cells(name)) if name.endswith("rsum") else values[name]
            for name in self._cells
        }

    def sizes(self, settings: Settings) -> dict[Direction, tuple[int, float, int]]:
        """Return per direction the size of one gallery, mean positives of a query, number of queries."""
        found: dict[Direction, tuple[int, float, int]] = {}
        for name in DIRECTIONS:
            positives = [part.ground_truth.positives(name) for part in self._view(settings.view)]
            counts = np.concatenate([one.counts for one in positives])
            found[name] = positives[0].gallery, float(counts.mean()), len(counts)
        return found

    def _compute(self, settings: Settings) -> dict[str, float]:
        ranked = replace(settings, ties="", counting="", over_hits=False, unranked=settings.unranked_rule)
        totals: dict[str, list[float]] = {}
        for part, both in zip(self._view(settings.view), self._ranked(ranked), strict=True):
            for name in DIRECTIONS:
                groups = tie_groups(both[name], settings.tie_rule)
                queries = part.ground_truth.queries(name)
                for printed in self._measures:
                    member = printed
                    if settings.over_hits and printed.name.startswith("mAP@"):
                        member = cast(Measure, measure(printed.name.replace("mAP@", "mAP-hits@")))
                    if settings.counting and member.name.startswith("R@"):
                        values = _shares(groups, member.cutoff or 1, settings.counting == "share of possible")
                    else:
                        values = member.values(groups)
                    value = member.aggregate.of(values[queries])
                    value *= 100 if member.kind == "share" else 1
                    totals.setdefault(f"{name} {printed.name}", []).append(value)
        return {name: float(np.mean(values)) for name, values in totals.items()}

    def _cut(self, view: Settings) -> list[Fold]:
        source, count = self._sources[view.source], partition(view.partition).count
        truth, images, texts = source.truth, np.arange(source.truth.n_images), np.arange(source.truth.n_texts)
        if view.captions:
            texts = KEPT[view.captions](truth, source.image_keys)
            truth = truth.subset(images, texts)
        if truth.n_images % count or (np.any(truth.text_image < 0) and count > 1):
            text = f"{truth.n_images:,} images of {view.source} cannot be cut into {count} galleries"
            raise NotPossible(text)
        if view.relevance:
            truth = first_caption_relevant(truth)
        return [
            Fold(neighbours(images[fold.images]), neighbours(texts[fold.texts]), fold.ground_truth)
            for fold in partition(view.partition).folds(truth)
        ]

    def _rank(self, settings: Settings) -> list[_Both]:
        depth, view, rule = settings.depth, settings.view, settings.unranked
        if depth == "everything":
            return self._whole(view, settings.matched)
        # Candidates do not depend on what is relevant.
        chosen = self._chosen(replace(view, relevance=""), settings.matched)
        least = min(_LEAST, depth) if settings.shrinks else depth
        first = self._first_stages(view) if rule == "contrastive" else [{}] * len(chosen)
        found: list[_Both] = []
        for part, both, stage in zip(self._view(view), chosen, first, strict=True):
            found.append({})
            for name, (candidates, adds) in both.items():
                positives = part.ground_truth.positives(name)
                if candidates.k < min(least, positives.gallery):
                    text = "some query has too few stored candidates left in the smaller gallery"
                    raise NotPossible(text, "re-rank more candidates")
                held = CandidateRanks(candidates.first(min(depth, candidates.k)), adds, positives)
                found[-1][name] = held.ranks(rule, True, stage.get(name))
        return found

    def _rank_all(self, view: Settings, matched: bool) -> list[_Both]:
        source = self._sources[view.source]
        return [
            ranks_of(
                source.part(part.images, part.texts, matched),
                part.ground_truth,
                every=True,
                threads=self._threads,
            )
            for part in self._view(view)
        ]

    def _choose(self, view: Settings, matched: bool) -> list[dict[Direction, tuple[Candidates, bool]]]:
        source = self._sources[view.source]
        return [
            {
                name: source.candidates(name, part.images, part.texts, self._most, matched)
                for name in DIRECTIONS
            }
            for part in self._view(view)
        ]

    def _first_stages(self, view: Settings) -> Sequence[Mapping[Direction, FirstStage]]:
        source = self._sources[view.source]
        return [
            first_stages(source.part(part.images, part.texts, False), part.ground_truth, both)
            for part, both in zip(self._view(view), self._whole(view, False), strict=True)
        ]


def _shares(groups: TieGroups, cutoff: int, possible: bool) -> np.ndarray:
    """Return hits over all positives, or over those that could be among the first ``cutoff``."""
    hits = groups.hits(np.full(groups.n_queries, cutoff))
    return np.asarray(hits / np.clip(groups.relevant, 1, cutoff if possible else None))
