"""ModelsEvaluation: the numbers of a finished evaluation, computed from its cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from diptych.commerce.category_to_image.errors import (
    ErrorCounts,
    SiblingPair,
    confused_siblings,
    count_errors,
    pooled,
)
from diptych.commerce.category_to_image.evaluation.cell import Cell
from diptych.commerce.category_to_image.evaluation.groups import GroupValue, by_level, by_seen, over_seeds
from diptych.commerce.category_to_image.evaluation.models import printed_name
from diptych.commerce.category_to_image.evaluation.names import CATEGORY_MEASURES, PRODUCT_MEASURES
from diptych.commerce.category_to_image.evaluation.opened import OpenedEvaluation
from diptych.commerce.category_to_image.evaluation.rows import ModelRow, Value, intervals_of
from diptych.commerce.category_to_image.evaluation.significance import compare_models
from diptych.evaluation.bootstrap import Bootstrap
from diptych.evaluation.comparison import Difference

__all__ = ["ModelsEvaluation"]


class ModelsEvaluation(OpenedEvaluation):
    """A finished evaluation of models of categories and products; attributes as of its base."""

    def table(
        self,
        setting: str,
        measures: Sequence[str] = CATEGORY_MEASURES,
        *,
        bootstrap: Bootstrap | None = None,
    ) -> list[ModelRow]:
        """A row per model; intervals are over categories, spreads over seeds."""
        how = bootstrap or Bootstrap()
        rows = []
        for model in self.models:
            ends = intervals_of({name: self.per_category(setting, model, name) for name in measures}, how)
            rows.append(
                ModelRow(
                    model,
                    printed_name(model),
                    self.is_trained(model),
                    {name: self._value(setting, model, name, "t2i", ends[name]) for name in measures},
                    {name: self._value(setting, model, name, "i2t", None) for name in PRODUCT_MEASURES},
                )
            )
        return rows

    def compare(
        self,
        setting: str,
        measures: Sequence[str] = CATEGORY_MEASURES,
        *,
        baseline: str | None = None,
        correction: str = "holm",
        flips: int = 10_000,
        bootstrap: Bootstrap | None = None,
    ) -> list[Difference]:
        """Every model against a baseline, over categories, corrected; see :func:`~.significance.compare_models`."""
        values = {
            model: {
                name: [cell.result.per_query["t2i"][name] for cell in self.cells(setting, model)]
                for name in measures
            }
            for model in self.models
        }
        return compare_models(
            values,
            baseline or self.baseline,
            measures,
            correction=correction,
            flips=flips,
            bootstrap=bootstrap,
        )

    def levels(self, setting: str, model: str, measure: str) -> list[GroupValue]:
        """Per depth of the asking category."""
        depth = self.tree.depth[self.judged(setting).nodes]
        cells = self.cells(setting, model)
        return over_seeds([by_level(cell.result.per_query["t2i"][measure], depth) for cell in cells])

    def seen(self, setting: str, model: str, measure: str) -> list[GroupValue]:
        """Of categories that training saw (1) and of others (0); nothing where that is not known."""
        cells = [cell for cell in self.cells(setting, model) if cell.about.get("seen_known")]
        return over_seeds([by_seen(cell.result.per_query["t2i"][measure], cell.seen) for cell in cells])

    def first_categories(self, setting: str, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """(q,) the category of each first product, -1 where none was found, and whether that product is relevant."""
        judged = self.judged(setting)
        first = cell.first[:, 0]
        found = np.where(first >= 0, judged.labels[np.maximum(first, 0)], -1)
        right = (first >= 0) & judged.truth.t2i.holds(np.arange(len(first)), np.maximum(first, 0))
        return found, right

    def errors(self, setting: str, model: str, *, seen: bool | None = None) -> ErrorCounts:
        """Counts of first products of another category, summed over seeds (thesis Table 7.2 and Figure 7.2).

        Args:
            setting: its name.
            model: its name.
            seen: only categories that training saw, or only others.
        """
        nodes, parts = self.judged(setting).nodes, []
        for cell in self.cells(setting, model):
            rows = np.arange(len(nodes)) if seen is None else np.flatnonzero(cell.seen == seen)
            found, right = self.first_categories(setting, cell)
            parts.append(count_errors(self.tree, nodes[rows], found[rows], right[rows]))
        return pooled(parts)

    def siblings(self, setting: str, model: str, most: int | None = None) -> list[SiblingPair]:
        """Siblings that products are taken for, summed over seeds."""
        judged, cells = self.judged(setting), self.cells(setting, model)
        guess = [np.where(cell.guess >= 0, judged.nodes[np.maximum(cell.guess, 0)], -1) for cell in cells]
        return confused_siblings(self.tree, np.tile(judged.labels, len(cells)), np.concatenate(guess), most)

    def line(self) -> str:
        """The protocol in one line, to be printed with every number."""
        return "; ".join([self.about["data"], self.about["encoders"], self.protocol.line()])

    def setting_line(self, setting: str) -> str:
        """Sizes of one setting's test."""
        judged = self.judged(setting)
        counts = judged.truth.t2i.counts
        text = (
            f"{len(judged.nodes):,} categories ask {len(judged.products):,} products, "
            f"{int(counts.min()):,}–{int(counts.max()):,} relevant ones each"
        )
        if judged.without_category:
            text += f"; {judged.without_category:,} products without a category are no candidates"
        return text

    def _value(
        self, setting: str, model: str, name: str, way: str, ends: tuple[float, float] | None
    ) -> Value:
        chance = self.cells(setting, model)[0].result.score(name, way).chance
        return Value(self.value(setting, model, name, way), chance, *(ends or (None, None)))
