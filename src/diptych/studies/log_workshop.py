"""What is made of a log once and serves all studies of a paper: sessions, statistics, features, evaluations.

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
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from diptych.core.context import stop_when
from diptych.core.fingerprint import fingerprint
from diptych.core.locking import taking_turns
from diptych.studies.log_options import LogOptions

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.evaluation import Evaluation
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.sessions import SessionTables
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log

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
        from diptych.studies.intent_sample import sampled

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
            self.tell(f"{features.describe()}: {model}")
        with taking_turns(folder), stop_when(self.should_stop):
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
