"""Rows of a shop's log, and what is made of the log once, in ``PAPER.logs/NAME-KEY/`` beside the studies of a paper.

KEY tells other logs, and other raw files, apart. ``log/`` has canonical events, where raw ones were given or generated;
``description-KEY/`` statistics, ``features-KEY/`` features, ``MODEL-KEY/`` an evaluation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, PositiveInt

from diptych.commerce.purchase_intent import describe, evaluate, make_features, open_features, sessionise
from diptych.commerce.purchase_intent import options as intent
from diptych.commerce.purchase_intent.evaluation.result import RESULTS, Evaluation
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.core.errors import DataError, UnknownNameError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import cached, taking_turns
from diptych.core.options import Options
from diptych.data.logs import Log, ingest
from diptych.data.scenes import make_shop_log
from diptych.studies.evidence import Evidence
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.results import Measured, Measurement
from diptych.studies.runner import setting_for
from diptych.studies.sources import Captions, Subject, logger
from diptych.studies.study import Row

T = TypeVar("T")

FOREST = "random-forest"  # the model whose importances there are
_LISTED = BeforeValidator(lambda given: [given] if isinstance(given, int) else given)
_KEY = 8  # characters of a fingerprint that tell folders apart
_IMPORTS = ("name", "zone", "times_in", "memory_limit")  # who has more to say: diptych intent ingest


class LogOptions(Options):
    """How a log is measured (``--set measure.KEY=VALUE``); further options of commerce are not set here."""

    model_config = ConfigDict(strict=True)

    gap: int | float = Field(30.0, gt=0, allow_inf_nan=False)  # idle minutes after which a session has ended
    by: intent.SessionKey = "client"
    ddof: int = Field(0, ge=0, le=1)
    journey: Literal["pair", "journey"] = "pair"
    compat: intent.Compat = "none"
    split: Literal["random", "grouped", "time"] = "grouped"
    folds: int = Field(10, ge=2)
    # pages that are open, e.g. [0, 1, 5, 10]; all when not given
    steps: Annotated[tuple[int, ...] | None, _LISTED] = Field(None, min_length=1, strict=False)
    # to predict on, of persons drawn at random: so many of all, or anonymous and identified ones; all when not given
    sessions: PositiveInt | Annotated[tuple[PositiveInt, PositiveInt], Field(strict=False)] | None = None
    seed: int = Field(0, ge=0)  # of draws, splits and models
    jobs: int = Field(1, ge=1)

    def only(self, *keys: str) -> dict[str, Any]:
        """Return some, JSON-able."""
        return self.model_dump(mode="json", include=set(keys))

    @property
    def protocol(self) -> str:
        """What a session is, in the words of printed numbers."""
        ended = f"by {self.by}, ended by {self.gap:g} minutes without an event"
        return "as the log gives them" if self.by == "given" else ended


@dataclass
class ShopLog:
    """A log and what is made of it, each when it is first needed; what is there is opened."""

    folder: Path
    log: Log
    options: LogOptions
    _evaluations: dict[str, Evaluation] = field(default_factory=dict)

    @cached_property
    def sessions(self) -> SessionTables:
        """Its sessions; in the log's own folder, where every command finds them."""
        return sessionise(self.log, intent.SessionOptions(gap_minutes=self.options.gap, by=self.options.by))

    @cached_property
    def description(self) -> Path:
        """The folder of its statistics."""
        how = self.options.only("ddof", "journey")

        def make(folder: Path) -> None:
            logger.info(f"{self.log.name}: description")
            describe(self.sessions, options=intent.DescribeOptions(**how)).save(folder)

        return cached(self._folder("description", self.sessions.fingerprint, how), Path, make)

    @cached_property
    def features(self) -> FeatureTable:
        """What is known of sessions at every step."""
        how = self.options.only("compat")

        def make(folder: Path) -> None:
            logger.info(f"{self.log.name}: features")
            make_features(self.sessions, folder=folder, options=intent.FeatureOptions(**how))

        return cached(self._folder("features", self.sessions.fingerprint, how), open_features, make)

    @cached_property
    def sample(self) -> FeatureTable:
        """The features of as many sessions as are predicted on."""
        wanted = self.options.sessions
        return self.features if wanted is None else sampled(self.features, wanted, self.options.seed)

    def evaluating(self, model: str) -> intent.EvaluateOptions:
        """Return how a model is evaluated."""
        how = self.options.only("split", "folds", "steps", "seed", "jobs")
        how |= {"preset": "paper", "inner": False, "importance": model == FOREST}
        how |= {"folds": 1} if self.options.split == "time" else {}
        return intent.EvaluateOptions(models=[model], **how)

    def evaluation(self, model: str) -> Evaluation:
        """Return one model on all steps, settings and feature sets; what was fitted before is not fitted again."""
        if model not in self._evaluations:
            how = self.options.only("split", "folds", "steps", "seed")
            folder = self._folder(model, self.sample.fingerprint, how)
            if not (folder / RESULTS).is_file():
                logger.info(f"{self.sample.describe()}: {model}")
            with taking_turns(folder):
                self._evaluations[model] = evaluate(self.sample, folder, **dict(self.evaluating(model)))
        return self._evaluations[model]

    def _folder(self, name: str, *depends_on: Any) -> Path:
        return self.folder / f"{name}-{fingerprint(*depends_on)[:_KEY]}"


def sampled(features: FeatureTable, sessions: int | tuple[int, int], seed: int) -> FeatureTable:
    """Return ``sessions``, or a few more, of persons drawn at random; or so many of each setting at the first step."""
    if isinstance(sessions, int):
        wanted = [(np.arange(len(features)), sessions)]
    else:
        populations = [features.population(setting, features.steps[0]) for setting in features.settings]
        wanted = list(zip(populations, sessions, strict=True))
    if all(len(rows) <= most for rows, most in wanted):
        return features
    persons, inverse = np.unique(features.persons, return_inverse=True)
    place = np.argsort(np.random.default_rng(seed).permutation(len(persons)))[inverse]
    drawn = np.concatenate([rows[np.argsort(place[rows], kind="stable")][:most] for rows, most in wanted])
    # a single number draws whole persons
    rows = np.flatnonzero(np.isin(place, place[drawn])) if isinstance(sessions, int) else np.sort(drawn)
    columns = ("session_ids", "persons", "start_us", "end_us", "pages_before_identified")
    taken: dict[str, Any] = {name: getattr(features, name)[rows] for name in columns}
    about = features.about | {"fingerprint": fingerprint(features.fingerprint, "sampled", sessions, seed)}
    return replace(features, about=about, view=features.view.take(rows), **taken)


def open_log(beside: Path, given: Mapping[str, Any] | None, generated: Mapping[str, Any]) -> tuple[Path, Log]:
    """Return the folder for what is made of a log, and the log: raw events are imported, or generated, once."""
    path, options = Path((given or {}).get("path", "")), (given or {}).get("options", {})
    if given is None:
        name, key = "scenes", fingerprint(dict(generated))
    elif Log.is_at(path):
        log = Log.open(path)
        return beside / f"{safe_name(log.name)}-{fingerprint(log.fingerprint)[:_KEY]}", log
    elif not path.exists():
        fix = "give a folder that diptych intent ingest wrote, or raw events"
        raise DataError(f"{path} is not there", fix)
    else:
        for option in options:
            if option not in _IMPORTS:
                raise UnknownNameError("option of an import", option, _IMPORTS)
        # Files that have changed, or are read otherwise, are another log.
        files = sorted(file for file in path.rglob("*") if file.is_file()) or [path]
        found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        name = safe_name(path.name.partition(".")[0])
        key = fingerprint(found, given.get("reader"), dict(options))

    def make(target: Path) -> None:
        if given is None:
            logger.info("scenes: generating a shop log")
        raw, named = (make_shop_log(**generated), {"name": "scenes"}) if given is None else (path, options)
        logger.info(f"{named.get('name', raw.name)}: importing events")
        ingest(raw, target, format=(given or {}).get("reader"), **named)

    folder = beside / f"{name}-{key[:_KEY]}"
    return folder, cached(folder / "log", Log.open, make)


@dataclass(frozen=True)
class LogRow:
    """A row that is measured on a log."""

    name: str
    folder: Path  # where it is kept
    shop: ShopLog

    def measured(
        self, values: Mapping[str, float], on: Measured, protocol: str, kept: Path, command: str
    ) -> tuple[Measurement, ...]:
        """Return numbers with what they were read from, which can be moved together with the row; nothing of none."""
        commands = (command.replace("{", "{{").replace("}", "}}"),) if command else ()
        beside = os.path.relpath(kept.resolve(), self.folder.resolve())
        return (Measurement(values, on, protocol, commands, kept=beside),) if values else ()


def kept_in(evidence: Evidence, read: Callable[[Path], T]) -> list[T]:
    """Open what rows were measured from, each once; what is gone is left out."""
    folders = dict.fromkeys(folder.resolve() for folders in evidence.kept.values() for folder in folders)
    return [read(folder) for folder in folders if folder.is_dir()]


class LogRows(Captions):
    """Rows of a log, each measured once; of a study of nothing, rows of what this package declares."""

    nothing = "the log has nothing of it, or too little"
    shop: ShopLog | None = None

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Open the log and choose the setting: the paper's log is recognised by its name."""
        study, given, chosen = plan.study, plan.choices.data, plan.measuring()
        self.check(plan, rows[0])
        LogOptions.read(chosen, MEASURE)  # before a long import
        if study.of == "nothing":
            plan.name = "paper"
            return {}
        generated = plan.setting.generated
        if given is None and generated is None:
            raise DataError(f"no log given for {study.name}", "--data LOG, or --quick for a generated one")
        beside = plan.folder.resolve().parent / f"{study.paper.key}.logs"
        folder, log = open_log(beside, given, generated or {})
        if given is not None:
            plan.name = setting_for(study, log.name, plan.choices.setting)
        self.shop = ShopLog(folder, log, LogOptions.read({**plan.setting.measure, **chosen}, MEASURE))
        return {}

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return how the log is counted."""
        given = {**plan.setting.measure, **plan.choices.below(MEASURE)}
        return {MEASURE: LogOptions.read(given, MEASURE).model_dump(mode="json")}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Return what is to be measured: it is made meanwhile."""
        shop, subject = self.shop, Subject(row, None, plan.features, data=self.hint()[0], costs=True)
        if shop is None:
            return replace(subject, again=True)
        how = shop.options.only(*(key for key in plan.study.measured_by if key != "jobs"))
        run = LogRow(row.name, plan.target(row, seed), shop)
        return replace(subject, run=run, state=(shop.log.fingerprint, how))

    def hint(self) -> tuple[str, str]:
        """Return what was measured, and how to see what there is."""
        data = "what is declared" if self.shop is None else self.shop.log.describe()
        return data, "diptych intent describe LOG shows what a log has"
