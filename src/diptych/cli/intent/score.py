"""``diptych intent score``: sessions that still run, one or many, or a whole table."""

from __future__ import annotations

import json
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from diptych.cli.console import next_step, progress, say, show
from diptych.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.features.table import FeatureTable
    from diptych.commerce.purchase_intent.scoring import Score, Scorer

_TABLES = (".csv", ".csv.gz")


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
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="A file for lines of JSON; of a table a folder.", show_default=False
        ),
    ] = None,
    reasons: Annotated[int, typer.Option(min=0, help="Reasons per score, at most; 0 is faster.")] = 5,
    stream: Annotated[
        bool,
        typer.Option(
            "--stream", help="Lines are events with a client_id, as they happen: a score after every page."
        ),
    ] = False,
) -> None:
    """Say how likely sessions end in a purchase, as far as they have come, and why.

    Lines in, lines out: of a line that cannot be read the answer has an error, the others are scored all the same,
    and the exit code is 1. A table's scores come with what they are worth.

    Examples:

      [bold]diptych intent score scorer scorer/example.json[/bold]

      [bold]diptych intent score scorer sessions.jsonl --out scores.jsonl[/bold]

      [bold]tail -f events.jsonl | diptych intent score scorer - --stream[/bold]

      [bold]diptych intent score scorer features --out scores[/bold]
    """
    from diptych.commerce.purchase_intent.features.table import FeatureHeader
    from diptych.commerce.purchase_intent.scoring import Scorer

    opened = Scorer.open(scorer)
    path = Path(source)
    is_table = source != "-" and (FeatureHeader.is_at(path) or source.endswith(_TABLES))
    if stream and (is_table or path.suffix == ".json"):
        raise UsageError(f"--stream of {source}, which has no lines of events", "give events as .jsonl, or -")
    if source != "-" and not path.exists():
        raise DataError(f"{source} does not exist", "a .json, .jsonl or .csv file, or a folder of features")
    if path.is_dir() and not is_table:
        raise DataError(
            f"{source} holds no features", "make them: diptych intent features LOG --out FEATURES"
        )
    if is_table:
        _score_table(opened, path, out)
    elif path.suffix == ".json":
        _score_one(opened, path, out, reasons)
    else:
        _score_lines(opened, source, out, reasons, stream)


def _score_one(scorer: Scorer, file: Path, out: Path | None, reasons: int) -> None:
    from diptych.core.files import write_text
    from diptych.core.reading import read_json

    found = scorer.score(read_json(file), reasons=reasons)
    _show(found)
    if out is None:
        next_step(
            shlex.join(
                ["diptych", "intent", "score", str(scorer.folder), "SESSIONS.jsonl", "--out", "scores.jsonl"]
            )
        )
        return
    write_text(out, json.dumps(found.to_dict()) + "\n")
    next_step(["cat", str(out)])


def _show(found: Score) -> None:
    from diptych.commerce.purchase_intent.scoring.shown import reasons_table

    say(found.line())
    show(*([reasons_table(found.reasons)] if found.reasons else []))
    for note in found.notes:
        say(note)


def _score_lines(scorer: Scorer, source: str, out: Path | None, reasons: int, stream: bool) -> None:
    from diptych.commerce.purchase_intent.scoring.table_scores import score_events, score_sessions
    from diptych.core.files import atomic_path

    with _lines(source) as lines:
        answers = (score_events if stream else score_sessions)(scorer, lines, reasons)
        if out is None:
            answered, failed = _write(answers, sys.stdout)
        else:
            with atomic_path(out) as temporary, open(temporary, "w", encoding="utf-8") as file:
                answered, failed = _write(answers, file)
    if out is not None:
        say(f"{answered - failed:,} scores" + (f", {failed:,} errors" if failed else ""))
        next_step(["head", str(out)])
    if failed:
        raise DataError(
            f"{failed:,} of {answered:,} answers are errors", "each has the number of its line and what to do"
        )


@contextmanager
def _lines(source: str) -> Iterator[Iterable[str]]:
    """Lines of a file, or of standard input as they come."""
    opened = nullcontext(sys.stdin) if source == "-" else open(source, encoding="utf-8")  # noqa: SIM115
    with opened as file:
        try:
            yield file
        except UnicodeDecodeError as error:
            raise DataError(f"{source} is not UTF-8: {error}", "give lines of JSON in UTF-8") from None


def _write(answers: Iterable[dict[str, Any]], file: TextIO) -> tuple[int, int]:
    """Write every answer as soon as it is there; gives how many there were, and errors among them."""
    answered = failed = 0
    for answer in answers:
        file.write(json.dumps(answer) + "\n")
        file.flush()
        answered += 1
        failed += "error" in answer
    return answered, failed


def _score_table(scorer: Scorer, path: Path, out: Path | None) -> None:
    from diptych.commerce.purchase_intent.scoring.shown import measured_table
    from diptych.commerce.purchase_intent.scoring.table_scores import SCORES, write_table_scores

    if out is None:
        raise UsageError("nowhere to write the scores of a table", "name a folder with --out")
    with progress(), _table(scorer, path) as features:
        about = write_table_scores(scorer, features, out)
    show(measured_table(f"Measured on {about['measured']}", about["cells"]))
    say(f"{sum(cell['scored'] for cell in about['cells']):,} scores of {about['features']}")
    next_step(["head", str(out / SCORES)])


@contextmanager
def _table(scorer: Scorer, path: Path) -> Iterator[FeatureTable]:
    """A folder of features, or a table of whole sessions, whose features are made and removed again."""
    from diptych.commerce.purchase_intent.features.table import open_features
    from diptych.commerce.purchase_intent.features.whole import make_whole_features

    if path.is_dir():
        yield open_features(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = bool(scorer.about["kept_leaking"])
        yield make_whole_features(path, folder=Path(folder) / "features", keep_leaking=kept)
