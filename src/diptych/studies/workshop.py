"""A shop's log and what is made of it, once for all studies of a paper.

::

    studies/
      intent.table-6.2/        a study's folder
      intent.logs/             beside it
        NAME-KEY/              one log; KEY tells other logs, and other raw files, apart
          log/                 canonical events, where raw ones were given or generated
          description-KEY/     statistics
          features-KEY/
          MODEL-KEY/           an evaluation

What is there is opened; what is missing is made by one process at a time.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, PositiveInt

from diptych.commerce.purchase_intent.options import Compat, DescribeOptions, SessionKey, SessionOptions
from diptych.core.errors import DataError, UnknownNameError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.core.options import Options
from diptych.studies.plan import LogData
from diptych.studies.sources import logger

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.sessions import SessionTables
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log

T = TypeVar("T")

FOREST = "random-forest"
"""The model whose importances there are."""

_KEY = 8  # characters of a fingerprint that tell folders apart
_IMPORTS = ("name", "zone", "times_in", "memory_limit")  # who has more to say: diptych intent ingest


def _as_steps(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else (given,) if isinstance(given, int) else given


def _as_pair(given: Any) -> Any:
    return tuple(given) if isinstance(given, list) else given


Sessions = Annotated[PositiveInt | tuple[PositiveInt, PositiveInt], BeforeValidator(_as_pair)]


class LogOptions(Options):
    """How a log is measured (``--set measure.KEY=VALUE``)."""

    model_config = ConfigDict(strict=True)

    gap: int | float = Field(30.0, gt=0, allow_inf_nan=False)  # idle minutes after which a session has ended
    by: SessionKey = "client"  # whose events make a session
    ddof: int = Field(0, ge=0, le=1)  # of standardised rates: divide by n − ddof
    # transitions into a purchase session, or all since the one before
    journey: Literal["pair", "journey"] = "pair"
    compat: Compat = "none"  # published: populations of a step as the thesis describes them
    split: Literal["random", "grouped", "time"] = "grouped"  # training and test sessions
    folds: int = Field(10, ge=2)
    # pages that are open, e.g. [0, 1, 5, 10]; all when not given
    steps: Annotated[tuple[int, ...] | None, BeforeValidator(_as_steps)] = Field(None, min_length=1)
    # predicted on, of persons drawn at random: at most so many anonymous and identified ones, or a number of both
    sessions: Sessions | None = None
    seed: int = Field(0, ge=0)  # of draws, splits and models
    jobs: int = Field(1, ge=1)

    def only(self, *keys: str) -> dict[str, Any]:
        """Return some of them, JSON-able, for fingerprints."""
        return self.model_dump(mode="json", include=set(keys))

    @property
    def protocol(self) -> str:
        """What a session is, in the words of printed numbers."""
        ended = f"by {self.by}, ended by {self.gap:g} minutes without an event"
        return "as the log gives them" if self.by == "given" else ended


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
        from diptych.commerce.purchase_intent.sessions import sessionise

        options = {"gap_minutes": self.options.gap, "by": self.options.by}
        return sessionise(self.log, SessionOptions.read(options, "sessions"))

    @cached_property
    def described_in(self) -> Path:
        """Where its statistics are."""
        from diptych.commerce.purchase_intent.statistics import describe

        options = self.options.only("ddof", "journey")
        return self._made(
            "description",
            options,
            lambda folder: describe(self.tables, options=DescribeOptions(**options)).save(folder),
        )

    @cached_property
    def description(self) -> Description:
        """All statistics."""
        from diptych.commerce.purchase_intent.statistics import Description

        return Description.open(self.described_in)

    @cached_property
    def features(self) -> FeatureTable:
        """What is known of sessions at every step."""
        from diptych.commerce.purchase_intent.features import FeatureOptions, make_features, open_features

        options = self.options.only("compat")
        return open_features(
            self._made(
                "features",
                options,
                lambda folder: make_features(self.tables, folder=folder, options=FeatureOptions(**options)),
            )
        )

    @cached_property
    def sample(self) -> FeatureTable:
        """The features of as many sessions as are predicted on."""
        wanted = self.options.sessions
        return self.features if wanted is None else sampled(self.features, wanted, self.options.seed)

    def evaluation(self, model: str) -> Evaluation:
        """Return one model on all steps, settings and feature sets; what was fitted before is not fitted again."""
        from diptych.commerce.purchase_intent.evaluation import evaluate

        options = self.options
        how = options.only("split", "folds", "steps", "seed")
        folder = self.folder / f"{model}-{fingerprint(self.sample.fingerprint, how)[:_KEY]}"
        if not (folder / "results.npz").is_file():
            logger.info(f"{self.sample.describe()}: {model}")
        how["folds"] = 1 if options.split == "time" else options.folds
        fixed: dict[str, Any] = {"preset": "paper", "inner": False, "importance": model == FOREST}
        with taking_turns(folder):
            return evaluate(self.sample, folder, models=[model], jobs=options.jobs, **how, **fixed)

    def once(self, what: str, make: Callable[[], T]) -> T:
        """Return what several rows are measured from, made for the first of them."""
        if what not in self._kept:
            self._kept[what] = make()
        found: T = self._kept[what]
        return found

    def evaluated_by(self, model: str) -> tuple[str, ...]:
        """Return the command that evaluates a model by hand; none where a sample was taken."""
        if self.sample is not self.features:
            return ()
        options = self.options
        how = ["--model", model, "--split", options.split, "--seed", options.seed, "--no-inner"]
        how += [] if options.split == "time" else ["--folds", options.folds]
        how += [part for step in options.steps or () for part in ("--step", step)]
        return (command("evaluate", self.features.folder, *how, "--out", "evaluation"),)

    def _made(self, name: str, options: Mapping[str, Any], make: Callable[[Path], object]) -> Path:
        """Return the folder of what is made of sessions."""
        folder = self.folder / f"{name}-{fingerprint(self.tables.fingerprint, options)[:_KEY]}"
        with taking_turns(folder):
            if not folder.is_dir():
                logger.info(f"{self.log.name}: {name}")
                make(folder)
        return folder


def command(verb: str, *arguments: object) -> str:
    """Return what a user types to make the like by hand."""
    words = shlex.join(["diptych", "intent", verb, *map(str, arguments)])
    return words.replace("{", "{{").replace("}", "}}")


def sampled(features: FeatureTable, sessions: int | tuple[int, int], seed: int) -> FeatureTable:
    """Return the sessions of persons drawn at random: until there are ``sessions`` of them or a few more, or so many
    of each setting at the first step."""
    import numpy as np

    if isinstance(sessions, int):
        asked = [(np.arange(len(features)), sessions)]
    else:
        first = features.steps[0]
        populations = [features.population(setting, first) for setting in features.settings]
        asked = list(zip(populations, sessions, strict=True))
    if all(len(rows) <= most for rows, most in asked):
        return features
    persons, inverse = np.unique(features.persons, return_inverse=True)
    place = np.argsort(np.random.default_rng(seed).permutation(len(persons)))[inverse]
    if isinstance(sessions, int):
        rows = np.flatnonzero(place <= np.sort(place)[sessions - 1])
    else:
        drawn = (rows[np.argsort(place[rows], kind="stable")][:most] for rows, most in asked)
        rows = np.sort(np.concatenate(list(drawn)))
    columns = ("session_ids", "persons", "start_us", "end_us", "pages_before_identified")
    taken: dict[str, Any] = {name: getattr(features, name)[rows] for name in columns}
    mark = fingerprint(features.fingerprint, "sampled", sessions, seed)
    about = {**features.about, "fingerprint": mark}
    return replace(features, about=about, view=features.view.take(rows), **taken)


def open_log(beside: Path, given: LogData | None, generated: Mapping[str, Any]) -> tuple[Path, Log]:
    """Return the folder for what is made of a log, and the log: raw events are imported, or generated, once."""
    from diptych.data.logs.log import Log
    from diptych.data.scenes import make_shop_log

    if given is None:
        folder = beside / f"scenes-{fingerprint(dict(generated))[:_KEY]}"
        if not Log.is_at(folder / "log"):
            logger.info("scenes: generating a shop log")
            given = LogData(make_shop_log(**generated), options={"name": "scenes"})
    elif Log.is_at(given.path):
        log = Log.open(given.path)
        return beside / f"{safe_name(log.name)}-{fingerprint(log.fingerprint)[:_KEY]}", log
    elif not given.path.exists():
        fix = "give a folder that diptych intent ingest wrote, or raw events"
        raise DataError(f"{given.path} is not there", fix)
    else:
        # Files that have changed, or are read otherwise, are another log.
        files = sorted(file for file in given.path.rglob("*") if file.is_file()) or [given.path]
        found = [(str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
        key = fingerprint(found, given.importer, dict(given.options))[:_KEY]
        folder = beside / f"{safe_name(given.path.name.partition('.')[0])}-{key}"
    if given is not None:
        _import(given, folder / "log")
    return folder, Log.open(folder / "log")


def _import(given: LogData, target: Path) -> None:
    from diptych.data.logs.ingest import ingest
    from diptych.data.logs.log import Log

    for key in given.options:
        if key not in _IMPORTS:
            raise UnknownNameError("option of an import", key, _IMPORTS)
    with taking_turns(target):
        if not Log.is_at(target):
            logger.info(f"{given.options.get('name', given.path.name)}: importing events")
            ingest(given.path, target, format=given.importer, **given.options)
