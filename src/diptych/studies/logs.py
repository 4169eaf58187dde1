"""Rows of a shop's log, and what is made of the log once, in ``PAPER.logs/NAME-KEY/`` next to the studies of a paper.

KEY tells other logs, and other raw files, apart. ``log/`` has canonical events, where raw ones were given or generated;
``description-KEY/`` statistics, ``features-KEY/`` features, ``MODEL-KEY/`` an evaluation.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, PositiveInt

from diptych.commerce.logs import Log, ingest
from diptych.commerce.logs.ingest import ImportOptions
from diptych.commerce.logs.log import UNKNOWN
from diptych.commerce.purchase_intent import describe, evaluate, make_features, open_features, sessionise
from diptych.commerce.purchase_intent import options as intent
from diptych.commerce.purchase_intent.evaluation import Evaluation
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.features.make import (
    SESSION_TABLES,
    is_table,
    known_visitors,
    make_whole_features,
    recognise_session_table,
    sessions_of_table,
)
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.commerce.purchase_intent.shown import DisclosureControl
from diptych.commerce.purchase_intent.statistics import LACKS, ORDER, STATISTICS, Description
from diptych.commerce.scenes.shop_log import make_shop_log
from diptych.core.errors import DataError
from diptych.core.files import atomic_folder
from diptych.core.fingerprint import fingerprint_file
from diptych.core.locking import cached, taking_turns
from diptych.core.options import Options
from diptych.data.stored import file_state
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.results import Measured, Measurement
from diptych.studies.runner import setting_for
from diptych.studies.sources import Captions, Subject, keyed, logger
from diptych.studies.study import Row, Study

T = TypeVar("T")

FOREST = "random-forest"  # the model whose importances there are
_LISTED = BeforeValidator(lambda given: [given] if isinstance(given, int) else given)
_NO_CHANNEL = "no channel is known"
_MISLEADING = {"zone", "days"}  # without them what is counted would be of something else


class LogOptions(intent.DescribeOptions, intent.FeatureOptions, intent.EvaluateOptions):
    """Options of measuring a log (``--set measure.KEY=VALUE``) that a study names; defaults are commerce's own."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    preset: Literal["paper"] = "paper"
    inner: bool = False
    gap: int | float = Field(30.0, gt=0, allow_inf_nan=False)  # idle minutes after which a session has ended
    by: intent.SessionKey = "client"
    split: Literal["random", "grouped", "time"] = "grouped"
    folds: int = Field(10, ge=2)
    # pages that are open, e.g. [0, 1, 5, 10]; all when not given
    steps: Annotated[list[int] | None, _LISTED] = Field(None, min_length=1)
    # to predict on, of persons drawn at random: so many of all, or anonymous and identified ones; all when not given
    sessions: PositiveInt | Annotated[tuple[PositiveInt, PositiveInt], Field(strict=False)] | None = None

    def only(self, *keys: str) -> dict[str, Any]:
        return self.model_dump(mode="json", include=set(keys))


@dataclass
class ShopLog:
    """A log and what is made of it, each when it is first needed; what is there is opened."""

    folder: Path
    log: Log
    options: LogOptions
    refused: str = field(default="", init=False)  # why no model could be evaluated
    _evaluations: dict[Path, Evaluation] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return str(self.log.about["name"])

    @property
    def stand_ins(self) -> Mapping[str, Sequence[str]]:
        return {}

    @cached_property
    def lacks(self) -> set[str]:
        """Return what is not there, of :data:`LACKS`."""
        about, counts = self.log.about, self.sessions.about["counts"]
        lacks = {
            "devices": {*about.get("devices", {"?": 1})} <= {UNKNOWN},
            "channels": _NO_CHANNEL in about.get("notes", ()),
            "visitors": not about.get("visitors", 1),
            "anonymous": counts["identified"] == counts["sessions"],
            "queries": "query" not in about.get("by_action", {"query": 1}),
            "purchases": not about.get("purchases", 1),
            "others": about.get("purchases") == about.get("events", 0),
            "zone": not self.log.hours_known,
            "days": len(about.get("events_by_day") or range(7)) < 7,
        }
        return {name for name, is_so in lacks.items() if is_so}

    def limit(self, statistic: str, row: str) -> str:
        """Return why a row of a statistic, or of what is predicted, has no number, or less than the thesis's."""
        needs = STATISTICS.get(statistic).needs if statistic in ORDER else {}
        needed = [one for pattern, names in needs.items() if fnmatch(row, pattern) for one in names]
        return "; ".join(LACKS[one] for one in needed if one in self.lacks)

    def cannot(self, statistic: str) -> bool:
        return bool(_MISLEADING & self.lacks & {*STATISTICS.get(statistic).needs.get("*", ())})

    @property
    def protocol(self) -> str:
        """Return what a session is, and what had to be assumed of its times, in the words of printed numbers."""
        by, gap, log = self.options.by, self.options.gap, self.log
        sessions = f"by {by}, ended by {gap:g} minutes without an event"
        sessions = "as the log gives them" if by == "given" else sessions
        return sessions + ("" if log.hours_known else f"; days of {log.zone}: the log's zone is not known")

    @cached_property
    def sessions(self) -> SessionTables:
        """Its sessions; in the log's own folder, where every command finds them."""
        return sessionise(self.log, intent.SessionOptions(gap_minutes=self.options.gap, by=self.options.by))

    @cached_property
    def description(self) -> Description:
        how = intent.DescribeOptions(**self.options.only("ddof", "journey"))

        def make(folder: Path) -> None:
            describe(self.sessions, options=how).save(folder)

        return self._made("description", how, Description.open, make)

    @cached_property
    def features(self) -> FeatureTable:
        how = intent.FeatureOptions(**self.options.only("compat"))
        make = partial(make_features, self.sessions, options=how)
        return self._made("features", how, open_features, lambda folder: make(folder=folder))

    def sample(self, setting: str = "") -> FeatureTable:
        return self.features.sample(self.options.sessions, self.options.seed)

    def evaluating(self, model: str) -> intent.EvaluateOptions:
        how = self.options.only(*intent.EvaluateOptions.model_fields)
        how |= {"models": [model], "importance": model == FOREST}
        how |= {"folds": 1} if self.options.split == "time" else {}
        return intent.EvaluateOptions(**how)

    def evaluation(self, model: str, setting: str = "") -> Evaluation | None:
        """Return one model on all steps, settings and feature sets, fitted once; None where there is too little."""
        try:
            how, sample = self.options.only("split", "folds", "steps", "seed"), self.sample(setting)
            folder = keyed(self.folder, model, sample.fingerprint, how)
            if folder not in self._evaluations:
                if not Evaluation.is_at(folder):
                    logger.info(f"{sample.describe()}: {model}")
                with taking_turns(folder):
                    self._evaluations[folder] = evaluate(sample, folder, **dict(self.evaluating(model)))
            return self._evaluations[folder]
        except DataError as error:
            self.refused = error.message
            return None

    def _made(self, name: str, how: Options, read: Callable[[Path], T], make: Callable[[Path], object]) -> T:
        def write(folder: Path) -> None:
            logger.info(f"{self.name}: {name}")
            make(folder)

        given = how.model_dump(mode="json", exclude_unset=True)
        return cached(keyed(self.folder, name, self.sessions.fingerprint, given), read, write)


@dataclass
class ShopSessions(ShopLog):
    """A table of whole sessions, and what is made of it; returning visitors are the identified ones."""

    log: FeatureTable  # type: ignore[assignment]
    protocol = "rows of a table; returning visitors count as known"

    def limit(self, statistic: str, row: str) -> str:
        form = SESSION_TABLES[self.name]
        return str((form.cannot | form.limits).get(statistic, ""))

    def cannot(self, statistic: str) -> bool:
        return statistic in SESSION_TABLES[self.name].cannot

    @property
    def stand_ins(self) -> Mapping[str, Sequence[str]]:
        stand_ins: dict[str, list[str]] = SESSION_TABLES[self.name].stand_ins
        return stand_ins

    @cached_property
    def sessions(self) -> SessionTables:
        def make(folder: Path) -> None:
            with atomic_folder(folder, SessionTables.marker()) as inside:
                sessions_of_table(self.log, inside)

        return cached(keyed(self.folder, "sessions", self.log.fingerprint), SessionTables.open, make)

    @property
    def features(self) -> FeatureTable:
        return self.log

    def sample(self, setting: str = "") -> FeatureTable:
        known = known_visitors(self.log)
        return self.log.take(known if setting == "identified" else ~known, "part", setting, name=setting)


def open_shop(
    parent: Path, given: Mapping[str, Any] | None, generated: Mapping[str, Any], how: LogOptions
) -> ShopLog:
    """Return a log, or a table of whole sessions; raw events are imported, or generated, once."""
    path, reader = ((given or {}).get(key) for key in ("path", "reader"))
    options: dict[str, Any] = {"name": "scenes"} if path is None else dict((given or {}).get("options") or {})

    def make(target: Path) -> None:
        if path is None:
            logger.info("scenes: generating a shop log")
        raw = make_shop_log(**generated) if path is None else path
        logger.info(f"{options.get('name', raw.name)}: importing events")
        ingest(raw, target, format=reader, **options)

    if path is None:
        target = keyed(parent, "scenes", dict(generated))
    elif Log.is_at(path := Path(path)):
        log = Log.open(path)
        return ShopLog(keyed(parent, log.name, log.fingerprint), log, how)
    elif not path.exists():
        raise DataError(f"{path} is not there", "give a log that diptych intent ingest wrote, or raw events")
    elif path.is_file() and is_table(path) and recognise_session_table(path)[0]:
        target = keyed(parent, path.name.partition(".")[0], fingerprint_file(path))
        write = partial(make_whole_features, path)
        table = cached(target / "features", open_features, lambda inside: write(folder=inside))
        return ShopSessions(target, table, how)
    else:
        options = ImportOptions.read(options, "an import").model_dump(exclude_unset=True)
        # Files that have changed, or are read otherwise, are another log.
        files = sorted(file for file in path.rglob("*") if file.is_file()) or [path]
        found = [file_state(file) for file in files]
        target = keyed(parent, path.name.partition(".")[0], found, reader, options)
    return ShopLog(target, cached(target / "log", Log.open, make), how)


@dataclass(frozen=True)
class LogRow:
    """A row that is measured on a log."""

    name: str
    folder: Path  # where it is kept
    shop: ShopLog

    def measured(
        self, values: Mapping[str, float], of: Description | Evaluation, command: str, **on: Any
    ) -> tuple[Measurement, ...]:
        """Return numbers with what they were read from, which can be moved together with the row; nothing of none."""
        commands = (command.replace("{", "{{").replace("}", "}}"),) if command else ()
        parent = os.path.relpath(of.folder.resolve(), self.folder.resolve())
        measured = Measurement(values, Measured(self.shop.name, **on), of.line(), commands, kept=parent)
        return (measured,) if values else ()


class LogRows(Captions):
    """Rows of a log, each measured once; of a study of nothing, rows of what this package declares."""

    shop: ShopLog | None = None
    study: Study | None = None
    row = ""

    @property
    def nothing(self) -> str:  # type: ignore[override]
        return self.limit or "the log has nothing of it, or too little"

    @property
    def limit(self) -> str:  # type: ignore[override]
        if self.study is None or self.shop is None:
            return ""
        measure = self.study.measure
        return self.shop.refused or self.shop.limit(measure.get("statistic", measure["kind"]), self.row)

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Open the log and choose the setting: the paper's log is recognised by its name."""
        study, given, chosen = plan.study, plan.choices.data, plan.measuring()
        self.check(plan, rows[0])
        LogOptions.read(chosen, MEASURE)  # before a long import
        self.study = study
        if study.of == "nothing":
            plan.name = "paper"
            return {}
        generated = plan.setting.generated
        if given is None and generated is None:
            raise DataError(f"no log given for {study.name}", "--data LOG, or --quick for a generated one")
        parent = plan.folder.resolve().parent / f"{study.paper.key}.logs"
        shop = open_shop(parent, given, generated or {}, LogOptions())
        if given is not None:
            plan.name = setting_for(study, shop.name, plan.choices.setting)
        self.shop = replace(shop, options=LogOptions.read({**plan.setting.measure, **chosen}, MEASURE))
        return {}

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        given = {**plan.setting.measure, **plan.choices.below(MEASURE)}
        return {MEASURE: LogOptions.read(given, MEASURE).model_dump(mode="json")}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        shop, subject = self.shop, Subject(row, None, plan.features, data=self.hint()[0], costs=True)
        if shop is None:
            return replace(subject, again=True)
        self.row = row.name
        how = shop.options.only(*(key for key in plan.study.measured_by if key != "jobs"))
        control = DisclosureControl.current().model_dump()
        run = LogRow(row.name, plan.target(row, seed), shop)
        return replace(subject, run=run, state=(shop.log.fingerprint, how, control))

    def hint(self) -> tuple[str, str]:
        data = "what is declared" if self.shop is None else self.shop.log.describe()
        return data, "diptych intent describe LOG shows what a log has"
