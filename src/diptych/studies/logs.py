"""A part of a large table of features: all sessions of persons drawn at random."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from diptych.core.context import track
from diptych.core.errors import DataError, Interrupted, UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.studies.making import cost_of, cpu_seconds
from diptych.studies.results import Entry, Results, claim_folder, entries_of, entry_file
from diptych.studies.rows import DEFAULT, MEASURE, Choices, LogSource, measuring_of, run_folder, setting_for
from diptych.studies.study import Row, SettingName, Study, Subject

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.sessions import SessionTables
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log


_WORDS = {
    "by": ("client", "visitor", "given"),
    "journey": ("pair", "journey"),
    "compat": ("none", "published"),
    "split": ("random", "grouped", "time"),
}
_LEAST = {"ddof": 0, "folds": 2, "sessions": 1, "seed": 0, "jobs": 1}


@dataclass(frozen=True)
class LogOptions:
    """See above."""

    gap: float = 30.0
    by: str = "client"
    ddof: int = 0
    journey: str = "pair"
    compat: str = "none"
    split: str = "grouped"
    folds: int = 10
    steps: tuple[int, ...] | None = None
    sessions: int | None = None
    seed: int = 0
    jobs: int = 1

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LogOptions:
        """From what was set; numbers may come as they are typed."""
        known = dict(given)
        if isinstance(known.get("steps"), list | tuple):
            known["steps"] = tuple(known["steps"])
        elif isinstance(known.get("steps"), int):
            known["steps"] = (known["steps"],)
        return cls(**known)

    def __post_init__(self) -> None:
        for key, words in _WORDS.items():
            if getattr(self, key) not in words:
                raise UnknownNameError(f"measure.{key}", str(getattr(self, key)), words)
        for key, least in _LEAST.items():
            value = getattr(self, key)
            if value is None and key == "sessions":
                continue
            if not _is_whole(value) or value < least:
                raise UsageError(f"measure.{key} is {value!r}", f"give a whole number from {least}")
        if (
            isinstance(self.gap, bool)
            or not isinstance(self.gap, int | float)
            or not 0 < self.gap < float("inf")
        ):
            raise UsageError(f"measure.gap is {self.gap!r}", "give minutes, e.g. --set measure.gap=30")
        if self.steps is not None and (not self.steps or not all(map(_is_whole, self.steps))):
            raise UsageError(
                f"measure.steps is {self.steps!r}", "give numbers, e.g. --set 'measure.steps=[0, 5]'"
            )

    def only(self, keys: tuple[str, ...]) -> dict[str, Any]:
        """Some of them, JSON-able, for fingerprints."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name in keys}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in values.items()}

    def sessions_are(self) -> str:
        """What a session is, in the words of printed numbers."""
        if self.by == "given":
            return "as the log gives them"
        return f"by {self.by}, ended by {self.gap:g} minutes without an event"


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


T = TypeVar("T")

KEY = 8
"""Characters of a fingerprint that tell folders apart."""


@dataclass
class Workshop:
    """A log and what is made of it, each when it is first asked for.

    Attributes:
        folder: where it is kept.
        log: canonical events.
        options: how it is measured.
        should_stop: asked where something takes long.
        tell: gets one line before something is made.
    """

    folder: Path
    log: Log
    options: LogOptions
    should_stop: Callable[[], bool] = lambda: False
    tell: Callable[[str], None] = lambda line: None
    _kept: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def tables(self) -> SessionTables:
        """Its sessions; in the log's own folder, where every command finds them."""
        from diptych.commerce.purchase_intent.sessions import sessionise
        from diptych.commerce.purchase_intent.sessions.schema import SessionOptions

        options = SessionOptions(gap_minutes=self.options.gap, by=self.options.by)  # type: ignore[arg-type]
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
                self.tell(f"{self.log.name}: statistics")
                options = DescribeOptions(ddof=self.options.ddof, journey=self.options.journey)
                describe(self.tables, options=options).save(self.described_in)
        return Description.open(self.described_in)

    @cached_property
    def _all_features(self) -> FeatureTable:
        from diptych.commerce.purchase_intent.features import FeatureOptions, make_features, open_features

        folder = self._place("features", self.tables.fingerprint, "compat")
        with taking_turns(folder):
            if not folder.is_dir():
                self.tell(f"{self.log.name}: features")
                make_features(self.tables, folder=folder, options=FeatureOptions(compat=self.options.compat))
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
        if not (folder / "results.json").is_file():
            self.tell(f"{features.describe()}: {model}")
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
                should_stop=self.should_stop,
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
    """A row that is measured on a log.

    Attributes:
        row: of the study.
        folder: where what it gives is kept.
        workshop: of the log.
    """

    row: Row
    folder: Path
    workshop: Workshop


@dataclass(frozen=True)
class DeclaredRow:
    """A row of a study that needs no log.

    Attributes:
        row: of the study.
    """

    row: Row


_LOG, _SCENES = "log", "scenes"
_OPTIONS = ("name", "zone", "times_in", "memory_limit")
"""What ``--reader-option`` takes; who has more to say imports first: ``diptych intent ingest``."""


def open_log(
    beside: Path,
    source: LogSource | None,
    scenes: Mapping[str, Any] | None,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[Path, Log]:
    """The log, and the folder for what is made of it; events are imported, or generated too, where they are not
    there yet.
    """
    from diptych.data.logs.log import Log

    if source is None:
        options = dict(scenes or {})
        folder = beside / f"scenes-{fingerprint(options)[:KEY]}"
        return folder, _generated(folder, options, tell)
    if source.is_imported:
        log = Log.open(source.path)
        return beside / f"{safe_name(log.name)}-{fingerprint(log.fingerprint)[:KEY]}", log
    if not source.path.exists():
        raise DataError(
            f"{source.path} is not there", "give a folder that diptych intent ingest wrote, or raw events"
        )
    folder = beside / f"{safe_name(source.path.name.partition('.')[0])}-{_key(source)}"
    return folder, _imported(folder, source, tell)


def _key(source: LogSource) -> str:
    """Of raw events and how they are read: files that have changed are another log."""
    files = sorted(file for file in source.path.rglob("*") if file.is_file()) or [source.path]
    found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    return fingerprint(found, source.importer, dict(source.options))[:KEY]


def _generated(folder: Path, options: dict[str, Any], tell: Callable[[str], None]) -> Log:
    """A log of scenes with planted effects, imported; opened when it is there."""
    from diptych.data.logs.log import MARKER, Log
    from diptych.data.scenes import make_shop_log

    if (folder / _LOG / MARKER).is_file():
        return Log.open(folder / _LOG)
    tell(f"{_SCENES}: generating a shop log")
    return _imported(folder, LogSource(make_shop_log(**options), options={"name": _SCENES}), tell)


def _imported(folder: Path, source: LogSource, tell: Callable[[str], None]) -> Log:
    """Raw events as a log, opened when they are there: the folder's name stands for what they were read from."""
    from diptych.data.logs.ingest import ingest
    from diptych.data.logs.log import MARKER, Log

    for key in source.options:
        if key not in _OPTIONS:
            raise UnknownNameError("option of an import", key, _OPTIONS)
    target = folder / _LOG
    with taking_turns(target):
        if not (target / MARKER).is_file():
            tell(f"{source.options.get('name', source.path.name)}: importing events")
            ingest(source.path, target, format=source.importer, **source.options)
    return Log.open(target)


_NOT_STATE = ("jobs",)
_NOTHING = "the log has nothing of it, or too little"


@dataclass(frozen=True)
class _Bench:
    """What rows are measured on.

    Attributes:
        study, folder, setting: as they are run.
        changed: keys that a person set.
        workshop: of the log; None where the study needs none.
    """

    study: Study
    folder: Path
    setting: SettingName
    changed: tuple[str, ...]
    workshop: Workshop | None

    @property
    def data(self) -> str:
        """What is measured, in one line."""
        return "what is declared" if self.workshop is None else self.workshop.log.describe()

    @property
    def key(self) -> str:
        """Of the log and of how it is measured."""
        state: list[Any] = [self.study.measure.about]
        if self.workshop is not None:
            chosen = tuple(key for key in self.study.measured_by if key not in _NOT_STATE)
            state += [self.workshop.log.fingerprint, self.workshop.options.only(chosen)]
        return fingerprint(*state)

    def subject(self, row: Row, target: Path) -> Subject:
        """A row, to be measured."""
        run = DeclaredRow(row) if self.workshop is None else LogRow(row, target, self.workshop)
        return Subject(run, None, None)


def run_log_study(
    study: Study,
    folder: Path | str,
    choices: Choices = DEFAULT,
    *,
    rows: list[str] | None = None,
    command: str = "",
    should_stop: Callable[[], bool] = lambda: False,
    tell: Callable[[str], None] = lambda line: None,
) -> Results:
    """Measure a study's rows on a log; what is there already is used."""
    folder = Path(folder)
    _refuse(study, choices)
    asked = study.resolve(rows)
    bench = _bench(study, folder, choices, should_stop, tell)
    claim_folder(folder, study, bench.setting, command)
    left_out = {}
    for row in track(asked, f"{study.name}: measuring", unit="rows"):
        if not _measured(row, bench):
            left_out[row.name] = _NOTHING
        if should_stop():
            raise Interrupted(
                f"stopped after {row.name} of {study.name}; nothing is lost", "the same command goes on"
            )
    _forget_others(bench)
    results = Results(study.name, tuple(entries_of(study, folder)), left_out)
    if not results.entries:
        raise DataError(
            f"{bench.data}: nothing of {study.name} can be measured ({study.asks})",
            "diptych intent describe LOG shows what a log has",
        )
    results.save(folder / "results.json")
    return results


def _refuse(study: Study, choices: Choices) -> None:
    """See that nothing is chosen that has no meaning for a log."""
    for flag, value in (
        ("--targets", choices.targets),
        ("--regions", choices.regions),
        ("--positives", choices.positives),
    ):
        if value is not None:
            raise UsageError(f"{flag} {value}: {study.name} is of a shop's log", f"leave {flag} out")
    for key in choices.values:
        if key.partition(".")[0] != MEASURE:
            known = ", ".join(f"{MEASURE}.{one}" for one in study.measured_by) or "nothing"
            raise UsageError(
                f"{key} is about a training, and {study.name} is of a shop's log", f"what can be set: {known}"
            )


def _bench(
    study: Study,
    folder: Path,
    choices: Choices,
    should_stop: Callable[[], bool],
    tell: Callable[[str], None],
) -> _Bench:
    """Setting, log and options: a log is recognised as the paper's by its name, which an import may have to tell."""
    given = measuring_of(choices.values, study.measured_by)
    changed = tuple(sorted(choices.values))
    if study.without_data:
        return _Bench(study, folder, "paper", changed, None)
    asked = choices.setting or ("quick" if choices.log is None else None)
    scenes = None if asked is None else study.settings[setting_for(study, None, asked)].log
    if choices.log is None and scenes is None:
        raise DataError(f"no log given for {study.name}", "--data LOG, or --quick for a generated one")
    kept, log = open_log(folder.resolve().parent / f"{study.paper.key}.logs", choices.log, scenes, tell)
    setting = setting_for(study, log.name, asked)
    options = LogOptions.of({**study.settings[setting].measure, **given})
    return _Bench(study, folder, setting, changed, Workshop(kept, log, options, should_stop, tell))


def _measured(row: Row, bench: _Bench) -> bool:
    """Whether a row is measured, now or before."""
    study = bench.study
    target = run_folder(study, row, 0, bench.folder)
    file = entry_file(target, study.name)
    if file.is_file():
        there = Entry.open(file)
        if there.key == bench.key and _log_runner_is_whole(there, target):
            return True
    with cost_of(target):
        measurements = study.measure(bench.subject(row, target))
    if not measurements:
        file.unlink(missing_ok=True)  # of an earlier call, on another log
        return False
    Entry(
        study=study.name,
        row=row.name,
        seed=0,
        setting=bench.setting,
        measurements=measurements,
        key=bench.key,
        run=str(target),
        data=bench.data,
        epochs=(0, 0),
        cpu_seconds=cpu_seconds(target),
        changed=bench.changed,
    ).save(file)
    return True


def _forget_others(bench: _Bench) -> None:
    """Let go of rows of earlier calls that are of another log, or were measured otherwise: no table can hold both."""
    for entry in list(entries_of(bench.study, bench.folder)):
        if entry.key != bench.key:
            entry_file(Path(entry.run), bench.study.name).unlink(missing_ok=True)


def _log_runner_is_whole(entry: Entry, target: Path) -> bool:
    """Whether what an entry was measured from is still there."""
    return all(not one.kept or (target / one.kept).is_dir() for one in entry.measurements)


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
