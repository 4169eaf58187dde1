"""Options of purchase intent: how sessions, descriptions, features, audits and scorers are made."""

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, model_validator

from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options, parameter

SessionKey = Literal["client", "visitor", "given"]
Compat = Literal["none", "published"]

_ROOM = "diptych.commerce.purchase_intent"
_MODELS = f"{_ROOM}.models:MODELS"


def _separated(given: list[str] | None) -> list[str] | None:
    return given and [name for text in given for name in text.split(",") if name]


Names = Annotated[list[str] | None, BeforeValidator(_separated)]

LAST_STEP = 10  # predictions are made before any page and after each of the first ten (thesis section 6.5.1)


class EngineOptions(Options):
    """The engine that computes."""

    engine: Literal["duckdb", "spark"] = parameter("duckdb", "What computes it.")
    memory_limit: str | None = parameter(None, "Of the engine, e.g. 1GB; it spills to disk.")


class SessionOptions(Options):
    """The definition of a session."""

    gap_minutes: float = parameter(
        30.0, "Idle minutes after which a session has ended.", "--gap", gt=0, allow_inf_nan=False
    )
    by: SessionKey = parameter("client", "Whose events it has; visitor: the client's where none is known.")
    pages: int = parameter(LAST_STEP, "First pages kept of a session with two more.", ge=1, hidden=True)

    @property
    def key(self) -> str:
        """Return a name for folders: the same options have the same name."""
        return f"{self.by}-{self.gap_minutes:g}min-{self.pages}p-{fingerprint(self.model_dump())[:6]}"

    @property
    def words(self) -> str:
        idle = f"ended by more than {self.gap_minutes:g} minutes without an event"
        return f"as the log gives them, others {idle}" if self.by == "given" else f"by {self.by}, {idle}"


class DescribeOptions(Options):
    """Options of the statistics of sessions."""

    ddof: int = parameter(0, "Of standardised rates: 0 as in thesis Table 6.4, 1 as in 6.2.", ge=0, le=1)
    journey: Literal["pair", "journey"] = parameter(
        "pair",
        "Transitions that count: from the session before a purchase, or all since the purchase before.",
    )
    confidence: float = parameter(0.95, "Of intervals.", gt=0, lt=1)


class FeatureOptions(Options):
    """Options of a table of features."""

    compat: Compat = parameter(
        "none", "published: as in the thesis, also purchases before the step and log-ins at any page."
    )
    also: tuple[str, ...] = parameter(
        (), "More: hour-cyclic, previous-device, previous-device-rate, history-days. Repeatable.", "--feature"
    )
    types: int = parameter(
        200, "Page types kept apart, the most frequent; all others are one.", "--page-types", ge=1
    )

    @model_validator(mode="after")
    def _known(self) -> Self:
        from diptych.commerce.purchase_intent.features.fitting import FEATURES

        for name in self.also:
            FEATURES.get(name)
        return self


class TableOptions(Options):
    """Columns and files of features that are written."""

    export: bool = parameter(False, "Also write steps.parquet: one row per session and step.")
    csv: bool = parameter(False, "Also write it as steps.csv.")
    keep_leaking: bool = parameter(False, "Of whole sessions: keep columns computed from the outcome.")


class FeatureSetOption(Options):
    """A model and the features that it looks at."""

    model: str = parameter("hist-gradient-boosting", "A classifier.", names=_MODELS)
    feature_set: str = parameter("extended", "Features: baseline or extended.", "--set")


class EvaluateOptions(Options):
    """Options of an evaluation."""

    preset: Literal["fast", "paper"] = parameter(
        "fast", "fast: three models, steps 0, 1, 5, 10, 5 folds; paper: six models, 11 steps, 10 folds."
    )
    models: Names = parameter(
        None, "Instead of the preset's. Repeatable, or with commas.", "--model", names=_MODELS
    )
    sets: Names = parameter(None, "Feature set: baseline, extended. Repeatable.", "--set")
    settings: Names = parameter(None, "anonymous, identified. Repeatable.", "--setting")
    steps: list[int] | None = parameter(None, "Pages that are open. Repeatable.", "--step")
    split: str = parameter(
        "random", "random; grouped: by person; time: test after.", names=f"{_ROOM}.models:SPLITS"
    )
    folds: int | None = parameter(None, "The preset's, or 1 of a split by time.", ge=1, metavar="N")
    balanced: bool = parameter(True, "Let classes weigh the same where a model can.", "--balance")
    inner: bool = parameter(
        True, "Fit thresholds and probabilities inside the training part; twice the time."
    )
    importance: bool = parameter(True, "Compute the importance of features.")
    samples: int = parameter(1000, "Bootstrap resamples of persons for 95 % intervals; 0 for none.", ge=0)
    seed: int = parameter(0, "Of folds, models, permutations and resamples.", ge=0)
    jobs: int = parameter(1, "Processes; the numbers do not depend on it.", "--jobs", "-j", ge=1)


class AuditOptions(FeatureSetOption):
    """Options of a leak audit."""

    steps: tuple[int, ...] | None = parameter(
        None, "Where models are fitted. Repeatable.", "--step", default="0, 1, 5, 10"
    )
    repeats: int = parameter(6, "How many times labels are permuted.", ge=2)
    most: int = parameter(20_000, "Sessions in a part, at most; drawn.", ge=100)
    highest: float = parameter(0.95, "ROC AUC of a single column that is an alarm.", gt=0.5, lt=1)
    margin: float = parameter(0.05, "ROC AUC above 0.5 allowed to permuted labels.", gt=0, lt=0.5)
    fewest: int = parameter(20, "Purchases that a ROC AUC is taken seriously from.", ge=1)
    seed: int = parameter(0, "Of everything drawn.", ge=0)


class TrainOptions(FeatureSetOption):
    """Options of a scorer."""

    holdout: float = parameter(0.2, "Share of sessions to measure on.", gt=0, lt=1)
    folds: int = parameter(5, "Calibration is cross-fitted on so many.", ge=2)
    calibrate: Literal["platt", "isotonic"] = parameter("platt", "A sigmoid; or steps, where data suffices.")
    split: Literal["time", "grouped"] = parameter(
        "time", "Measure on the last sessions; or on persons drawn."
    )
    balanced: bool = parameter(True, "Let classes weigh the same where a model can.", "--balance")
    background: int = parameter(100, "Training sessions that effects are compared with.", ge=1)
    samples: int = parameter(200, "Bootstrap resamples of persons for intervals; 0 for none.", ge=0)
    confidence: float = parameter(0.95, "Of intervals.", gt=0, lt=1)
    seed: int = parameter(0, "Of models, parts and resamples.", ge=0)
    false_alarm_cost: float | None = parameter(None, "Of acting on a session without a purchase.", gt=0)
    missed_cost: float | None = parameter(
        None, "Of not acting on one with; either gives a threshold by cost.", gt=0
    )

    @property
    def costs(self) -> tuple[float, float] | None:
        """Of a false alarm and of a missed purchase, 1 where only the other is given; None where neither is."""
        if self.false_alarm_cost is None and self.missed_cost is None:
            return None
        return self.false_alarm_cost or 1.0, self.missed_cost or 1.0
