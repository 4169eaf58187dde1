"""Studies of a shop's log: how it is measured, what is made of it once, and its rows.

::

    studies/
      intent.table-6.2/              a study's folder
      intent.logs/                   beside it, shared by the studies of the paper
        NAME-KEY/                    one log; KEY says which: another log, or other raw files, is another folder
          scenes/                    raw events that were generated, where nobody gave a log
          log/                       canonical events, where raw ones were given
          description-KEY/           statistics
          features-KEY/
          MODEL-KEY/                 an evaluation

What is there is opened; what is missing is made, whole or not at all, by one process at a time: another that wants
it meanwhile waits and finds it there.

What may be chosen about measuring a log (``--set measure.KEY=VALUE``) are the fields of :class:`LogOptions`; settings
have other defaults for some of them, which ``diptych study show`` names.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field

from diptych.commerce.purchase_intent.options import Compat, SessionKey
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.options import Options
from diptych.studies.making import Made, Unit, logger
from diptych.studies.rows import MEASURE, Choices, LogSource, measuring_of, run_folder, setting_for
from diptych.studies.study import Row, SettingName, Study, Subject

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.sessions import SessionTables
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log


def _as_steps(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else (given,) if isinstance(given, int) else given


class LogOptions(Options):
    """How a log is measured."""

    model_config = ConfigDict(strict=True)

    gap: int | float = Field(30.0, gt=0, allow_inf_nan=False)  # idle minutes after which a session has ended
    by: SessionKey = "client"  # whose events make a session
    ddof: int = Field(0, ge=0)  # of standardised rates: divide by n − ddof
    journey: Literal["pair", "journey"] = (
        "pair"  # transitions into a purchase session, or all since the one before
    )
    compat: Compat = "none"  # published: populations of a step as the thesis describes them
    split: Literal["random", "grouped", "time"] = "grouped"  # training and test sessions
    folds: int = Field(10, ge=2)
    # pages that are open, e.g. [0, 1, 5, 10]; all when not given
    steps: Annotated[tuple[int, ...] | None, BeforeValidator(_as_steps)] = Field(None, min_length=1)
    sessions: int | None = Field(None, ge=1)  # at most so many are predicted on, of persons drawn at random
    seed: int = Field(0, ge=0)  # of draws, splits and models
    jobs: int = Field(1, ge=1)

    def only(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """Some of them, JSON-able, for fingerprints."""
        return self.model_dump(mode="json", include=set(keys))

    def sessions_are(self) -> str:
        """What a session is, in the words of printed numbers."""
        if self.by == "given":
            return "as the log gives them"
        return f"by {self.by}, ended by {self.gap:g} minutes without an event"


T = TypeVar("T")

KEY = 8
"""Characters of a fingerprint that tell folders apart."""


@dataclass
class Workshop:
    """A log and what is made of it, each when it is first asked for."""

    folder: Path
    log: Log
    options: LogOptions
    _kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def tables(self) -> SessionTables:
        """Its sessions; in the log's own folder, where every command finds them."""
        from diptych.commerce.purchase_intent.options import SessionOptions
        from diptych.commerce.purchase_intent.sessions import sessionise

        options = SessionOptions.read({"gap_minutes": self.options.gap, "by": self.options.by}, "sessions")
        return sessionise(self.log, options)

    @property
    def described_in(self) -> Path:
        """Where its statistics are."""
        return self._place("description", self.tables.fingerprint, "ddof", "journey")

    @cached_property
    def description(self) -> Description:
        """All statistics."""
        from diptych.commerce.purchase_intent.statistics import DescribeOptions, Description, describe

        with taking_turns(self.described_in):
            if not self.described_in.is_dir():
                logger.info(f"{self.log.name}: statistics")
                options = DescribeOptions.read(
                    {"ddof": self.options.ddof, "journey": self.options.journey}, "describe"
                )
                describe(self.tables, options=options).save(self.described_in)
        return Description.open(self.described_in)

    @cached_property
    def _all_features(self) -> FeatureTable:
        from diptych.commerce.purchase_intent.features import FeatureOptions, make_features, open_features

        folder = self._place("features", self.tables.fingerprint, "compat")
        with taking_turns(folder):
            if not folder.is_dir():
                logger.info(f"{self.log.name}: features")
                options = FeatureOptions.read({"compat": self.options.compat}, "features")
                make_features(self.tables, folder=folder, options=options)
        return open_features(folder)

    @cached_property
    def features(self) -> FeatureTable:
        """What is known of sessions at every step; of a sample of persons where fewer sessions are asked for."""
        wanted = self.options.sessions
        return (
            self._all_features if wanted is None else sampled(self._all_features, wanted, self.options.seed)
        )

    def evaluation(self, model: str) -> Evaluation:
        """One model on all steps, settings and feature sets; what was fitted before is not fitted again."""
        return self.once(f"evaluation of {model}", lambda: self._evaluated(model))

    def _evaluated(self, model: str) -> Evaluation:
        from diptych.commerce.purchase_intent.evaluation import evaluate
        from diptych.studies.intent_predicting import FOREST

        options, features = self.options, self.features
        folder = self._place(model, features.fingerprint, "split", "folds", "steps", "seed")
        if not (folder / "results.npz").is_file():
            logger.info(f"{features.describe()}: {model}")
        with taking_turns(folder):
            return evaluate(
                features,
                folder,
                preset="paper",
                models=[model],
                steps=options.steps,
                split=options.split,
                folds=1 if options.split == "time" else options.folds,
                inner=False,
                importance=model == FOREST,
                seed=options.seed,
                jobs=options.jobs,
            )

    def once(self, what: str, make: Callable[[], T]) -> T:
        """What several rows are measured from: made for the first of them, kept for the others."""
        if what not in self._kept:
            self._kept[what] = make()
        found: T = self._kept[what]
        return found

    def evaluated_by(self, model: str) -> tuple[str, ...]:
        """The command that evaluates a model by hand; none where only a sample was taken."""
        if self.features.fingerprint != self._all_features.fingerprint:
            return ()
        options = self.options
        steps = [part for step in options.steps or () for part in ("--step", str(step))]
        how = ["--model", model, "--split", options.split, *steps, "--seed", str(options.seed), "--no-inner"]
        folds = [] if options.split == "time" else ["--folds", str(options.folds)]
        return (self.command("evaluate", self._all_features.folder, *how, *folds, "--out", "evaluation"),)

    def command(self, verb: str, *arguments: object) -> str:
        """What a person types to make the like of it by hand."""
        return (
            shlex.join(["diptych", "intent", verb, *map(str, arguments)])
            .replace("{", "{{")
            .replace("}", "}}")
        )

    def _place(self, name: str, of: str, *keys: str) -> Path:
        return self.folder / f"{name}-{fingerprint(of, self.options.only(keys))[:KEY]}"


@dataclass(frozen=True)
class LogRow:
    """A row that is measured on a log."""

    row: Row
    folder: Path
    workshop: Workshop


@dataclass(frozen=True)
class DeclaredRow:
    """A row of a study that needs no log."""

    row: Row


_LOG, _SCENES = "log", "scenes"
_OPTIONS = ("name", "zone", "times_in", "memory_limit")
"""What ``--reader-option`` takes; who has more to say imports first: ``diptych intent ingest``."""


def open_log(
    beside: Path,
    source: LogSource | None,
    scenes: Mapping[str, Any] | None,
) -> tuple[Path, Log]:
    """The log, and the folder for what is made of it; events are imported, or generated too, where they are not
    there yet.
    """
    from diptych.data.logs.log import Log

    if source is None:
        options = dict(scenes or {})
        folder = beside / f"scenes-{fingerprint(options)[:KEY]}"
        return folder, _generated(folder, options)
    if source.is_imported:
        log = Log.open(source.path)
        return beside / f"{safe_name(log.name)}-{fingerprint(log.fingerprint)[:KEY]}", log
    if not source.path.exists():
        raise DataError(
            f"{source.path} is not there", "give a folder that diptych intent ingest wrote, or raw events"
        )
    folder = beside / f"{safe_name(source.path.name.partition('.')[0])}-{_key(source)}"
    return folder, _imported(folder, source)


def _key(source: LogSource) -> str:
    """Of raw events and how they are read: files that have changed are another log."""
    files = sorted(file for file in source.path.rglob("*") if file.is_file()) or [source.path]
    found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return fingerprint(found, source.importer, dict(source.options))[:KEY]


def _generated(folder: Path, options: dict[str, Any]) -> Log:
    """A log of scenes with planted effects, imported; opened when it is there."""
    from diptych.data.logs.log import Log
    from diptych.data.scenes import make_shop_log

    if Log.is_at(folder / _LOG):
        return Log.open(folder / _LOG)
    logger.info(f"{_SCENES}: generating a shop log")
    return _imported(folder, LogSource(make_shop_log(**options), options={"name": _SCENES}))


def _imported(folder: Path, source: LogSource) -> Log:
    """Raw events as a log, opened when they are there: the folder's name stands for what they were read from."""
    from diptych.data.logs.ingest import ingest
    from diptych.data.logs.log import Log

    for key in source.options:
        if key not in _OPTIONS:
            raise UnknownNameError("option of an import", key, _OPTIONS)
    target = folder / _LOG
    with taking_turns(target):
        if not Log.is_at(target):
            logger.info(f"{source.options.get('name', source.path.name)}: importing events")
            ingest(source.path, target, format=source.importer, **source.options)
    return Log.open(target)


_NOT_STATE = ("jobs",)
_NOTHING = "the log has nothing of it, or too little"


@dataclass
class LogRows:
    """The rows of a study of a shop's log: nothing is trained but what predicts, and each is measured once.

    A row of which the log has nothing is left out, and the table says so.
    """

    study: Study
    folder: Path
    setting: SettingName
    rows: list[Row]
    changed: tuple[str, ...]
    workshop: Workshop | None
    left_out: dict[str, str] = field(default_factory=dict)
    nothing: str = _NOTHING

    @classmethod
    def of(cls, study: Study, folder: Path, choices: Choices, rows: list[str] | None) -> LogRows:
        """Open the log and choose setting and options: it is recognised as the paper's by its name."""
        for key in choices.values:
            if key.partition(".")[0] != MEASURE:
                known = ", ".join(f"{MEASURE}.{one}" for one in study.measured_by) or "nothing"
                raise UsageError(
                    f"{key} is about a training, and {study.name} is of a shop's log",
                    f"what can be set: {known}",
                )
        asked = study.resolve(rows)
        given = measuring_of(choices.values, study.measured_by)
        changed = tuple(sorted(choices.values))
        if study.without_data:
            return cls(study, folder, "paper", asked, changed, None)
        name = choices.setting or ("quick" if choices.log is None else None)
        scenes = None if name is None else study.settings[setting_for(study, None, name)].log
        if choices.log is None and scenes is None:
            raise DataError(f"no log given for {study.name}", "--data LOG, or --quick for a generated one")
        kept, log = open_log(folder.resolve().parent / f"{study.paper.key}.logs", choices.log, scenes)
        setting = setting_for(study, log.name, name)
        options = LogOptions.read({**study.settings[setting].measure, **given}, "measure")
        return cls(study, folder, setting, asked, changed, Workshop(kept, log, options))

    def units(self) -> list[Unit]:
        """Return a unit per row."""
        return [Unit(row, 0, place=f"row {n} of {len(self.rows)}") for n, row in enumerate(self.rows, 1)]

    def made(self, unit: Unit) -> Iterator[Made]:
        """Yield the row: it is made while it is measured."""
        if self.workshop is None:
            run: DeclaredRow | LogRow = DeclaredRow(unit.row)
            state: tuple[Any, ...] = ()
        else:
            run = LogRow(unit.row, run_folder(self.study, unit.row, 0, self.folder), self.workshop)
            chosen = tuple(key for key in self.study.measured_by if key not in _NOT_STATE)
            state = (self.workshop.log.fingerprint, self.workshop.options.only(chosen))
        yield Made(Subject(run, None, None), state, changed=self.changed, data=self.hint()[0], costs=True)

    def hint(self) -> tuple[str, str]:
        """Return what was measured, and how to see what there is."""
        data = "what is declared" if self.workshop is None else self.workshop.log.describe()
        return data, "diptych intent describe LOG shows what a log has"


def sampled(features: FeatureTable, sessions: int, seed: int) -> FeatureTable:
    """The sessions of persons drawn at random, until there are ``sessions`` of them or a few more; all where there
    are no more. It is the table's own folder: nothing is written."""
    import numpy as np

    if len(features) <= sessions:
        return features
    persons, inverse = np.unique(features.persons, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(persons))
    counts = np.bincount(inverse, minlength=len(persons))[order]
    chosen = np.zeros(len(persons), dtype=bool)
    chosen[order[: int(np.searchsorted(np.cumsum(counts), sessions)) + 1]] = True
    rows = np.flatnonzero(chosen[inverse])
    about = {**features.about, "fingerprint": fingerprint(features.fingerprint, "sampled", sessions, seed)}
    return replace(
        features,
        about=about,
        view=features.view.take(rows),
        session_ids=features.session_ids[rows],
        persons=features.persons[rows],
        start_us=features.start_us[rows],
        end_us=features.end_us[rows],
        pages_before_identified=features.pages_before_identified[rows],
    )
