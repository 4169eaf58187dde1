"""Columns that are numbers of an evaluation of models: measures, errors by tree and depth, seen and unseen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from diptych.studies.cti_checks import DEPTHS, DIFFERENT, GENERAL, SAME, SPECIFIC
from diptych.studies.cti_rows import FULL, MEASURES, SETTINGS, of_row
from diptych.studies.intent_rows import beside
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.errors import ErrorCounts
    from diptych.commerce.category_to_image.evaluation.grid import Cell
    from diptych.studies.catalogues import CatalogueRow
    from diptych.studies.study import Row

_VERSION = 1
_PER_CENT = 100.0
_HITS = {"mAP@5": "mAP-hits@5", "mAP@10": "mAP-hits@10"}
"""mAP@k of the chapter looks divided by the hits among the first k."""


@dataclass(frozen=True)
class Retrieved:
    """A model in a setting: the chapter's six measures in per cent."""

    kind: str = "retrieved"

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the catalogue and what a person chooses."""
        return {"kind": self.kind, "version": _VERSION}

    def needs(self, row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and settings that the row is read from."""
        model, setting = of_row(row.name)
        return (model,), (setting,)

    def is_trained(self, row: Row) -> bool:
        """Whether there is one per seed."""
        return all(map(_is_trained, self.needs(row)[0]))

    def seconds(self, made: CatalogueRow) -> float:
        """Processor time of training and measuring its models."""
        models, settings = self.needs(made.row)
        return sum(
            float(_cell(made, model, setting).about.get("processor_seconds", 0.0))
            for model in models
            for setting in settings
        )

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row and seed."""
        made: CatalogueRow = subject.run
        model, setting = of_row(made.row.name)
        result = _cell(made, model, setting).result
        return _given(made, setting, _measures({name: result.value(name, "t2i") for name in _all_measures()}))


@dataclass(frozen=True)
class SeenRetrieved(Retrieved):
    """CLIP-ITA on categories that training saw, or on the others, in a setting."""

    kind: str = "seen"

    def needs(self, row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and settings that the row is read from."""
        return (FULL,), (of_row(row.name)[1],)

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row and seed; nothing where no category is of the kind."""
        made: CatalogueRow = subject.run
        group, setting = of_row(made.row.name)
        cell = _cell(made, FULL, setting)
        chosen = cell.seen if group == "seen" else ~cell.seen
        if not chosen.any():
            return ()
        per_query = cell.result.per_query["t2i"]
        values = _measures({name: float(per_query[name][chosen].mean()) for name in _all_measures()})
        return _given(made, setting, {**values, "categories": float(chosen.sum())}, int(chosen.sum()))


@dataclass(frozen=True)
class ErrorTrees(Retrieved):
    """CLIP-ITA's errors in a setting, or in all together: in the tree of the target or in another."""

    kind: str = "error-trees"

    def needs(self, row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and settings that the row is read from."""
        return (FULL,), tuple(SETTINGS) if row.name == "total" else (row.name,)

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row and seed."""
        made: CatalogueRow = subject.run
        settings = self.needs(made.row)[1]
        counts = [_errors(made, setting) for setting in settings]
        values = {
            SAME: sum(one.same_tree for one in counts),
            DIFFERENT: sum(one.other_tree for one in counts),
        }
        asked = sum(one.asked for one in counts)
        return _given(made, ", ".join(settings), {name: float(n) for name, n in values.items()}, asked)


@dataclass(frozen=True)
class ErrorDepths(Retrieved):
    """CLIP-ITA's errors within the tree of the target, by d(c, c_p) = depth(c_p) − depth(c), in per cent of them."""

    kind: str = "error-depths"

    def needs(self, row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and settings that the row is read from."""
        return (FULL,), (row.name,)

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """One row and seed; nothing without such errors."""
        made: CatalogueRow = subject.run
        counts = _errors(made, made.row.name)
        if not counts.same_tree:
            return ()
        shares = {depth: _PER_CENT * n / counts.same_tree for depth, n in counts.depths.items()}
        values = {f"d = {depth}": shares.get(depth, 0.0) for depth in sorted({*DEPTHS, *shares})}
        values[GENERAL] = sum((share for depth, share in shares.items() if depth < 0), 0.0)
        values[SPECIFIC] = sum((share for depth, share in shares.items() if depth > 0), 0.0)
        return _given(made, made.row.name, values, counts.asked)


# From cells to values -----------------------------------------------------------------------------------


def _is_trained(model: str) -> bool:
    from diptych.commerce.category_to_image.evaluation import modalities_of

    return modalities_of(model) is not None


def _all_measures() -> tuple[str, ...]:
    return (*MEASURES, *_HITS.values())


def _cell(made: CatalogueRow, model: str, setting: str) -> Cell:
    """Of the row's seed; the one cell of a model that is not trained."""
    cells = made.evaluation.cells(setting, model)
    return cells[made.evaluation.protocol.seeds.index(made.seed)] if _is_trained(model) else cells[0]


def _errors(made: CatalogueRow, setting: str) -> ErrorCounts:
    """Of one seed."""
    from diptych.commerce.category_to_image.errors import count_errors

    evaluation = made.evaluation
    found, right = evaluation.first_categories(setting, _cell(made, FULL, setting))
    return count_errors(evaluation.tree, evaluation.judged(setting).nodes, found, right)


def _measures(shares: Mapping[str, float]) -> dict[str, float]:
    """Measures in per cent; beside mAP@k what is held against the printed number."""
    values = {name: _PER_CENT * shares[name] for name in MEASURES}
    return values | {f"{name}{PUBLISHED}": _PER_CENT * shares[hits] for name, hits in _HITS.items()}


def _given(
    made: CatalogueRow, setting: str, values: Mapping[str, float], categories: int | None = None
) -> tuple[Measurement, ...]:
    evaluation = made.evaluation
    asked = len(evaluation.judged(setting).nodes) if categories is None else categories
    on = Measured(
        made.dataset,
        "test",
        protocol=made.options.protocol(),
        products=made.products,
        categories=asked,
    )
    options = made.options
    told = [] if options.split is None else [f"split by {options.split}"]
    told += [f"train.{key} {value}" for key, value in options.train.items()]
    line = "; ".join([evaluation.line(), *([f"with {', '.join(told)}"] if told else [])])
    commands = (made.by_hand,) if made.by_hand else ()
    return (Measurement(values, on, line, commands, kept=beside(evaluation.folder, made.folder)),)
