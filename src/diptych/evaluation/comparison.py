"""Comparisons of results: which can be compared, and what a comparison says."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.table import Cell, Table, Tabular
from diptych.evaluation.result import BOTH, OWN_GAINS, Protocol, Result, interval_line
from diptych.metrics import DIRECTIONS, Bootstrap, GainMeasure, Measure
from diptych.metrics.measuring import measure as declared
from diptych.metrics.paired import LEVEL, Correction, correction_text

Test = Literal["randomisation", "t"]
TESTS: tuple[Test, ...] = get_args(Test)

_DATA = ("dataset", "split", "data")
_FIELDS = {
    "name": "protocol",
    "n_images": "images",
    "n_texts": "texts",
    "galleries": "galleries",
    "texts_per_image": "positives per image",
    "images_per_text": "positives per text",
    "ties": "tie rule",
    "evaluated": "queries evaluated",
    "without_positive": "queries without a positive",
}


@dataclass(frozen=True)
class Spread:
    values: tuple[float, ...]  # one per seed

    @property
    def mean(self) -> float:
        return float(np.mean(self.values))

    @property
    def sd(self) -> float | None:
        """Return the sample standard deviation (n − 1), an estimate for seeds not run; None with one seed."""
        return float(np.std(self.values, ddof=1)) if len(self.values) > 1 else None

    @property
    def population_sd(self) -> float:
        """Return the standard deviation of just these seeds (n), as published code takes it (``np.std``)."""
        return float(np.std(self.values))


@dataclass(frozen=True)
class Difference:
    """One measure of one run against the baseline's."""

    run: str
    direction: str  # ``"i2t"``, ``"t2i"``, or ``"both"`` for a sum
    measure: str
    difference: float  # the run's less the baseline's: of shares in [0, 1], ranks, or a sum in per cent
    low: float | None  # lower end of its interval; None without resamples
    high: float | None  # upper end
    p_randomisation: float | None  # of sign flips of images; None for a measure that is no mean over queries
    p_t: float | None  # of the paired t-test over images; None where it is undefined
    p: float | None  # of the chosen test, corrected, at most 1
    better: bool | None  # whether the run is better at all: more of a share, less of a rank; None for a tie

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` where the corrected p-value is at most 0.05, else nothing."""
        if self.p is None or self.p > LEVEL or self.better is None:
            return ""
        return "better" if self.better else "worse"


def _spread_cell(name: str, spread: Spread) -> Cell:
    show = declared(name).show
    text = show(spread.mean) if spread.sd is None else f"{show(spread.mean)} ± {show(spread.sd)}"
    return Cell(text, value=spread.mean)


def p_cell(p: float | None) -> Cell:
    return Cell("–" if p is None else "<0.001" if p < 0.001 else f"{p:.3f}", value=p)


def _difference_cell(one: Difference) -> Cell:
    member = declared(one.measure)
    scale = 100 if isinstance(member, Measure) and member.kind == "share" else 1

    def signed(value: float) -> str:
        digits = 3 if isinstance(member, GainMeasure) else 2 if abs(scale * value) < 0.95 else 1
        return f"{scale * value:+.{digits}f}"

    ends = "" if one.low is None or one.high is None else f"{signed(one.low)} to {signed(one.high)}"
    return Cell(signed(one.difference), ends, value=one.difference)


@dataclass(frozen=True)
class Comparison(Tabular):
    runs: tuple[str, ...]  # names, the baseline's among them
    baseline: str  # the baseline's name
    values: dict[tuple[str, str], dict[str, Spread]]  # per direction (or "both") and measure, each run's
    differences: tuple[Difference, ...]  # of every other run and measure
    test: Test  # which p-value was corrected
    correction: Correction  # ``"bonferroni"``, ``"holm"`` or ``"none"``
    tested: int  # how many p-values the correction is for
    how: Bootstrap  # the bootstrap
    flips: int  # random swaps of the randomisation test
    protocol: str  # the line of what the runs have in common
    notes: tuple[str, ...] = ()  # what a reader of the p-values should know

    def difference(self, run: str, measure: str, direction: str = BOTH) -> Difference:
        for one in self.differences:
            if (one.run, one.measure, one.direction) == (run, measure, direction):
                return one
        known = [f"{one.run} {one.direction} {one.measure}" for one in self.differences]
        raise UnknownNameError("difference", f"{run} {direction} {measure}", known)

    def tables(self) -> list[Table]:
        """Return a table per run, against the baseline."""
        tables = []
        for run in (name for name in self.runs if name != self.baseline):
            rows = []
            for (direction, name), by_run in self.values.items():
                one = self.difference(run, name, direction)
                head = name if direction == BOTH else f"{direction} {name}"
                cells = [_spread_cell(name, by_run[of]) for of in (self.baseline, run)]
                verdict = Cell(one.verdict, words=True, strong=bool(one.verdict))
                rows.append([Cell(head), *cells, _difference_cell(one), p_cell(one.p), verdict])
            columns = ("measure", self.baseline, run, "difference", "p", "")
            tables.append(Table(f"{run} against {self.baseline}", columns, rows))
        return tables

    def lines(self) -> list[str]:
        """Return how the tables are read, what all runs have in common, and how they were tested."""
        several = any(spread.sd is not None for by_run in self.values.values() for spread in by_run.values())
        spread = "; ± sample standard deviation over seeds" if several else ""
        units = f"shares in per cent, ranks from 1, rsum of both directions{spread}"
        return [units, self.protocol, self.line()]

    def line(self) -> str:
        """Return one line: what is resampled, what is tested, what was corrected for."""
        swaps = f"{self.flips:,} random swaps per image"
        test = swaps if self.test == "randomisation" else "the paired t-test over images"
        parts = [f"differences to {self.baseline}"]
        if self.how.samples:
            parts.append(interval_line(self.how, " (not corrected)", "images with their captions"))
        tests = (f"p of {test}", correction_text(self.correction, self.tested), "two-sided")
        return "; ".join([*parts, ", ".join(text for text in tests if text), *self.notes])

    def to_dict(self) -> dict[str, Any]:
        same = ("baseline", "protocol", "test", "correction", "tested", "flips")
        return {
            "format": 1,
            "runs": list(self.runs),
            "line": self.line(),
            "bootstrap": asdict(self.how),
            **{name: getattr(self, name) for name in same},
            "values": [
                {
                    "direction": direction,
                    "measure": name,
                    "runs": {
                        run: {"values": list(spread.values), "mean": spread.mean, "sd": spread.sd}
                        for run, spread in by_run.items()
                    },
                }
                for (direction, name), by_run in self.values.items()
            ],
            "differences": [{**asdict(one), "verdict": one.verdict} for one in self.differences],
        }


def check_comparable(results: Mapping[str, Result]) -> list[str]:
    """Refuse results that were not measured on the same thing; encoders and seeds may differ.

    The same data is that of the same fingerprint, whatever it is called. Fingerprints of images, of regions and
    of given embeddings never agree: there the ids of images and texts decide, and a note says so.
    """
    (base, first), *others = results.items()
    mine, home, notes = first.protocol, text_image_of(first, base), []
    for name, result in others:
        theirs = result.protocol
        by_ids = mine.items and mine.items == theirs.items
        by_ids = by_ids and (mine.data_kind != theirs.data_kind or mine.data_kind == "rows")
        data = [one.about.get("data") for one in (mine, theirs)]
        if by_ids and data[0] != data[1]:
            kinds = f"their data are {mine.data_kind} and {theirs.data_kind}"
            notes.append(f"{base} and {name} have the same ids; {kinds}")
        same_data = by_ids or (data[0] is not None and data[0] == data[1])
        metadata = _fixed(mine, same_data), _fixed(theirs, same_data)
        check_alike((base, name), metadata, "evaluate both on the same split with the same options")
        images = text_image_of(result, name)
        if not np.array_equal(home, images):
            row = int(np.flatnonzero(home != images)[0])
            owners = [{f"text {row} belongs to image": int(one[row])} for one in (home, images)]
            check_alike((base, name), owners, "evaluate both on the same split")
    return notes


def check_alike(names: tuple[str, str], metadata: Sequence[Mapping[str, Any]], fix: str) -> None:
    """Refuse to compare two runs whose metadata, which must be the same, differ."""
    first, second = metadata
    for what in dict.fromkeys([*first, *second]):
        if first.get(what) != second.get(what):
            values = f"{first.get(what, 'missing')} and {second.get(what, 'missing')}"
            raise MismatchError(f"{names[0]} and {names[1]} cannot be compared: {what} {values}", fix)


def baseline_of(given: int | str, names: Sequence[str]) -> str:
    """Return the name of the run that the others are compared with."""
    if isinstance(given, str):
        if given not in names:
            raise UnknownNameError("baseline", given, names)
        return given
    if not -len(names) <= given < len(names):
        raise UsageError(f"baseline {given} of {len(names)} runs", f"a number from 0 to {len(names) - 1}")
    return names[given]


def _fixed(protocol: Protocol, same_data: bool) -> dict[str, Any]:
    """Return what two runs of one test must have in common."""
    names = ("positives",) if same_data else ("positives", *_DATA)
    fixed = {what: getattr(protocol, name) for name, what in _FIELDS.items()}
    return fixed | {name: protocol.about[name] for name in names if name in protocol.about}


def check_same_gains(results: Mapping[str, Result], measures: Sequence[str]) -> list[str]:
    """Refuse to compare a measure of gains by different relevance models; return what a reader should know."""
    (base, first), *others = ((name, result.protocol.gains) for name, result in results.items())
    fix = "evaluate both with the same --relevance, or leave it out with --measure"
    for measure, (name, gains) in product(measures, others):
        metadata = [{f"gains of {measure}": one[measure]} if measure in one else {} for one in (first, gains)]
        check_alike((base, name), metadata, fix)
    own = [measure for measure in measures if OWN_GAINS in first.get(measure, "")]
    return [f"{', '.join(own)} by each run's own cosines: a difference may be one of scale"] if own else []


def text_image_of(result: Result, name: str) -> np.ndarray:
    """Return the image each text was written for."""
    if result.text_image is None or not all(result.per_query.get(way) for way in DIRECTIONS):
        text = f"{name} has no values per query, or does not say which texts belong to an image"
        raise StorageError(text, "evaluate it again with this version of diptych")
    return result.text_image


def common_measures(
    held: Mapping[str, Sequence[str]], requested: Sequence[str] | None, verb: str = "evaluate"
) -> list[str]:
    """Return the measures that all runs hold, or those requested; ``held`` has those of every run."""
    names = list(held)
    for measure in requested or ():
        for name, known in held.items():
            if measure not in known:
                done = "evaluated" if verb == "evaluate" else "stressed"
                fix = f"it has {', '.join(known)}; {verb} it again with --measure {measure}"
                raise UsageError(f"{name} was not {done} by {measure}", fix)
    common = [name for name in held[names[0]] if all(name in known for known in held.values())]
    found = list(dict.fromkeys(common if requested is None else requested))
    if not found:
        text = f"{' and '.join(names)} have no measure in common"
        raise UsageError(text, f"{verb} them with the same measures")
    return found
