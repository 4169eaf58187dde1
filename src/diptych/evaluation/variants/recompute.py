"""Recompute: the cells of any variant, everything that several variants share being computed once.

A ranking depends on the view alone (which embeddings, texts, galleries and relevance), a re-ranking on the
view and how many candidates; ties, counting and columns cost next to nothing after that. The candidates of
the last few views are kept, ranks of positives (a few numbers per query) of all.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from diptych.evaluation.partitioning import partition
from diptych.evaluation.printed.target import SUM_PARTS, cell_parts
from diptych.evaluation.reranking import CandidateRanks, FirstStage, first_stages
from diptych.evaluation.variants.scored import Scored
from diptych.evaluation.variants.settings import LEAST_SHRUNK, NotPossible, Settings, View
from diptych.metrics.candidates import Candidates
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth
from diptych.metrics.measuring import Measure, measure
from diptych.metrics.ranks import Ranks, ranks_of, tie_groups
from diptych.metrics.sources import Rows

_RECALL = "R@"
_KEPT = 6  # views whose candidates are kept
_Both = dict[Direction, Ranks]


@dataclass(frozen=True, eq=False)
class _Part:
    """One gallery of a view, in rows of its source."""

    images: Rows
    texts: Rows
    truth: GroundTruth


class Recompute:
    """Cells of variants."""

    def __init__(
        self, sources: Mapping[str, Scored], cells: Iterable[str], most: int, threads: int | None = None
    ) -> None:
        self._sources, self._most, self._threads = dict(sources), most, threads
        self._wanted = tuple(cells)
        kinds = [kind for _, kind in map(cell_parts, self._wanted) if kind != "rsum"]
        self._measures: list[Measure] = [
            member
            for member in map(measure, dict.fromkeys([*SUM_PARTS, *kinds]))
            if isinstance(member, Measure)
        ]
        self._every = any(member.positives == "all" for member in self._measures)
        self._parts: dict[View, list[_Part]] = {}
        self._ranks: dict[tuple[View, bool, bool], list[_Both]] = {}
        self._second: dict[tuple[View, int, bool, bool, str], list[_Both]] = {}
        self._candidates: OrderedDict[tuple[View, bool], list[dict[Direction, tuple[Candidates, bool]]]]
        self._candidates = OrderedDict()
        self._values: dict[Settings, dict[str, float]] = {}
        self._refused: dict[Settings, NotPossible] = {}

    def cells(self, settings: Settings) -> dict[str, float]:
        """The wanted cells, shares in per cent, with all their digits."""
        values = self._measured(replace(settings, rewrite=None, rule="round"))
        if settings.rewrite is not None:
            values = settings.rewrite.of(values)
        found = {}
        for name in self._wanted:
            direction, kind = cell_parts(name)
            if kind != "rsum":
                found[name] = values[f"{direction} {kind}"]
                continue
            sides = DIRECTIONS if direction is None else (direction,)
            found[name] = sum(values[f"{side} {part}"] for side in sides for part in SUM_PARTS)
        return found

    def sizes(self, settings: Settings) -> dict[Direction, tuple[int, float, int]]:
        """Per direction: size of one gallery, mean positives of a query, number of queries."""
        parts = self._view(settings.view)
        found: dict[Direction, tuple[int, float, int]] = {}
        for name in DIRECTIONS:
            positives = [part.truth.positives(name) for part in parts]
            counts = np.concatenate([one.counts for one in positives])
            found[name] = positives[0].gallery, float(counts.mean()), len(counts)
        return found

    def _measured(self, settings: Settings) -> dict[str, float]:
        if settings in self._refused:
            raise self._refused[settings]
        if settings not in self._values:
            try:
                self._values[settings] = self._compute(settings)
            except NotPossible as error:
                self._refused[settings] = error
                raise
        return self._values[settings]

    def _compute(self, settings: Settings) -> dict[str, float]:
        parts = self._view(settings.view)
        ranked = self._ranked(settings)
        totals: dict[str, list[float]] = {}
        for part, both in zip(parts, ranked, strict=True):
            for name in DIRECTIONS:
                groups = tie_groups(both[name], settings.tie_rule)
                asked = part.truth.queries(name)
                for printed in self._measures:
                    member = _meant(printed, settings)
                    if settings.counting is not None and member.name.startswith(_RECALL):
                        values = settings.counting.of(groups, member.cutoff or 1)
                    else:
                        values = member.values(groups)
                    scale = 100 if member.kind == "share" else 1
                    value = scale * member.aggregate.of(values[asked])
                    totals.setdefault(f"{name} {printed.name}", []).append(value)
        return {name: float(np.mean(values)) for name, values in totals.items()}

    def _view(self, view: View) -> list[_Part]:
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
                _Part(_rows(images[fold.images]), _rows(texts[fold.texts]), fold.ground_truth)
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
            for part, both in zip(parts, chosen, strict=True):
                for name in DIRECTIONS:
                    if both[name][0].k < min(least, part.truth.positives(name).gallery):
                        raise NotPossible(
                            "some query has too few stored candidates left in the smaller gallery",
                            "re-rank more candidates",
                        )
            first = self._first_stages(view) if settings.unranked_rule == "contrastive" else None
            self._second[key] = [
                {
                    name: CandidateRanks(
                        both[name][0].first(min(depth, both[name][0].k)),
                        both[name][1],
                        part.truth.positives(name),
                    ).ranks(settings.unranked_rule, True, None if first is None else first[number][name])
                    for name in DIRECTIONS
                }
                for number, (part, both) in enumerate(zip(parts, chosen, strict=True))
            ]
        return self._second[key]

    def _whole(self, view: View, matched: bool, every: bool) -> list[_Both]:
        """Ranks of everything by one score; those of all positives serve where the best are wanted."""
        for complete in (True, every):
            if (view, matched, complete) in self._ranks:
                return self._ranks[view, matched, complete]
        source = self._sources[view[0]]
        self._ranks[view, matched, every] = [
            ranks_of(
                source.part(part.images, part.texts, matched), part.truth, every=every, threads=self._threads
            )
            for part in self._view(view)
        ]
        return self._ranks[view, matched, every]

    def _chosen(self, view: View, matched: bool) -> list[dict[Direction, tuple[Candidates, bool]]]:
        """The candidates of every gallery, as many as any variant wants."""
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
        self._candidates.move_to_end(key)
        while len(self._candidates) > _KEPT:
            self._candidates.popitem(last=False)
        return self._candidates[key]

    def _first_stages(self, view: View) -> list[dict[Direction, FirstStage]]:
        """The contrastive order of everything, to follow the candidates."""
        source = self._sources[view[0]]
        return [
            first_stages(source.part(part.images, part.texts, False), part.truth, both)
            for part, both in zip(self._view(view), self._whole(view, False, True), strict=True)
        ]


def _meant(printed: Measure, settings: Settings) -> Measure:
    """The measure that a printed name stands for."""
    if settings.precision is None:
        return printed
    found = measure(settings.precision.of(printed.name))
    assert isinstance(found, Measure)  # a renaming names no sum
    return found


def _rows(rows: np.ndarray) -> Rows:
    """Neighbouring rows as a slice."""
    if len(rows) and rows[-1] - rows[0] + 1 == len(rows):
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
