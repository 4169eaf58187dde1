"""``diptych intent``: from raw shop logs to a calibrated, explained probability of a purchase."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.cli.console import next_step, show, stop_on_signal
from diptych.commerce import purchase_intent as intent
from diptych.commerce.logs.ingest import Cleaning, ImportOptions
from diptych.commerce.purchase_intent import drift as drifting
from diptych.commerce.purchase_intent import options as given
from diptych.commerce.purchase_intent.auditing import FOLDER, LeakAudit
from diptych.commerce.purchase_intent.engine import open_engine
from diptych.commerce.purchase_intent.features import FeatureTable
from diptych.commerce.purchase_intent.features.make import features_of_source, is_table, opened_table
from diptych.commerce.purchase_intent.scoring.training import (
    CARD,
    EXAMPLE,
    SCORES,
    ScoredTable,
    reasons_table,
    score_table,
    scorer_table,
)
from diptych.commerce.purchase_intent.shown import DisclosureControl, disclosing
from diptych.commerce.purchase_intent.statistics import Description, choose_statistics
from diptych.core.errors import DataError, UsageError
from diptych.core.files import atomic_path, check_replaceable, write_text
from diptych.core.options import Options, parameter
from diptych.core.reading import read_json
from diptych.data.source import OutOption
from diptych.report.intent import PAGE, description_page, drift_page, evaluation_page, page_of, scores_page

_INTENT = ("diptych", "intent")
_ROOM = "diptych.commerce.purchase_intent"
Out = Annotated[Path, typer.Option("--out", "-o", help="Where to write.", metavar="PATH", show_default=False)]


def _argument(name: str, help: str) -> Any:
    return typer.Argument(help=help, metavar=name, show_default=False)


_RAW = "Raw files, or a folder: CSV, TSV, JSON lines (gzipped, too), Parquet."
_SESSIONS = (
    "One session as .json, sessions as lines of JSON, - for lines from standard input, a folder of features, "
    "or a table of whole sessions as .csv."
)
Sources = Annotated[list[Path], _argument("SOURCE", _RAW)]
LogFolder = Annotated[Path, _argument("LOG", "A log that diptych intent ingest wrote.")]
LogOrTable = Annotated[Path, _argument("LOG", "A log; or a CSV of whole sessions, such as UCI's shoppers.")]
Features = Annotated[Path, _argument("FEATURES", "A folder that diptych intent features wrote.")]
ScorerFolder = Annotated[Path, _argument("SCORER", "A trained scorer.")]
Sessions = Annotated[str, _argument("SESSIONS", _SESSIONS)]
Old = Annotated[Path, _argument("OLD", "A log, features, or a table of whole sessions as .csv.")]
New = Annotated[Path, _argument("NEW", "The same of later sessions.")]
Folder = Annotated[Path, _argument("FOLDER", "A description, an evaluation, a scorer, its scores, or drift.")]


def ingest(sources: Sources, out: Out, options: ImportOptions, cleaning: Cleaning) -> None:
    """Import a raw shop log: one table of events, and a report of every row that was dropped.

    Rules drop rows in a fixed order; every row is counted under the first that drops it.

    Examples:
        diptych intent ingest visits --out log --country NL,BE,DE
        diptych intent ingest clicks.dat buys.dat --out log --zone Europe/Amsterdam
        diptych intent ingest events.csv --column client=id --column time=ts -o log
    """
    log = intent.ingest(sources, out, cleaning=cleaning, **dict(options))
    show(*log.tables(), *log.lines(), f"written to {out}")
    next_step([*_INTENT, "describe", out, "--out", out.with_name("description")])


class Statistics(Options):
    """Statistics."""

    statistic: list[str] = parameter(
        [], "A statistic; all by default. Repeatable.", names=f"{_ROOM}.statistics:STATISTICS"
    )


def describe(
    log: LogFolder,
    out: Out,
    chosen: Statistics,
    sessions: given.SessionOptions,
    options: given.DescribeOptions,
    engine: given.EngineOptions,
    control: DisclosureControl,
) -> None:
    """Make sessions of a log and describe them: lengths, times, channels, devices, switches, queries.

    Everything is by class: sessions with a purchase, and others. Sessions are kept with the log.

    Examples:
        diptych intent describe log --out description
        diptych intent describe log --by visitor --memory-limit 2GB --out visitors
        diptych intent describe log --statistic channels --out channels
    """
    opened, names = intent.Log.open(log), [one.name for one in choose_statistics(chosen.statistic or None)]
    check_replaceable(out, Description.marker())
    if log.resolve() in out.resolve().parents:
        wrong = f"{out} lies in {log}, which the next import replaces with all that is in it"
        raise UsageError(wrong, "write it elsewhere")
    with open_engine(engine.engine, memory_limit=engine.memory_limit) as runs:
        tables = intent.sessionise(opened, sessions, engine=runs)
        found = intent.describe(tables, engine=runs, options=options, names=names)
    with disclosing(control):
        page = description_page(found, opened)
        found.save(out, also=lambda inside: page.save(inside / PAGE))
        show(*found.tables(), *found.notes, found.line())
    show(f"written to {out}; sessions are kept in {tables.folder}; the page is {out / PAGE}")
    next_step([*_INTENT, "features", log, "--out", out.with_name("features")])


def features(
    source: LogOrTable,
    out: Out,
    chosen: given.TableOptions,
    options: given.FeatureOptions,
    sessions: given.SessionOptions,
    engine: given.EngineOptions,
) -> None:
    """Make the features of thesis Table 6.7: what is known before any page and after each of ten.

    Only sessions count that have pages for the last step and two more; at each step only those whose purchase, if
    any, is at least two pages away.

    Examples:
        diptych intent features log --out features
        diptych intent features log --compat published --out features-published
        diptych intent features online_shoppers_intention.csv --out features-uci
    """
    table = features_of_source(
        source, folder=out, options=options, sessions=sessions, engine=engine, files=chosen
    )
    show(*table.lines(), *table.tables(), f"written to {out}")
    if table.labels.any():
        next_step([*_INTENT, "evaluate", out, "--out", out.with_name(f"{out.name}-evaluation")])
    else:
        show("no session ends in a purchase: nothing can be learned from them; import more of the log")
        next_step([*_INTENT, "ingest", "--help"])


class ScorerOption(Options):
    """A scorer."""

    scorer: Path | None = parameter(None, "A trained scorer to measure on these sessions; nothing is fitted.")


def evaluate(features: Features, out: Out, options: given.EvaluateOptions, measured: ScorerOption) -> None:
    """Evaluate models of purchase intent on every step of a session, with intervals and calibration.

    Features are fitted on each fold's training part. Ctrl-C stops after the model that is being fitted; the
    same command resumes, after kill -9 too.

    Examples:
        diptych intent evaluate features --out evaluation
        diptych intent evaluate features --out paper --preset paper --jobs 4
        diptych intent evaluate features --out later --split time --step 0 --step 5
        diptych intent evaluate later-features --scorer scorer --out held-out
    """
    table = intent.open_features(features)
    if measured.scorer is not None:
        _score_table(intent.Scorer.open(measured.scorer), table, out, options)
        return
    with stop_on_signal():
        found = intent.evaluate(
            table, out, page=lambda one: evaluation_page(one).save(out / PAGE), **dict(options)
        )
    show(*(one for one in found.tables() if not one.folded), *found.lines())
    show(f"every prediction and number in {out}; the page is {out / PAGE}")
    next_step(["open", out / PAGE])


def _score_table(
    scorer: intent.Scorer, table: FeatureTable, out: Path, options: given.EvaluateOptions | None = None
) -> None:
    check_replaceable(out, ScoredTable.marker())
    with stop_on_signal():
        found = score_table(scorer, table, options)
    found.save(out, also=lambda inside: scores_page(found).save(inside / PAGE))
    show(*found.tables(), f"every score in {out / SCORES}; the page is {out / PAGE}")
    next_step(["open", out / PAGE])


class ChecksOptions(OutOption):
    """Checks, and findings that are shown."""

    log: Path | None = parameter(None, "The log that they were made of; the shift test needs it.")
    check: list[str] = parameter(
        [],
        "shift, known-columns, duplicates, single-column, permuted-labels; all by default. Repeatable.",
        names=f"{_ROOM}.auditing:CHECKS",
    )
    all: bool = parameter(False, "Show every finding, not the foremost.")
    strict: bool = parameter(False, "Exit with 1 when there is an alarm.")


def audit(features: Features, chosen: ChecksOptions, options: given.AuditOptions) -> None:
    """Look for leaks: features that know the future or the label.

    Without --out the audit is written into the features' folder; a scorer trained on the features carries it in its
    model card.

    Examples:
        diptych intent audit features --log log
        diptych intent audit features --check single-column --strict --out audit
    """
    target = chosen.out or features / FOLDER
    log = None if chosen.log is None else intent.Log.open(chosen.log)
    table = intent.open_features(features)
    found = intent.audit(table, log, options=options, checks=chosen.check or None)
    found.save(target, of=table.fingerprint)
    show(found.table(chosen.all), found.line(), f"all findings in {target}")
    if found.alarms and chosen.strict:
        raise DataError(f"{len(found.alarms)} alarms", "see what the columns are computed from, and when")
    next_step([*_INTENT, "train", features, "--out", "scorer"])


class ScorerOptions(Options):
    """Models of a scorer, and its audit."""

    setting: list[str] = parameter([], "anonymous or identified; both by default. Repeatable.")
    step: list[int] = parameter([], "Pages that are open; all steps by default. Repeatable.")
    audit: Path | None = parameter(
        None, "A leak audit for the model card; the one in the features' folder by default."
    )
    jobs: int = parameter(1, "Processes; the numbers do not depend on it.", "--jobs", "-j", ge=1)


def train(features: Features, out: Out, chosen: ScorerOptions, options: given.TrainOptions) -> None:
    """Train a scorer: fitted on all sessions, calibrated by cross-fitting; measured on the last by models without them.

    Killed at any moment, the same command resumes. The folder gets a model card and a made-up session to try it with.

    Examples:
        diptych intent train features --out scorer
        diptych intent train features --out scorer --model svm --step 5
        diptych intent train features --out scorer --calibrate isotonic
        diptych intent train features --out scorer --missed-cost 20
    """
    table = intent.open_features(features)
    audited = chosen.audit or (features / FOLDER if LeakAudit.is_at(features / FOLDER) else None)
    found = None if audited is None else LeakAudit.open(audited, of=table.fingerprint)
    models: Any = {"settings": chosen.setting, "steps": chosen.step, "jobs": chosen.jobs}
    with stop_on_signal():
        scorer = intent.train(table, out, options=options, audit=found, **models)
    show(scorer_table(scorer.about), *scorer.about["notes"], f"{scorer.describe()}; see {out / CARD}")
    sessions = [features, "--out", out.with_name("scores")] if scorer.is_whole else [out / EXAMPLE]
    next_step([*_INTENT, "score", out, *sessions])


class ScoreOptions(OutOption):
    """Options of answers."""

    reasons: int = parameter(5, "Reasons per score, at most; 0 is faster.", ge=0)
    stream: bool = parameter(
        False, "Lines are events with a client_id, as they happen: a score after every page."
    )


def score(scorer: ScorerFolder, source: Sessions, options: ScoreOptions) -> None:
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
    opened, path, out = intent.Scorer.open(scorer), Path(source), options.out
    if source == "-" or (path.is_file() and not is_table(path) and path.suffix != ".json"):
        _score_lines(opened, source, options)
    elif options.stream:
        raise UsageError(f"--stream of {source}, which has no lines of events", "give events as .jsonl, or -")
    elif path.is_file() and path.suffix == ".json":
        one = opened.score(read_json(path), reasons=options.reasons)
        show(one.line(), *([reasons_table(one.reasons)] if one.reasons else []), *one.notes)
        if out is not None:
            write_text(out, one.model_dump_json() + "\n")
        next_step(["cat", out] if out else [*_INTENT, "score", scorer, source, "--out", "score.json"])
    else:
        with opened_table(path, bool(opened.about["kept_leaking"])) as table:
            if out is None:
                raise UsageError("nowhere to write the scores of a table", "name a folder with --out")
            _score_table(opened, table, out)


def _score_lines(scorer: intent.Scorer, source: str, options: ScoreOptions) -> None:
    """Write every answer as soon as it is there."""
    answered = failed = 0
    with ExitStack() as opened:
        lines = sys.stdin if source == "-" else opened.enter_context(open(source, encoding="utf-8"))
        out = sys.stdout
        if options.out is not None:
            file = opened.enter_context(atomic_path(options.out))
            out = opened.enter_context(open(file, "w", encoding="utf-8"))
        try:
            for answer in scorer.answers(lines, options.reasons, stream=options.stream):
                out.write(json.dumps(answer) + "\n")
                out.flush()
                answered += 1
                failed += "error" in answer
        except UnicodeDecodeError as error:
            raise DataError(f"{source} is not UTF-8: {error}", "give lines of JSON in UTF-8") from None
    if options.out is not None:
        show(f"{answered - failed:,} scores" + (f", {failed:,} errors" if failed else ""))
        next_step(["head", options.out])
    if failed:
        fix = "each has the number of its line and what to do"
        raise DataError(f"{failed:,} of {answered:,} answers are errors", fix)


class DriftOptions(ScorerOption):
    """Options of a comparison."""

    step: int | None = parameter(None, "Pages that are open; the last step by default.")


def drift(old: Old, new: New, out: Out, options: DriftOptions) -> None:
    """Find out whether later sessions differ: base rate, every feature, and a scorer's calibration on them.

    Examples:
        diptych intent drift features later-features --scorer scorer --out drift
        diptych intent drift log later-log --step 5 --out drift
    """
    scorer = None if options.scorer is None else intent.Scorer.open(options.scorer)
    with opened_table(old) as before, opened_table(new) as after:
        found = drifting.drift(before, after, scorer, options.step)
    found.save(out, also=lambda inside: drift_page(found).save(inside / PAGE))
    show(*found.tables(), *found.lines(), f"the page is {out / PAGE}")
    next_step([*_INTENT, "train", new, "--out", "scorer"] if found.is_large else ["open", out / PAGE])


class ReportOptions(OutOption):
    """Options of a page."""

    log: Path | None = parameter(None, "Of a description: the log, to report what its import dropped.")


def report(folder: Folder, options: ReportOptions, control: DisclosureControl) -> None:
    """Write a page with figures, tables and the protocol: one HTML file that needs no other.

    Without --out it is report.html in the folder.

    Examples:
        diptych intent report description --log log
        diptych intent report description --hide-rates --out for-others.html
        diptych intent report evaluation
    """
    with disclosing(control):
        page = page_of(folder, options.log).save(options.out or folder / PAGE)
    show(f"report in {page} ({page.stat().st_size / 1e6:.1f} MB, no other files needed)")
    next_step(["open", page])
