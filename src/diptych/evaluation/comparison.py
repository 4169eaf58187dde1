"""What a comparison of runs says: values, differences, intervals, p-values, and what they are of."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from diptych.core.errors import UnknownNameError
from diptych.evaluation.result import BOTH
from diptych.evaluation.seeds import Spread
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.paired import LEVEL, Correction, correction_text

Test = Literal["randomisation", "t"]
TESTS: tuple[Test, ...] = get_args(Test)

Cell = tuple[str, str]
"""A direction (or ``"both"``) and a measure."""


@dataclass(frozen=True)
class Difference:
    """One measure of one run against the baseline's.

    Attributes:
        run: the run's name.
        direction: ``"i2t"``, ``"t2i"``, or ``"both"`` for a sum.
        measure: the measure's name.
        difference: the run's value less the baseline's, in the measure's unit: a share in [0, 1], a
            rank, or per cent for a sum.
        low: lower end of its interval; None without resamples.
        high: upper end.
        p_randomisation: of sign flips of images; None for a measure that is no mean over queries.
        p_t: of the paired t-test over images; None where it says nothing.
        p: of the chosen test, corrected, at most 1.
        better: whether the run is better at all: more of a share, less of a rank; None for a tie.
    """

    run: str
    direction: str
    measure: str
    difference: float
    low: float | None
    high: float | None
    p_randomisation: float | None
    p_t: float | None
    p: float | None
    better: bool | None

    @property
    def verdict(self) -> str:
        """``"better"`` or ``"worse"`` where the corrected p-value is at most 0.05, else nothing."""
        if self.p is None or self.p > LEVEL or self.better is None:
            return ""
        return "better" if self.better else "worse"


@dataclass(frozen=True)
class Comparison:
    """What :func:`compare` returns.

    Attributes:
        runs: names, the baseline's among them.
        baseline: the baseline's name.
        values: per direction and measure, each run's values over its seeds.
        differences: of every other run and measure.
        test: which p-value was corrected.
        correction: ``"bonferroni"``, ``"holm"`` or ``"none"``.
        tested: how many p-values the correction is for.
        how: the bootstrap.
        flips: random swaps of the randomisation test.
        protocol: the line of what the runs have in common.
        notes: what a reader of the p-values should know.
    """

    runs: tuple[str, ...]
    baseline: str
    values: dict[Cell, dict[str, Spread]]
    differences: tuple[Difference, ...]
    test: Test
    correction: Correction
    tested: int
    how: Bootstrap
    flips: int
    protocol: str
    notes: tuple[str, ...] = ()

    def difference(self, run: str, measure: str, direction: str = BOTH) -> Difference:
        """One difference."""
        for one in self.differences:
            if (one.run, one.measure, one.direction) == (run, measure, direction):
                return one
        known = [f"{one.run} {one.direction} {one.measure}" for one in self.differences]
        raise UnknownNameError("difference", f"{run} {direction} {measure}", known)

    def line(self) -> str:
        """One line: what is resampled, what is tested, what was corrected for."""
        test = (
            f"p of {self.flips:,} random swaps per image"
            if self.test == "randomisation"
            else "p of the paired t-test over images"
        )
        corrected = correction_text(self.correction, self.tested)
        tests = [text for text in (test, corrected, "two-sided") if text]
        parts = [f"differences to {self.baseline}", ", ".join(tests)]
        if self.how.samples:
            parts.insert(
                1,
                f"{100 * self.how.confidence:g} % intervals (not corrected) from {self.how.samples:,} resamples "
                f"of images with their captions, seed {self.how.seed}",
            )
        return "; ".join([*parts, *self.notes])

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "format": 1,
            "runs": list(self.runs),
            "baseline": self.baseline,
            "protocol": self.protocol,
            "line": self.line(),
            "test": self.test,
            "correction": self.correction,
            "tested": self.tested,
            "flips": self.flips,
            "bootstrap": asdict(self.how),
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
