"""Scorer: a folder of models, and the one object that a shop queries.

``units/SETTING-STEP/`` has a model with its calibration, thresholds and scikit-learn pipeline (``model/model.skops``),
``model_card.md`` what ``scorer.json`` says, for people, ``example.json`` a made-up session. A session that runs just
now and a million sessions of a table go through the same view, features and model.
"""

import math
import reprlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from statistics import mode
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from diptych.commerce.logs.log import SECOND
from diptych.commerce.purchase_intent.features import fitting as views
from diptych.commerce.purchase_intent.features.fitting import FittedFeatures, SessionsView
from diptych.commerce.purchase_intent.features.table import FeatureTable
from diptych.commerce.purchase_intent.models import Calibration, FittedModel, log_odds
from diptych.commerce.purchase_intent.scoring import request
from diptych.commerce.purchase_intent.scoring.request import (
    History,
    Reason,
    Refusal,
    Score,
    SessionSoFar,
    SessionStream,
)
from diptych.commerce.purchase_intent.shown import step_text
from diptych.core.artifact import Artifact
from diptych.core.errors import DataError, MismatchError, UsageError
from diptych.core.reading import parse_json

_TRAIN = "diptych intent train FEATURES --out SCORER"
_BLOCK = 1 << 16
_MOST_RUNNING = 50_000
_LONGEST = 60  # characters of a value that are shown


@dataclass(frozen=True, eq=False)
class StepModel(Artifact, kind="step_model", version=2, recreate=_TRAIN, parts=["model"]):
    """Score the sessions of one setting at one step."""

    setting: str  # anonymous, identified or all
    step: int  # pages that are open, -1 for whole sessions
    features: FittedFeatures
    model: FittedModel
    calibration: Calibration  # cross-fitted
    threshold: float  # probability with the best F1, cross-fitted
    cost_threshold: float | None  # probability with the least expected cost, cross-fitted
    base_rate: float  # share of purchases among all sessions
    background: np.ndarray  # (b, columns) feature values of some sessions; no identifiers
    typical: dict[str, str]  # feature → its typical value in words
    about: dict[str, Any]  # sessions, purchases, notes, and what was measured without the last part

    @property
    def cell(self) -> dict[str, Any]:
        """Return what a scorer and tables of measures have of it."""
        names = ("setting", "step", "threshold", "cost_threshold", "base_rate")
        columns = {"weighting": self.model.weighting, "columns": self.features.names}
        return {name: getattr(self, name) for name in names} | columns | self.about

    def log_odds(self, matrix: np.ndarray) -> np.ndarray:
        return log_odds(self.model.scores(matrix), self.model.model)

    def probabilities(self, view: SessionsView) -> np.ndarray:
        return self.calibration.probabilities(self.log_odds(self.features.matrix(view)))

    def answer(self, p: float, **more: Any) -> Score:
        least = self.cost_threshold
        numbers = {name: getattr(self, name) for name in ("setting", "step", "base_rate", "threshold")}
        acting = {"cost_threshold": least, "worth_acting": None if least is None else p >= least}
        return Score(p=p, lift=p / self.base_rate, likely=p >= self.threshold, **numbers, **acting, **more)

    def score(self, view: SessionsView, reasons: int, notes: Sequence[str] = ()) -> Score:
        row = self.features.matrix(view)[0]
        x, found = self.effects(row) if reasons else (self.log_odds(row[None]), {})
        foremost = sorted(found, key=lambda name: -abs(found[name]))[:reasons]
        why = tuple(self._reason(name, row, found[name]) for name in foremost if found[name])
        return self.answer(float(self.calibration.probabilities(x[:1])[0]), reasons=why, notes=tuple(notes))

    def effects(self, row: np.ndarray) -> tuple[np.ndarray, dict[str, float]]:
        """Return log-odds, the session's first, and feature → effect in calibrated log-odds, of one call of the model.

        A feature's columns of the (columns,) row are replaced by those of background sessions, everything else stays:
        f(x) less the mean of f(x with these columns of b). Of a linear model this is coefficient × (value − mean),
        times the calibration's slope. An account of the model, not of causes.
        """
        owners, same = np.array(self.features.owners), (self.background == row).all(axis=0)
        names = list(dict.fromkeys(owners[~same].tolist()))
        variants = [np.where(owners == name, self.background, row) for name in names]
        x = self.log_odds(np.concatenate([row[None], *variants]))
        apart = x[0] - x[1:].reshape(len(names), len(self.background))
        effects = (self.calibration.slope * apart.mean(axis=1)).tolist()
        return x, dict.fromkeys(self.features.owners, 0.0) | dict(zip(names, effects, strict=True))

    def _reason(self, name: str, row: np.ndarray, effect: float) -> Reason:
        label = next(one.label for one in self.features.features if one.name == name)
        mine, typical = np.array(self.features.owners) == name, self.typical[name]
        value = in_words(np.array(self.features.names)[mine], row[None, mine])
        factor = f"{'raises' if effect > 0 else 'lowers'} the odds {math.exp(min(abs(effect), 50.0)):.3g}×"
        text = f"{label}: {value}, typically {typical}; {factor}"
        return Reason(feature=name, label=label, value=value, typical=typical, effect=effect, text=text)


def in_words(names: Sequence[str], columns: np.ndarray) -> str:
    """Return the middle of a number or the most frequent category of (n, columns), as text; of one session its own."""
    if "=" in names[0]:
        shares = np.nan_to_num(columns).mean(axis=0)
        return str(names[int(np.argmax(shares))]).partition("=")[2][:_LONGEST] if shares.any() else "another"
    known = columns[~np.isnan(columns[:, 0]), 0]
    if 2 * len(known) <= len(columns):  # as most have none
        return "none"
    is_around = names[0] == "start-hour"  # the middle of a clock means nothing
    return f"{mode(sorted(known)) if is_around else np.median(known):.4g}"


@dataclass(frozen=True)
class Scorer(Artifact, kind="scorer", version=5, recreate=_TRAIN):
    """Probabilities of a purchase, by setting and step; models are read when they are first needed."""

    about: dict[str, Any]  # of what it was made and how, its models, what was measured
    folder: Path = field(init=False, default=Path(), compare=False)

    @property
    def is_whole(self) -> bool:
        return bool(self.about["kind"] == "whole")

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(cell["setting"], cell["step"]) for cell in self.about["cells"]]

    def model(self, setting: str, step: int) -> StepModel:
        """Return one model with all that belongs to it; read once."""
        models: dict[tuple[str, int], StepModel] = vars(self).setdefault("_models", {})
        if (setting, step) not in models:
            models[setting, step] = StepModel.open(self.folder / "units" / unit_key(setting, step))
        return models[setting, step]

    def score(self, session: Mapping[str, Any], *, reasons: int = 5) -> Score:
        return self.stream(session, reasons=reasons).score()

    def stream(self, known: Mapping[str, Any] | None = None, *, reasons: int = 5) -> SessionStream:
        """Return a session that is about to run, to be given event by event; ``known`` as of :class:`Session`."""
        if self.is_whole:
            wrong = "this scorer is of whole sessions, whose columns are known when they are over"
            raise UsageError(
                wrong, "score a table like the one it was trained on; or train on a log's features"
            )
        options, last = self.about["session_options"], max(0, *(step for _, step in self.places))
        gap_us = None if options["by"] == "given" else round(options["gap_minutes"] * 60 * SECOND)
        return SessionStream(
            partial(self._score, reasons=reasons), gap_us, last, {} if known is None else known
        )

    def answer(self, session: str | bytes, *, reasons: int = 5) -> dict[str, Any]:
        """Answer a session so far, JSON, with a :class:`Score` or a :class:`Refusal` as a dictionary, and its id."""
        return _answer(session, "id", partial(self.score, reasons=reasons)) or {}

    def answers(
        self, lines: Iterable[str], reasons: int = 5, *, stream: bool = False
    ) -> Iterator[dict[str, Any]]:
        """Answer each line of JSON, a session so far, with its number.

        In a ``stream`` a line is an event with a ``client_id``, and the answer is of the client's session, after every
        event that opens a page. The clients that were active last are held, 50,000 at most.
        """
        self.stream()  # refuses lines for a scorer of tables
        running = lru_cache(_MOST_RUNNING)(lambda client: self.stream(reasons=reasons))

        def of_client(event: Any) -> Score | None:
            client = request.ClientEvent.read(event, "an event of a stream", DataError).client_id
            return running(client).add(event)

        key, score = ("client_id", of_client) if stream else ("id", partial(self.score, reasons=reasons))
        for place, line in enumerate(lines, 1):
            if line.strip() and (found := _answer(line, key, score)) is not None:
                yield {"line": place, **found}

    def _score(self, session: SessionSoFar, given: History | None, reasons: int) -> Score:
        setting, step = self._place(session)
        model, notes = self.model(setting, step), list(session.notes)
        if session.bought_at is not None:
            bought = f"something was bought with event {session.bought_at}: there is nothing left to predict"
            return model.answer(1.0, notes=(*notes, bought), bought=True)
        if session.n_pages > step:
            notes.append(
                f"pages opened: {session.n_pages:,}; the model of step {step} looks at the first {step}"
            )
        known: request.Columns = {"channel": session.channel, "device": session.device}
        if setting == "identified":
            since = None if given is None else self.about["since_us"]
            history, missing = (given or History()).columns(session.start_us, session.device, since)
            known |= history
            if missing:
                notes.append(f"the history does not say: {', '.join(missing)}; taken as missing")
        owners, columns = model.features.owners, model.features.names
        unseen = [
            f"{name} {reprlib.repr(session_word)}"
            for name, session_word in (("device", session.device), ("channel", session.channel))
            if name in owners and f"{name}={session_word}" not in columns
        ]
        types = sorted(set(session.page_types[:step]) - set(self.about["vocabulary"]))
        unseen += [f"page types {reprlib.repr(types)}"] if types else []
        notes += [f"not seen in training, counts as another: {', '.join(unseen)}"] if unseen else []
        return model.score(self._view(session, known, step), reasons, notes)

    def _place(self, session: SessionSoFar) -> tuple[str, int]:
        """Return setting and step of the model for a session: anonymous where there is none for a known visitor."""
        reached = dict(one for one in sorted(self.places) if one[1] <= session.n_pages)  # the last of each
        setting = "identified" if session.is_identified and "identified" in reached else "anonymous"
        if setting not in reached:
            wrong = f"the scorer has no model for {setting} sessions (pages opened: {session.n_pages:,})"
            raise UsageError(wrong, "its model card lists those that it has, and why")
        return setting, reached[setting]

    def _view(self, session: SessionSoFar, known: request.Columns, pages: int) -> SessionsView:
        """Return (1,) the session with everything that is known of it."""
        zone = self.about["zone"]
        try:
            local = datetime.fromtimestamp(session.start_us // SECOND, ZoneInfo(zone))
        except (ZoneInfoNotFoundError, ValueError):
            raise DataError(f"the time zone {zone!r} is not known here", "pip install tzdata") from None
        known = {**known, "start_hour": float(local.hour), "start_dow": float(local.weekday())}
        columns = {
            name: views.column(kind, 1, [known[name]] if name in known else None)
            for name, kind in views.COLUMNS.items()
        }
        known_types = {*self.about["vocabulary"]}
        named = [one if one in known_types else views.OTHER_PAGE for one in session.page_types[:pages]]
        missing = pages - len(named)
        types = views.text_array([*named, *[views.NOTHING] * missing])[None]
        return SessionsView(
            columns, types, np.array([[*session.page_times[:pages], *[0] * missing]], np.int64)
        )

    def score_table(
        self,
        features: FeatureTable,
        settings: Sequence[str] | None = None,
        steps: Sequence[int] | None = None,
    ) -> Iterator[tuple[StepModel, np.ndarray, np.ndarray]]:
        """Score every session of a table at every step, block by block: each model, (m,) rows and probabilities."""
        for name in ("kind", "zone", "session_options", "columns"):
            mine, theirs = self.about[name], features.about.get(name)
            if mine != theirs:
                wrong = f"the scorer was trained on features with {name} {mine}, these have {theirs}"
                raise MismatchError(wrong, "make the features in the same way, or train on these")
        for setting, step in self.places:
            if setting in (settings or [setting]) and step in (steps or [step]):
                model, rows = self.model(setting, step), features.population(setting, step)
                blocks = [rows[begin : begin + _BLOCK] for begin in range(0, len(rows), _BLOCK)]
                found = [model.probabilities(features.at(block, step)) for block in blocks]
                yield model, rows, np.concatenate([np.zeros(0), *found])

    def describe(self) -> str:
        about = self.about
        models = f"{about['options']['model']}, models: {len(self.places)}"
        return f"{about['name']}: {models}, {about['days']}, fitted on {about['parts']['all'][0]:,} sessions"


def unit_key(setting: str, step: int) -> str:
    return f"{setting}-{step_text(step)}"


def _answer(text: str | bytes, key: str, score: Callable[[Any], Score | None]) -> dict[str, Any] | None:
    """Return the answer to one JSON object, with what it is known by; None where there is no score."""
    known = {}
    try:
        given = parse_json(text, "the line", error=DataError, fix="one JSON object per line")
        known = {key: given[key]} if isinstance(given, dict) and key in given else {}
        found = score(given)
        return None if found is None else known | found.model_dump(mode="json")
    except (DataError, UsageError) as error:
        return known | Refusal(error=error.message, fix=error.fix or "").model_dump()
