"""``diptych intent``: from raw shop logs to a calibrated, explained probability of a purchase."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TextIO

from pydantic import BeforeValidator, model_validator

from diptych.cli.console import next_step, show, stop_on_signal
from diptych.cli.sources import OutOption, TargetOption
from diptych.commerce.purchase_intent.auditing import LeakAudit
from diptych.commerce.purchase_intent.auditing import audit as run
from diptych.commerce.purchase_intent.auditing.checks import FOLDER
from diptych.commerce.purchase_intent.evaluation import evaluate as evaluate_models
from diptych.commerce.purchase_intent.evaluation.shown import evaluation_tables, left_out_lines
from diptych.commerce.purchase_intent.features import make_features, open_features
from diptych.commerce.purchase_intent.features.export import STEPS_FILE, export_steps
from diptych.commerce.purchase_intent.features.whole import is_table, make_whole_features, opened_table
from diptych.commerce.purchase_intent.options import (
    AuditOptions,
    DescribeOptions,
    EngineOptions,
    FeatureOptions,
    SessionOptions,
    TrainOptions,
)
from diptych.commerce.purchase_intent.scoring import Scorer
from diptych.commerce.purchase_intent.scoring import train as fit
from diptych.commerce.purchase_intent.scoring.shown import (
    EXAMPLE,
    measured_table,
    reasons_table,
    scorer_table,
)
from diptych.commerce.purchase_intent.scoring.table_scores import (
    SCORES,
    evaluate_scorer,
    score_events,
    score_sessions,
    write_table_scores,
)
from diptych.commerce.purchase_intent.sessions import sessionise
from diptych.commerce.purchase_intent.shown import Discretion, showing
from diptych.commerce.purchase_intent.statistics import Description, choose_statistics
from diptych.commerce.purchase_intent.statistics import describe as describe_sessions
from diptych.commerce.purchase_intent.statistics.shown import description_tables
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_path, check_replaceable, write_text
from diptych.core.options import Options, parameter
from diptych.core.reading import read_json
from diptych.data.logs import ColumnMapping, Log
from diptych.data.logs import ingest as read
from diptych.data.logs.rules import Cleaning
from diptych.metrics.bootstrap import Bootstrap
from diptych.report.intent import PAGE, description_page, evaluation_page, page_of

_INTENT = "diptych.commerce.purchase_intent"
_DIPTYCH_INTENT = ("diptych", "intent")


def _separated(given: list[str] | None) -> list[str] | None:
    """Return names of an option that is repeated or has commas; None when it was not given."""
    return given and [name for text in given for name in text.split(",") if name]


Names = Annotated[list[str] | None, BeforeValidator(_separated)]


class LogArgument(Options):
    """Which log."""

    log: Path = parameter(..., "A log that diptych intent ingest wrote.", argument=True, metavar="LOG")


class FeaturesArgument(Options):
    """Which features."""

    features: Path = parameter(
        ..., "A folder that diptych intent features wrote.", argument=True, metavar="FEATURES"
    )


class IngestOptions(TargetOption):
    """What the files are, and how they are read."""

    sources: list[Path] = parameter(
        ...,
        "Files of a raw log, or a folder of them: CSV, TSV, JSON lines (also gzipped) or Parquet.",
        argument=True,
        metavar="SOURCE",
    )
    format: str | None = parameter(
        None,
        "shop-log, yoochoose, diginetica, rees46, sigir or columns.",
        default="recognised",
        names="diptych.data.logs:LOG_FORMATS",
    )
    column: list[str] = parameter(
        [],
        "TARGET=COLUMN of your own log, e.g. time=ts, client=cookie_id, visitor, session, device, channel, "
        "country, action, page_type, query, item, price, purchase, address, agent. Repeatable.",
    )
    mapping: Path | None = parameter(
        None, "TOML file with [columns], [values.action], [constants], time_format, missing."
    )
    time_format: str | None = parameter(
        None, "Of your own log: auto, iso, unix, unix-ms, unix-us, or of strptime, e.g. '%d/%m/%Y %H:%M'."
    )
    times_in: str = parameter("UTC", "Zone of times that name none.")
    zone: str | None = parameter(
        None, "Zone of local days and hours, e.g. Europe/Amsterdam.", default="the log's, or UTC"
    )
    name: str | None = parameter(None, "What reports call the log.", default="as its source")
    buckets: int | None = parameter(None, "Files of events.", ge=1, default="by the number of rows")
    memory_limit: str | None = parameter(None, "E.g. 1GB.", default="2GB")
    threads: int | None = parameter(None, "Of the engine.", ge=1, default="all processors")


def ingest(options: IngestOptions, cleaning: Cleaning) -> None:
    """Import a raw shop log: one table of events, and a report of every row that was dropped.

    Rules drop rows in a fixed order; every row is counted under the first that drops it.

    Examples:
        diptych intent ingest visits --out log --country NL,BE,DE
        diptych intent ingest clicks.dat buys.dat --out log --zone Europe/Amsterdam
        diptych intent ingest events.csv --column client=id --column time=ts -o log
    """
    out, mapping = options.out, ColumnMapping.of(options.column, options.mapping, options.time_format)
    given = options.model_dump(exclude={"sources", "out", "column", "mapping", "time_format"})
    log = read(options.sources, out, mapping=mapping, cleaning=cleaning, **given)
    dropped = log.dropped(everything=False)
    show(*([dropped] if dropped.rows else []), *log.lines(), f"written to {out}")
    next_step([*_DIPTYCH_INTENT, "describe", out, "--out", out.with_name("description")])


class DescriptionOptions(LogArgument, TargetOption):
    """What is described."""

    statistic: list[str] = parameter(
        [], "A statistic; all by default. Repeatable.", names=f"{_INTENT}.statistics:STATISTICS"
    )


def describe(
    wanted: DescriptionOptions,
    sessions: SessionOptions,
    options: DescribeOptions,
    engine: EngineOptions,
    discretion: Discretion,
) -> None:
    """Make sessions of a log and describe them: lengths, times, channels, devices, switches, queries.

    Everything is by class: sessions with a purchase, and others. The sessions are kept with the log, for whatever
    comes next. What the CSV files hold is never hidden.

    Examples:
        diptych intent describe log --out description
        diptych intent describe log --by visitor --memory-limit 2GB --out visitors
        diptych intent describe log --statistic channels --out channels
    """
    log, out = Log.open(wanted.log), wanted.out
    names = [one.name for one in choose_statistics(wanted.statistic or None)]
    check_replaceable(out, Description.marker())
    log.check_outside(out)
    with engine.open() as runs:
        tables = sessionise(log, sessions, engine=runs)
        description = describe_sessions(tables, engine=runs, options=options, names=names)
    with showing(discretion):
        page = description_page(description, log)
        description.save(out, also=lambda inside: page.save(inside / PAGE))
        show(*description_tables(description))
    show(*discretion.notes(description.about["notes"]), description.line())
    show(f"written to {out}; sessions are kept in {tables.folder}; the page is {out / PAGE}")
    next_step([*_DIPTYCH_INTENT, "features", wanted.log, "--out", out.with_name("features")])


class TableOptions(TargetOption):
    """Of what features are made, and what is written."""

    source: Path = parameter(
        ...,
        "A log that diptych intent ingest wrote; or a CSV of whole sessions, such as UCI's shoppers.",
        argument=True,
        metavar="LOG",
    )
    export: bool = parameter(False, "Also write steps.parquet: one row per session and step.")
    keep_leaking: bool = parameter(
        False, "Of whole sessions: keep columns that are computed from the outcome."
    )

    @model_validator(mode="after")
    def _of_steps_or_not(self) -> Self:
        if self.keep_leaking and not self.source.is_file():
            raise UsageError("--keep-leaking is for tables of whole sessions", "leave it out")
        return self


def features(
    wanted: TableOptions, options: FeatureOptions, sessions: SessionOptions, engine: EngineOptions
) -> None:
    """Make the features of thesis Table 6.7: what is known before any page and after each of ten.

    Only sessions count that have pages for the last step and two more; at each step only those whose purchase, if
    any, is at least two pages away.

    Examples:
        diptych intent features log --out features
        diptych intent features log --compat published --out features-published
        diptych intent features online_shoppers_intention.csv --out features-uci
    """
    source, out = wanted.source, wanted.out
    if source.is_file():
        if options.compat != "none" or options.also or wanted.export:
            raise UsageError(
                f"{source} is a table of whole sessions, without steps",
                "leave --compat, --feature and --export out",
            )
        table = make_whole_features(source, folder=out, keep_leaking=wanted.keep_leaking)
    else:
        log = Log.open(source)
        with engine.open() as runs:
            tables = sessionise(log, sessions, engine=runs)
            table = make_features(tables, options=options, engine=runs, folder=out)
        if wanted.export:
            export_steps(table, out / STEPS_FILE)
    show(*table.lines(), *table.tables(), f"written to {out}")
    if table.labels.any():
        next_step([*_DIPTYCH_INTENT, "evaluate", out, "--out", out.with_name(f"{out.name}-evaluation")])
    else:
        show("no session ends in a purchase: there is nothing to be learned from them")
        next_step("import more of the log: diptych intent ingest --help")


class EvaluateOptions(FeaturesArgument, TargetOption):
    """What is evaluated, and how."""

    preset: Literal["fast", "paper"] = parameter(
        "fast", "fast: three models, steps 0, 1, 5, 10, 5 folds; paper: six models, 11 steps, 10 folds."
    )
    models: Names = parameter(
        None,
        "A model instead of the preset's, e.g. svm. Repeatable, or with commas.",
        "--model",
        names=f"{_INTENT}.models:MODELS",
    )
    sets: Names = parameter(None, "Feature set: baseline, extended. Repeatable.", "--set")
    settings: Names = parameter(None, "anonymous, identified. Repeatable.", "--setting")
    steps: list[int] | None = parameter(None, "Pages that are open. Repeatable.", "--step")
    split: str = parameter(
        "random",
        "random: sessions; grouped: all sessions of a person together; time: train before, test after.",
        names=f"{_INTENT}.splits:SPLITS",
    )
    folds: int | None = parameter(None, "The preset's, or 1 of a split by time.", ge=1, metavar="N")
    balanced: bool = parameter(True, "Let classes weigh the same where a model can.", "--balance")
    inner: bool = parameter(
        True, "Fit thresholds and probabilities inside the training part; twice the time."
    )
    importance: bool = parameter(True, "Compute the importance of features.")
    samples: int = parameter(1000, "Bootstrap resamples of persons for 95 % intervals; 0 for none.", ge=0)
    seed: int = parameter(0, "Of folds, models and permutations.", ge=0)
    jobs: int = parameter(1, "Processes; the numbers do not depend on it.", "--jobs", "-j", ge=1)
    scorer: Path | None = parameter(
        None, "Measure a trained scorer on these sessions instead; nothing is fitted."
    )

    @model_validator(mode="after")
    def _one_or_the_other(self) -> Self:
        if self.scorer is not None and (self.models or self.sets or self.folds):
            raise UsageError("a scorer is measured as it is", "leave out --model, --set and --folds")
        return self


def evaluate(options: EvaluateOptions) -> None:
    """Evaluate models of purchase intent on every step of a session, with intervals and calibration.

    Features are fitted on each fold's training part alone. Ctrl-C stops after the model that is being fitted; the
    same command resumes, after kill -9 too.

    Examples:
        diptych intent evaluate features --out evaluation
        diptych intent evaluate features --out paper --preset paper --jobs 4
        diptych intent evaluate features --out later --split time --step 0 --step 5
        diptych intent evaluate later-features --scorer scorer --out held-out
    """
    out, page = options.out, options.out / PAGE
    same: dict[str, Any] = {
        **options.model_dump(include={"settings", "steps"}),
        "bootstrap": Bootstrap(options.samples, seed=options.seed),
        "page": lambda finished: evaluation_page(finished).save(page),
    }
    with stop_on_signal():
        table = open_features(options.features)
        if options.scorer is not None:
            found = evaluate_scorer(Scorer.open(options.scorer), table, out, **same)
        else:
            given = options.model_dump(exclude={"features", "out", "samples", "scorer", *same})
            found = evaluate_models(table, out, **given, **same)
    show(*(one for one in evaluation_tables(found) if not one.folded))
    show(*left_out_lines(found.left_out), *found.notes, found.line())
    size = page.stat().st_size / 1e6
    show(f"every prediction and number in {out}; page {size:.1f} MB, no other files needed")
    next_step(["open", page])


class ChecksOptions(FeaturesArgument, OutOption):
    """Which checks are run, and what is shown of them."""

    log: Path | None = parameter(None, "The log that they were made of; the shift test needs it.")
    check: list[str] = parameter(
        [],
        "shift, known-columns, single-column, permuted-labels, drift; all by default. Repeatable.",
        names=f"{_INTENT}.auditing:CHECKS",
    )
    all: bool = parameter(False, "Show every finding, not the foremost.")
    strict: bool = parameter(False, "Exit with 1 when there is an alarm.")


def audit(wanted: ChecksOptions, options: AuditOptions) -> None:
    """Look for leaks: features that know the future or the label.

    Without --out the audit is written into the features' folder; a scorer trained on the features carries it in its
    model card.

    Examples:
        diptych intent audit features --log log
        diptych intent audit features --check single-column --strict --out audit
    """
    target = wanted.out or wanted.features / FOLDER
    log = None if wanted.log is None else Log.open(wanted.log)
    found = run(open_features(wanted.features), log, options=options, checks=wanted.check or None)
    found.save(target)
    show(found.table(wanted.all), found.line(), f"all findings in {target}")
    if found.alarms and wanted.strict:
        raise DataError(f"{len(found.alarms)} alarms", "see what the columns are computed from, and when")
    next_step([*_DIPTYCH_INTENT, "train", wanted.features, "--out", "scorer"])


class ScorerOptions(FeaturesArgument, TargetOption):
    """What a scorer holds."""

    setting: list[str] = parameter([], "anonymous or identified; both by default. Repeatable.")
    step: list[int] = parameter([], "Pages that are open; all steps by default. Repeatable.")
    keep_history: Path | None = parameter(
        None,
        "The log of these features: keep its visitors' histories, personal data, in the scorer, so that requests "
        "need not bring them.",
        metavar="LOG",
    )
    audit: Path | None = parameter(
        None, "A leak audit for the model card; the one in the features' folder by default."
    )


def train(wanted: ScorerOptions, options: TrainOptions) -> None:
    """Train a scorer: fitted on the earliest sessions, calibrated on later ones, measured on the last.

    Killed at any moment, the same command resumes. The folder gets a model card and a made-up session to try it with.

    Examples:
        diptych intent train features --out scorer
        diptych intent train features --out scorer --model svm --step 5
        diptych intent train features --out scorer --calibrate isotonic
    """
    table = open_features(wanted.features)
    found, log = LeakAudit.beside(table, wanted.audit), wanted.keep_history
    with stop_on_signal():
        scorer = fit(
            table,
            wanted.out,
            options=options,
            settings=wanted.setting or None,
            steps=wanted.step or None,
            history=None if log is None else table.sessions(Log.open(log)),
            audit=found,
        )
    card, example = scorer.folder / "model_card.md", scorer.folder / EXAMPLE
    show(scorer_table(scorer), *scorer.lines(), f"{scorer.describe()}; see {card}")
    next_step([*_DIPTYCH_INTENT, "score", wanted.out, example if example.is_file() else "TABLE.csv"])


class ScoreOptions(OutOption):
    """What is scored, and what an answer holds."""

    scorer: Path = parameter(..., "A trained scorer.", argument=True, metavar="SCORER")
    source: str = parameter(
        ...,
        "One session as .json, sessions as lines of JSON, - for lines from standard input, a folder of features, or "
        "a table of whole sessions as .csv.",
        argument=True,
        metavar="SESSIONS",
    )
    reasons: int = parameter(5, "Reasons per score, at most; 0 is faster.", ge=0)
    stream: bool = parameter(
        False, "Lines are events with a client_id, as they happen: a score after every page."
    )


def score(options: ScoreOptions) -> None:
    """Predict how likely sessions end in a purchase, as far as they have come, and why.

    --out is a file for lines of JSON, of a table a folder. Lines in, lines out: of a line that cannot be read the
    answer has an error, the others are scored all the same, and the exit code is 1. A table's scores come with what
    they are worth.

    Examples:
        diptych intent score scorer scorer/example.json
        diptych intent score scorer sessions.jsonl --out scores.jsonl
        tail -f events.jsonl | diptych intent score scorer - --stream
        diptych intent score scorer features --out scores
    """
    scorer, source, path = Scorer.open(options.scorer), options.source, Path(options.source)
    of_table = source != "-" and is_table(path)
    if options.stream and (of_table or path.suffix == ".json"):
        raise UsageError(f"--stream of {source}, which has no lines of events", "give events as .jsonl, or -")
    if source != "-" and not path.exists():
        raise DataError(f"{source} does not exist", "a .json, .jsonl or .csv file, or a folder of features")
    if path.is_dir() and not of_table:
        fix = "make them: diptych intent features LOG --out FEATURES"
        raise DataError(f"{source} holds no features", fix)
    if of_table:
        _score_table(scorer, path, options.out)
    elif path.suffix == ".json":
        _score_one(scorer, path, options)
    else:
        _score_lines(scorer, options)


def _score_one(scorer: Scorer, file: Path, options: ScoreOptions) -> None:
    found = scorer.score(read_json(file), reasons=options.reasons)
    show(found.line(), *([reasons_table(found.reasons)] if found.reasons else []), *found.notes)
    if options.out is None:
        next_step([*_DIPTYCH_INTENT, "score", scorer.folder, "SESSIONS.jsonl", "--out", "scores.jsonl"])
        return
    write_text(options.out, json.dumps(found.to_dict()) + "\n")
    next_step(["cat", options.out])


def _score_lines(scorer: Scorer, options: ScoreOptions) -> None:
    """Answer lines of a file or of standard input as they come, into ``--out`` or standard output."""
    source, out = options.source, options.out
    with ExitStack() as opened:
        try:
            lines = sys.stdin if source == "-" else opened.enter_context(open(source, encoding="utf-8"))
            answers = (score_events if options.stream else score_sessions)(scorer, lines, options.reasons)
            target = sys.stdout
            if out is not None:
                temporary = opened.enter_context(atomic_path(out))
                target = opened.enter_context(open(temporary, "w", encoding="utf-8"))
            answered, failed = _write(answers, target)
        except UnicodeDecodeError as error:
            raise DataError(f"{source} is not UTF-8: {error}", "give lines of JSON in UTF-8") from None
    if out is not None:
        show(f"{answered - failed:,} scores" + (f", {failed:,} errors" if failed else ""))
        next_step(["head", out])
    if failed:
        fix = "each has the number of its line and what to do"
        raise DataError(f"{failed:,} of {answered:,} answers are errors", fix)


def _write(answers: Iterable[dict[str, Any]], file: TextIO) -> tuple[int, int]:
    """Write every answer as soon as it is there; return how many there were, and errors among them."""
    answered = failed = 0
    for answer in answers:
        file.write(json.dumps(answer) + "\n")
        file.flush()
        answered += 1
        failed += "error" in answer
    return answered, failed


def _score_table(scorer: Scorer, path: Path, out: Path | None) -> None:
    if out is None:
        raise UsageError("nowhere to write the scores of a table", "name a folder with --out")
    with opened_table(path, bool(scorer.about["kept_leaking"])) as features:
        about = write_table_scores(scorer, features, out)
    show(measured_table(f"Measured on {about['measured']}", about["cells"]))
    show(f"{sum(cell['scored'] for cell in about['cells']):,} scores of {about['features']}")
    next_step(["head", out / SCORES])


class ReportOptions(OutOption):
    """What a page is of."""

    folder: Path = parameter(
        ..., "A description, an evaluation or a scorer.", argument=True, metavar="FOLDER"
    )
    log: Path | None = parameter(None, "Of a description: the log, to report what its import dropped.")


def report(options: ReportOptions, discretion: Discretion) -> None:
    """Write a page with figures, tables and the protocol: one HTML file that needs no other.

    Of a description: what sets sessions with a purchase apart. Of an evaluation: measures by step, gains,
    probabilities, importance. Of a scorer: how well it does on sessions it has not seen, and an example's reasons.
    Without --out it is report.html in the folder.

    Examples:
        diptych intent report description --log log
        diptych intent report description --hide-rates --out for-others.html
        diptych intent report evaluation
    """
    with showing(discretion):
        page = page_of(options.folder, options.log).save(options.out or options.folder / PAGE)
    show(f"report in {page} ({page.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", page])
