"""``diptych intent score``: sessions that still run, one or many, or a whole table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer
from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import OutOption
from diptych.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.scoring import Scorer


class ScoreOptions(OutOption):
    """What is scored, and what an answer holds."""

    reasons: int = Field(5, ge=0, description="Reasons per score, at most; 0 is faster.")
    stream: bool = Field(
        False,
        description="Lines are events with a client_id, as they happen: a score after every page.",
    )


def score(
    scorer: Annotated[Path, typer.Argument(metavar="SCORER", help="A trained scorer.", show_default=False)],
    source: Annotated[
        str,
        typer.Argument(
            metavar="SESSIONS",
            help="One session as .json, sessions as lines of JSON, - for lines from standard input, a folder of "
            "features, or a table of whole sessions as .csv.",
            show_default=False,
        ),
    ],
    options: ScoreOptions,
) -> None:
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
    from diptych.commerce.purchase_intent.features.whole import is_table
    from diptych.commerce.purchase_intent.scoring import Scorer

    opened, path = Scorer.open(scorer), Path(source)
    of_table = source != "-" and is_table(path)
    if options.stream and (of_table or path.suffix == ".json"):
        raise UsageError(f"--stream of {source}, which has no lines of events", "give events as .jsonl, or -")
    if source != "-" and not path.exists():
        raise DataError(f"{source} does not exist", "a .json, .jsonl or .csv file, or a folder of features")
    if path.is_dir() and not of_table:
        raise DataError(
            f"{source} holds no features", "make them: diptych intent features LOG --out FEATURES"
        )
    if of_table:
        _score_table(opened, path, options.out)
    elif path.suffix == ".json":
        _score_one(opened, path, options)
    else:
        _score_lines(opened, source, options)


def _score_one(scorer: Scorer, file: Path, options: ScoreOptions) -> None:
    from diptych.commerce.purchase_intent.scoring.shown import reasons_table
    from diptych.core.files import write_text
    from diptych.core.reading import read_json

    found = scorer.score(read_json(file), reasons=options.reasons)
    say(found.line())
    show(*([reasons_table(found.reasons)] if found.reasons else []))
    for note in found.notes:
        say(note)
    if options.out is None:
        next_step(["diptych", "intent", "score", scorer.folder, "SESSIONS.jsonl", "--out", "scores.jsonl"])
        return
    write_text(options.out, json.dumps(found.to_dict()) + "\n")
    next_step(["cat", options.out])


def _score_lines(scorer: Scorer, source: str, options: ScoreOptions) -> None:
    from diptych.commerce.purchase_intent.scoring.table_scores import score_events, score_sessions
    from diptych.core.files import atomic_path

    out = options.out
    with _lines(source) as lines:
        answers = (score_events if options.stream else score_sessions)(scorer, lines, options.reasons)
        if out is None:
            answered, failed = _write(answers, sys.stdout)
        else:
            with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as file:
                answered, failed = _write(answers, file)
    if out is not None:
        say(f"{answered - failed:,} scores" + (f", {failed:,} errors" if failed else ""))
        next_step(["head", out])
    if failed:
        raise DataError(
            f"{failed:,} of {answered:,} answers are errors", "each has the number of its line and what to do"
        )


@contextmanager
def _lines(source: str) -> Iterator[Iterable[str]]:
    """Open a file, or standard input, as lines that are read as they come."""
    opened = nullcontext(sys.stdin) if source == "-" else open(source, encoding="utf-8")  # noqa: SIM115
    with opened as file:
        try:
            yield file
        except UnicodeDecodeError as error:
            raise DataError(f"{source} is not UTF-8: {error}", "give lines of JSON in UTF-8") from None


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
    from diptych.commerce.purchase_intent.features.whole import opened_table
    from diptych.commerce.purchase_intent.scoring.shown import measured_table
    from diptych.commerce.purchase_intent.scoring.table_scores import SCORES, write_table_scores

    if out is None:
        raise UsageError("nowhere to write the scores of a table", "name a folder with --out")
    with progress(), opened_table(path, bool(scorer.about["kept_leaking"])) as features:
        about = write_table_scores(scorer, features, out)
    show(measured_table(f"Measured on {about['measured']}", about["cells"]))
    say(f"{sum(cell['scored'] for cell in about['cells']):,} scores of {about['features']}")
    next_step(["head", out / SCORES])
