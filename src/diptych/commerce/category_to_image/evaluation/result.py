"""ModelsEvaluation: the numbers of a finished evaluation, computed from its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from diptych.commerce.catalogue.catalogue import Judged
from diptych.commerce.category_to_image.errors import (
    ErrorCounts,
    SiblingPair,
    confused_siblings,
    count_errors,
    pooled,
)
from diptych.commerce.category_to_image.evaluation.grid import (
    MARKER,
    RESULTS,
    Cell,
    CellName,
    GridHeader,
    GridProtocol,
    job_of,
    modalities_of,
    printed_name,
    read_judged,
    read_tree,
)
from diptych.commerce.category_to_image.evaluation.measure import CATEGORY_MEASURES, PRODUCT_MEASURES
from diptych.commerce.category_to_image.evaluation.summary import (
    GroupValue,
    ModelRow,
    Value,
    compare_models,
    group_means,
    intervals_of,
    over_seeds,
)
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import DataError, StorageError, UnknownNameError
from diptych.core.reading import opening, read_json
from diptych.evaluation.comparison import Difference, Spread
from diptych.evaluation.result import Result
from diptych.metrics.bootstrap import Bootstrap

# What lies in the folder of an evaluation: protocol, cells, judgements; opened, not yet computed with.
#
# ::
#
#     EVALUATION/
#       category_evaluation.json  what was evaluated and how
#       tree.json          the categories
#       judged/SETTING.npz which product is relevant to which category
#       cells/SETTING/…    values per query and first products of every model and seed
#       results.json       tables, groups, errors, examples; written last

_AGAIN = "the command that began it goes on"


@dataclass(frozen=True, eq=False)
class ModelsEvaluation:
    """A finished evaluation of models of categories and products.

    Attributes:
        folder: where it is.
        protocol: what the numbers depend on.
        about: what readers are told of data, encoders and notes.
        tree: the categories.
    """

    folder: Path
    protocol: GridProtocol
    about: Mapping[str, Any]
    tree: CategoryTree

    @classmethod
    @opening("evaluate again")
    def open(cls, folder: Path | str) -> Self:
        """Open what :func:`~.evaluate.evaluate_models` has written."""
        folder = Path(folder)
        if not GridHeader.is_at(folder):
            raise DataError(
                f"{folder} holds no evaluation of categories (no {MARKER})",
                "make it: diptych categories evaluate DATA --out EVALUATION",
            )
        header = GridHeader.open(folder)
        found = cls(folder, header.protocol, header.about, read_tree(folder))
        job = job_of(folder, found.protocol)
        missing = [name for name in found.names() if not job.path(name.key).is_file()]
        if missing:
            raise StorageError(f"{folder} is not finished: {len(missing)} of its models are missing", _AGAIN)
        return found

    @cached_property
    def numbers(self) -> Mapping[str, Any]:
        """What ``results.json`` says: everything that is printed, computed once."""
        found = read_json(self.folder / RESULTS)
        if found.get("key") != self.protocol.key or list(found["settings"]) != list(self.settings):
            raise StorageError(f"{self.folder / RESULTS} is of another evaluation than {MARKER}", _AGAIN)
        return dict(found)

    @property
    def settings(self) -> tuple[str, ...]:
        """In the order asked for."""
        return self.protocol.settings

    @property
    def models(self) -> tuple[str, ...]:
        """In the order asked for."""
        return self.protocol.models

    @property
    def left_out(self) -> Mapping[str, str]:
        """Models and settings that these products do not allow, each with its reason."""
        found: Mapping[str, str] = self.about.get("left_out", {})
        return found

    @property
    def notes(self) -> list[str]:
        """What a reader of the numbers should know besides."""
        return list(self.about.get("notes", []))

    @property
    def baseline(self) -> str:
        """Whom models are compared with: CLIP-ITA as in the thesis, or the last that there is."""
        return "clip-ita" if "clip-ita" in self.models else self.models[-1]

    def names(self) -> Iterator[CellName]:
        """All cells."""
        for setting in self.settings:
            for model in self.models:
                yield from self._of(setting, model)

    def judged(self, setting: str) -> Judged:
        """What was relevant to what."""
        if setting not in self._judged:
            self._judged[setting] = read_judged(self.folder, self._known(setting))
        return self._judged[setting]

    def cells(self, setting: str, model: str) -> list[Cell]:
        """One per seed, or the one of a model that is not trained."""
        key = self._known(setting), model
        if model not in self.models:
            raise UnknownNameError("model", model, self.models)
        if key not in self._cells:
            job = job_of(self.folder, self.protocol)
            self._cells[key] = [Cell.open(job.path(name.key)) for name in self._of(setting, model)]
        return self._cells[key]

    def results(self, setting: str) -> dict[str, list[Result]]:
        """Per model, one :class:`~diptych.evaluation.result.Result` per seed."""
        return {model: [cell.result for cell in self.cells(setting, model)] for model in self.models}

    def value(self, setting: str, model: str, measure: str, direction: str = "t2i") -> Spread:
        """One number over seeds, a share in [0, 1]; ``i2t`` is a product that asks for its category."""
        cells = self.cells(setting, model)
        return Spread(tuple(cell.result.value(measure, direction) for cell in cells))

    def per_category(self, setting: str, model: str, measure: str) -> np.ndarray:
        """(q,) values of the categories that ask, the mean over seeds, in the order of ``judged().nodes``."""
        values = [cell.result.per_query["t2i"][measure] for cell in self.cells(setting, model)]
        mean: np.ndarray = np.mean(values, axis=0)
        return mean

    def is_trained(self, model: str) -> bool:
        """Whether a model was trained here, once per seed."""
        return not self.protocol.given and modalities_of(model) is not None

    @cached_property
    def _cells(self) -> dict[tuple[str, str], list[Cell]]:
        return {}

    @cached_property
    def _judged(self) -> dict[str, Judged]:
        return {}

    def _known(self, setting: str) -> str:
        if setting not in self.settings:
            raise UnknownNameError("setting", setting, self.settings)
        return setting

    def _of(self, setting: str, model: str) -> list[CellName]:
        seeds = self.protocol.seeds if self.is_trained(model) else (-1,)
        return [CellName(setting, model, seed) for seed in seeds]

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
        return over_seeds([group_means(cell.result.per_query["t2i"][measure], depth) for cell in cells])

    def seen(self, setting: str, model: str, measure: str) -> list[GroupValue]:
        """Of categories that training saw (1) and of others (0); nothing where that is not known."""
        cells = [cell for cell in self.cells(setting, model) if cell.about.get("seen_known")]
        return over_seeds([group_means(cell.result.per_query["t2i"][measure], cell.seen) for cell in cells])

    def first_categories(self, setting: str, cell: Cell) -> tuple[np.ndarray, np.ndarray]:
        """(q,) the category of each first product, -1 where none was found, and whether that product is relevant."""
        judged = self.judged(setting)
        first = cell.first[:, 0]
        found = np.where(first >= 0, judged.labels[np.maximum(first, 0)], -1)
        right = (first >= 0) & judged.truth.t2i.holds(np.arange(len(first)), np.maximum(first, 0))
        return found, right

    def errors(self, setting: str, model: str, *, seen: bool | None = None) -> ErrorCounts:
        """Counts of first products of another category, summed over seeds (thesis Table 7.2 and Figure 7.2)."""
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
        spread = self.value(setting, model, name, way)
        return Value(spread.mean, spread.sd, spread.values, chance, *(ends or (None, None)))
