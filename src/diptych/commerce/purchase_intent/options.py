"""Options of purchase intent: how sessions, descriptions, features, audits and scorers are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from diptych.core.errors import UsageError
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.engine import Engine

SessionKey = Literal["client", "visitor", "given"]
Compat = Literal["none", "published"]

LAST_STEP = 10
"""Predictions are made before any page and after each of the first ten (thesis section 6.5.1)."""

_MODEL: dict[str, Any] = {"names": "diptych.commerce.purchase_intent.models:MODELS"}


class EngineOptions(Options):
    """What computes."""

    engine: Literal["duckdb", "spark"] = Field("duckdb", description="What computes it.")
    memory_limit: str | None = Field(None, description="Of the engine, e.g. 1GB; it spills to disk.")

    def open(self) -> Engine:
        """Open the engine; close it after use."""
        from diptych.commerce.purchase_intent.engine import open_engine

        return open_engine(self.engine, memory_limit=self.memory_limit)


class SessionOptions(Options):
    """What a session is."""

    gap_minutes: float = Field(
        30.0,
        gt=0,
        allow_inf_nan=False,
        description="Idle minutes after which a session has ended.",
        json_schema_extra={"flags": ["--gap"]},
    )
    by: SessionKey = Field(
        "client", description="Whose events make a session; visitor: the client's where none is known."
    )
    pages: int = Field(
        LAST_STEP,
        ge=1,
        description="First pages that are kept of a session with two more.",
        json_schema_extra={"hidden": True},
    )

    @property
    def key(self) -> str:
        """Return a name for folders: the same options have the same name."""
        return f"{self.by}-{self.gap_minutes:g}min-{self.pages}p-{fingerprint(self.model_dump())[:6]}"

    @property
    def words(self) -> str:
        """Return what a session is, for protocols."""
        idle = f"ended by more than {self.gap_minutes:g} minutes without an event"
        return f"as the log gives them, others {idle}" if self.by == "given" else f"by {self.by}, {idle}"


class DescribeOptions(Options):
    """How the statistics of sessions are computed."""

    ddof: int = Field(
        0, ge=0, le=1, description="Of standardised rates: 0 as in thesis Table 6.4, 1 as in its Table 6.2."
    )
    journey: Literal["pair", "journey"] = Field(
        "pair",
        description="Device transitions that count: from the session before a purchase session, or all since the "
        "purchase session before.",
    )
    confidence: float = Field(0.95, gt=0, lt=1, description="Of intervals.")
    likely: float = Field(0.01, gt=0, le=1, description="A device switch this probable is likely.")
    near_zero: float = Field(0.01, gt=0, le=1, description="One less probable is hardly ever seen.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.near_zero > self.likely:
            raise UsageError(
                f"likely is {self.likely:g}, near zero {self.near_zero:g}", "0 < near zero ≤ likely ≤ 1"
            )
        return self


class FeatureOptions(Options):
    """How a table of features is made."""

    compat: Compat = Field(
        "none",
        description="published: also sessions whose purchase came before the step, and visitors who log in at any page "
        "identified from the beginning, as in the thesis.",
    )
    also: tuple[str, ...] = Field(
        (),
        description="A feature besides those of the extended set: hour-cyclic, previous-device, previous-device-rate, "
        "history-days. Repeatable.",
        json_schema_extra={"flags": ["--feature"]},
    )
    types: int = Field(
        200,
        ge=1,
        description="Page types told apart, the most frequent; all others are one.",
        json_schema_extra={"flags": ["--page-types"]},
    )

    @model_validator(mode="after")
    def _optional(self) -> Self:
        for name in self.also:
            from diptych.commerce.purchase_intent.features.fitting import FEATURES

            if FEATURES.get(name).default:
                raise UsageError(f"the feature {name} is in the extended set anyway", "leave it out")
        return self


class FeatureSetOption(Options):
    """Which features a model looks at."""

    model: str = Field("hist-gradient-boosting", description="A classifier.", json_schema_extra=_MODEL)
    feature_set: str = Field(
        "extended", description="Features: baseline or extended.", json_schema_extra={"flags": ["--set"]}
    )


class AuditOptions(FeatureSetOption):
    """How a leak audit is made."""

    steps: tuple[int, ...] | None = Field(
        None,
        description="Where models are fitted. Repeatable.",
        json_schema_extra={"flags": ["--step"], "default": "0, 1, 5, 10"},
    )
    repeats: int = Field(6, ge=2, description="How many times labels are permuted.")
    most: int = Field(20_000, ge=100, description="Sessions in a part, at most; drawn.")
    highest: float = Field(0.95, gt=0.5, lt=1, description="ROC AUC of a single column that is an alarm.")
    margin: float = Field(0.05, gt=0, lt=0.5, description="ROC AUC above 0.5 allowed to permuted labels.")
    fewest: int = Field(20, ge=1, description="Purchases that a ROC AUC is taken seriously from.")
    seed: int = Field(0, ge=0, description="Of everything drawn.")


class TrainOptions(FeatureSetOption):
    """How a scorer is trained."""

    calibration: float = Field(0.2, gt=0, lt=1, description="Share of sessions to calibrate on.")
    holdout: float = Field(0.2, gt=0, lt=1, description="Share of sessions to measure on.")
    calibrate: Literal["platt", "isotonic"] = Field(
        "platt", description="A sigmoid; or steps, where there is enough data."
    )
    split: Literal["time", "grouped"] = Field(
        "time",
        description="time: fit on the past, calibrate and measure on what follows; grouped: by person.",
    )
    balanced: bool = Field(
        True,
        description="Let classes weigh the same where a model can.",
        json_schema_extra={"flags": ["--balance"]},
    )
    background: int = Field(100, ge=1, description="Training sessions that effects are compared with.")
    samples: int = Field(200, ge=0, description="Bootstrap resamples of persons for intervals; 0 for none.")
    confidence: float = Field(0.95, gt=0, lt=1, description="Of intervals.")
    seed: int = Field(0, ge=0, description="Of models, parts and resamples.")

    @model_validator(mode="after")
    def _three_parts(self) -> Self:
        if self.calibration + self.holdout >= 1:
            raise UsageError(
                f"calibration {self.calibration:g} and holdout {self.holdout:g} leave nothing to fit on",
                "together below 1; e.g. 0.2 and 0.2",
            )
        return self
