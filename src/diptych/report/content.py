"""What a report says, as plain data: whoever has a run or a study fills it, the page only draws it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from diptych.core.errors import DataError, NumericalError
from diptych.report.retrievals import Retrieval


def _check_finite(what: str, values: Sequence[float]) -> None:
    for place, value in enumerate(values):
        if not math.isfinite(value):
            raise NumericalError(f"{what} {place} is {value}", "leave out what is not a number")


@dataclass(frozen=True)
class Score:
    """One figure with what it must be read against.

    Attributes:
        value: the score, in the unit of its row.
        low: lower end of its 95 % interval, where one was estimated.
        high: upper end of it.
        chance: what a random order scores.
    """

    value: float
    low: float | None = None
    high: float | None = None
    chance: float | None = None

    def __post_init__(self) -> None:
        _check_finite(
            "score part",
            [part for part in (self.value, self.low, self.high, self.chance) if part is not None],
        )
        if (self.low is None) != (self.high is None):
            raise DataError(f"an interval needs both ends, got low={self.low} and high={self.high}")
        if self.low is not None and self.high is not None and self.low > self.high:
            raise DataError(f"an interval from {self.low} to {self.high} is the wrong way round")


@dataclass(frozen=True)
class TableRow:
    """One measure of the test table.

    Attributes:
        measure: its name as papers print it, ``"R@1"``.
        image_to_text: the score when pictures ask for captions.
        text_to_image: the score when captions ask for pictures.
        both: one score of both directions together (``"rsum"``), in place of the two.
        unit: what follows the number in the row's label, e.g. ``"%"``.
        decimals: digits after the point.
        description: one line of what the measure is.
    """

    measure: str
    image_to_text: Score | None = None
    text_to_image: Score | None = None
    both: Score | None = None
    unit: str = "%"
    decimals: int = 1
    description: str = ""

    def __post_init__(self) -> None:
        apart = self.image_to_text is not None or self.text_to_image is not None
        if apart == (self.both is not None):
            raise DataError(
                f"{self.measure}: scores per direction or one of both, not "
                f"{'the two kinds at once' if apart else 'neither'}",
            )


@dataclass(frozen=True)
class Headline:
    """A figure large at the top: ``Headline("rsum", "192.7", "58 × chance")``."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Curves:
    """What was logged while training.

    Attributes:
        steps: (n,) the steps at which the loss was logged, rising.
        loss: (n,) training loss.
        learning_rate: (n,) at the same steps, or empty.
        epochs: (m,) the epochs after which the model was validated, rising.
        validation_rsum: (m,) recall sum on the validation split.
        best_epoch: the epoch of the kept checkpoint; ``None``: the first of the highest rsum.
        chance_rsum: the recall sum of a random order on the same split.
    """

    steps: Sequence[int] = ()
    loss: Sequence[float] = ()
    learning_rate: Sequence[float] = ()
    epochs: Sequence[float] = ()
    validation_rsum: Sequence[float] = ()
    best_epoch: float | None = None
    chance_rsum: float | None = None

    def __post_init__(self) -> None:
        for what, have, want in (
            ("losses", len(self.loss), len(self.steps)),
            ("learning rates", len(self.learning_rate) or len(self.steps), len(self.steps)),
            ("validation rsums", len(self.validation_rsum), len(self.epochs)),
        ):
            if have != want:
                raise DataError(f"curves: {want} {what} expected, got {have}")
        if self.best_epoch is not None and self.best_epoch not in self.epochs:
            raise DataError(f"curves: best epoch {self.best_epoch} is none of {list(self.epochs)}")
        for what, places in (("steps", self.steps), ("epochs", self.epochs)):
            for before, after in pairwise(places):
                if after <= before:
                    raise DataError(f"curves: {what} must rise, got {after} after {before}")
        _check_finite("loss", self.loss)
        _check_finite("learning rate", self.learning_rate)
        _check_finite("validation rsum", self.validation_rsum)
        _check_finite("chance rsum", [] if self.chance_rsum is None else [self.chance_rsum])


@dataclass(frozen=True)
class ReportContent:
    """All a report shows; what is empty is left out of the page.

    Attributes:
        title: the first line, e.g. the run's name.
        subtitle: one line below it: the model, the data.
        protocol_line: dataset, split, numbers of images and captions, any-of-k, ties, seeds, compat:
            printed with the table, without which its figures mean nothing.
        headlines: a few figures shown large.
        table: the test table.
        charted: the measures of the table, by name, that are also drawn as bars (percentages).
        curves: what was logged while training.
        best_retrievals: queries answered best.
        worst_retrievals: queries answered worst.
        recipe_text: the recipe as TOML.
        environment: library → version and the like; nothing that names a machine.
        fingerprints: of weights, data, preprocessing.
        notes: what a reader of the figures should know, one sentence each.
        commands: how to repeat the run, one command line each.
    """

    title: str
    subtitle: str = ""
    protocol_line: str = ""
    headlines: Sequence[Headline] = ()
    table: Sequence[TableRow] = ()
    charted: Sequence[str] = ("R@1", "R@5", "R@10")
    curves: Curves | None = None
    best_retrievals: Sequence[Retrieval] = ()
    worst_retrievals: Sequence[Retrieval] = ()
    recipe_text: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    commands: Sequence[str] = ()

    def __post_init__(self) -> None:
        if (self.table or self.headlines) and not self.protocol_line:
            raise DataError(
                f"report {self.title!r} has figures and no protocol line",
                "say dataset, split, sizes, tie rule and seeds in protocol_line",
            )
