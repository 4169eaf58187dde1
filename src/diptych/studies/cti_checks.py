"""Checks that claims of thesis chapter 7 are made of: which model is ahead in which setting, where modalities help.

Two equal numbers decide nothing: with few categories several models find all there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from diptych.studies.claims import Check, Finding, all_of, beats, missing, not_better
from diptych.studies.cti_rows import FULL, MEASURES, SETTINGS, of_row, row_name, tested
from diptych.studies.intent_rows import beside
from diptych.studies.study import PUBLISHED, Measurement, Subject
from diptych.studies.verdict import Evidence, Figure, Measured, difference

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.errors import ErrorCounts
    from diptych.commerce.category_to_image.evaluation.grid import Cell
    from diptych.studies.catalogues import CatalogueRow
    from diptych.studies.study import Row


_NOTHING = 1e-12


def ahead(
    better: str, worse: str, settings: Sequence[str] = tuple(SETTINGS), columns: Sequence[str] = MEASURES
) -> Check:
    """One model beats another in every setting and column; with a test over categories where values per category are
    there."""
    return _paired(better, worse, settings, columns, beats)


def below(worse: str, better: str, settings: Sequence[str], columns: Sequence[str] = MEASURES) -> Check:
    """One model does not beat another in any setting and column; likewise."""
    return _paired(worse, better, settings, columns, not_better)


def _paired(
    first: str, second: str, settings: Sequence[str], columns: Sequence[str], check: Callable[..., Check]
) -> Check:
    def checked(evidence: Evidence) -> list[Finding]:
        findings = []
        for setting in settings:
            rows = row_name(first, setting), row_name(second, setting)
            said = tested(evidence, *rows, columns)
            for column in columns:
                (finding,) = check(*rows, column)(evidence)
                one, other = (evidence.figure(row, column) for row in rows)
                if one is not None and other is not None and one.mean == other.mean:
                    finding = Finding(finding.what, None, f"equal, {one.mean:.2f}")
                else:
                    finding = replace(finding, detail=finding.detail + said.get(column, ""))
                findings.append(finding)
        return findings

    return checked


def best_in(setting: str, winner: str, others: Sequence[str], columns: Sequence[str] = MEASURES) -> Check:
    """One model beats each of several others in a setting."""
    return all_of(*(ahead(winner, other, (setting,), columns) for other in others))


def comparable(
    models: Sequence[str], setting: str, factor: float, columns: Sequence[str] = MEASURES
) -> Check:
    """No model has more than ``factor`` times the number of another, in any column."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"no baseline has more than {factor:g} times another's {column}, {SETTINGS[setting]}"
            found = evidence.only([row_name(model, setting) for model in models], column)
            if len(found) < 2:
                findings.append(missing(what, f"{column} of two of {', '.join(models)}"))
                continue
            least, most = (pick(found, key=lambda row: found[row].mean) for pick in (min, max))
            low, high = found[least].mean, found[most].mean
            detail = f"{high:.2f} ({most}) and {low:.2f} ({least})"
            margin = (factor * low - high) / max(abs(high), _NOTHING)
            findings.append(Finding(what, high <= factor * low, detail, margin))
        return findings

    return check


def keeps_more_share(model: str, here: str, there: str, columns: Sequence[str] = MEASURES) -> Check:
    """A model with fewer modalities has a larger share of the full model's number in one setting than in another."""

    def kept(own: float, full: float) -> float | None:
        return 100 * own / full if full > 0 else None

    return _kept(model, here, there, columns, kept, f"{model} has a larger share of {FULL}'s", "{:.0f} %")


def keeps_more_points(model: str, here: str, there: str, columns: Sequence[str] = MEASURES) -> Check:
    """A model with fewer modalities is fewer points behind the full model in one setting than in another."""
    return _kept(
        model,
        here,
        there,
        columns,
        lambda own, full: own - full,
        f"{model} is less behind {FULL} in",
        "{:+.1f}",
    )


def gains_most(
    better: str, worse: str, here: str, there: Sequence[str], columns: Sequence[str] = MEASURES
) -> Check:
    """What one model has more than another, in per cent of the other, is most in one setting."""

    def gain(own: float, other: float) -> float | None:
        return 100 * (own / other - 1) if other > 0 else None

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            gains = {}
            for setting in (here, *there):
                both = [evidence.figure(row_name(model, setting), column) for model in (better, worse)]
                if both[0] is not None and both[1] is not None:
                    gains[setting] = gain(both[0].mean, both[1].mean)
            for other in there:
                what = f"{better} gains more over {worse} in {column}, {SETTINGS[here]} against {SETTINGS[other]}"
                findings.append(_larger(what, gains.get(here), gains.get(other), "{:+.0f} %"))
        return findings

    return check


def _kept(
    model: str,
    here: str,
    there: str,
    columns: Sequence[str],
    kept: Callable[[float, float], float | None],
    what: str,
    shown: str,
) -> Check:
    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            values: list[float | None] = []
            for setting in (here, there):
                own, full = (evidence.figure(row_name(name, setting), column) for name in (model, FULL))
                found = None if own is None or full is None else kept(own.mean, full.mean)
                values.append(found)
            title = f"{what} {column}, {SETTINGS[here]} against {SETTINGS[there]}"
            findings.append(_larger(title, values[0], values[1], shown))
        return findings

    return check


def _larger(what: str, one: float | None, other: float | None, shown: str) -> Finding:
    """Whether the first of two numbers is above the second."""
    if one is None or other is None:
        return missing(what, "numbers above 0 of both models in both settings")
    if one == other:
        return Finding(what, None, f"equal, {shown.format(one)}")
    detail = f"{shown.format(one)} against {shown.format(other)}"
    return Finding(what, one > other, detail, (one - other) / max(abs(one), abs(other), _NOTHING))


SAME, DIFFERENT = "same tree", "different tree"
GENERAL, SPECIFIC = "more general", "more specific"
DEPTHS = tuple(range(-4, 5))
"""Differences of depth that have a column; others stand in the figure."""


def mostly(setting: str, more: str, less: str) -> Check:
    """Of a setting's errors more are of one kind than of another."""
    what = f"more errors are {more} than {less}, {SETTINGS[setting]}"

    def check(evidence: Evidence) -> list[Finding]:
        one, other = evidence.figure(setting, more), evidence.figure(setting, less)
        if one is None or other is None:
            return [missing(what, f"{more} and {less} of {setting}")]
        whole = one.mean + other.mean
        if not whole:
            return [missing(what, "errors")]
        detail = f"{one.mean:,.4g} against {other.mean:,.4g}, {100 * one.mean / whole:.0f} %"
        holds = None if one.mean == other.mean else one.mean > other.mean
        return [Finding(what, holds, detail, (one.mean - other.mean) / whole)]

    return check


def share_above(setting: str, column: str, least: float) -> Check:
    """A share of a setting's errors is at least ``least`` per cent."""
    what = f"at least {least:g} % are {column}, {SETTINGS[setting]}"

    def check(evidence: Evidence) -> list[Finding]:
        figure = evidence.figure(setting, column)
        if figure is None:
            return [missing(what, f"{column} of {setting}")]
        return [Finding(what, figure.mean >= least, f"{figure.mean:.1f} %", (figure.mean - least) / 100)]

    return check


def mostly_at(setting: str, depth: int) -> Check:
    """Of a setting's errors in the same tree, more than half lie ``depth`` levels below the target."""
    what = f"most errors in the same tree have d = {depth}, {SETTINGS[setting]}"

    def check(evidence: Evidence) -> list[Finding]:
        figures = {one: evidence.figure(setting, f"d = {one}") for one in DEPTHS}
        found = {one: figure.mean for one, figure in figures.items() if figure is not None}
        if depth not in found:
            return [missing(what, f"errors in the same tree of {setting}")]
        first = max(found, key=lambda one: found[one])
        detail = f"{found[depth]:.1f} %"
        detail += "" if first == depth else f", d = {first} has {found[first]:.1f} %"
        return [Finding(what, found[depth] > 50, detail, (found[depth] - 50) / 100)]

    return check


def seen_over_unseen(
    setting: str, columns: Sequence[str] = MEASURES, better: str = "seen", worse: str = "unseen"
) -> Check:
    """Categories of one kind are found better than those of the other, in every column."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            what = f"{better} beats {worse} in {column}, {SETTINGS[setting]}"
            both = [evidence.figure(row_name(group, setting), column) for group in (better, worse)]
            if both[0] is None or both[1] is None:
                findings.append(missing(what, f"categories that were {better} and {worse}"))
                continue
            findings.append(_above(what, both[0], both[1]))
        return findings

    return check


def none_found(row: str, columns: Sequence[str] = MEASURES) -> Check:
    """A row's numbers are all 0."""

    def check(evidence: Evidence) -> list[Finding]:
        findings = []
        for column in columns:
            figure, what = evidence.figure(row, column), f"{column} of {row} is 0"
            if figure is None:
                findings.append(missing(what, f"categories of {row}"))
            else:
                findings.append(Finding(what, figure.mean == 0, f"{figure.mean:.2f}", -figure.mean / 100))
        return findings

    return check


def _above(what: str, one: Figure, other: Figure) -> Finding:
    apart = difference(one, other)
    if not apart.mean:
        return Finding(what, None, f"equal, {one.mean:.2f}")
    detail = f"{one.mean:.2f} against {other.mean:.2f} ({apart})"
    scale = max(abs(one.mean), abs(other.mean), _NOTHING)
    return Finding(what, apart.mean > 0, detail, apart.mean / scale)


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
