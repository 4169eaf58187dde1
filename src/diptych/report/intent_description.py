"""A description of a log as a page: what sets sessions with a purchase apart (thesis section 6.4)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.statistics import ORDER, STATISTICS, DescribeOptions
from diptych.core.errors import MismatchError
from diptych.report.intent_description_sections import described_sections
from diptych.report.intent_discretion import Discretion, number, percent, sentence
from diptych.report.intent_import import import_section
from diptych.report.intent_page import Headline, Page, write_page
from diptych.report.words import shorten

if TYPE_CHECKING:
    from diptych.commerce.purchase_intent.statistics import Description
    from diptych.data.logs.log import Log

__all__ = ["described_headlines", "description_page", "write_description_page"]

_KEYS = {
    "client": "of one client",
    "visitor": "of one visitor where known, else of one client",
    "given": "as the log gives them, whatever the gaps",
}


def description_page(
    description: Description, discretion: Discretion | None = None, log: Log | None = None
) -> Page:
    """The page of a description.

    Args:
        description: it.
        discretion: what is left out.
        log: that was described, to say what its import dropped.

    Raises:
        MismatchError: it is another log.
    """
    about, discretion = description.about, discretion or Discretion()
    if log is not None and log.fingerprint != about["log_fingerprint"]:
        raise MismatchError(
            f"the description is of the log {about['log_fingerprint']}, {log.folder} is {log.fingerprint}",
            "give the log that was described, or describe this one",
        )
    options = DescribeOptions(**about["options"])
    meanings = {
        name: STATISTICS.get(name).columns for name in description.tables if name in STATISTICS.names()
    }
    sections = described_sections(description.tables, discretion, options, meanings)
    if log is not None:
        sections.append(import_section(log.about))
    name = shorten(description.name, 80)
    return Page(
        f"Purchase intent in {name}",
        _subtitle(description, log),
        described_headlines(description.tables, discretion),
        sections,
        _facts(description, options),
        [*_notes(description, discretion), *discretion.lines()],
        [_command(description, options)],
    )


def write_description_page(
    path: Path | str,
    description: Description,
    discretion: Discretion | None = None,
    log: Log | None = None,
) -> Path:
    """Write the page as one HTML file, whole or not at all; arguments as of :func:`description_page`.

    Raises:
        MismatchError: the log is another one.
        StorageError: the file cannot be written; an older one is untouched.
    """
    return write_page(path, description_page(description, discretion, log))


def described_headlines(
    tables: Mapping[str, Sequence[Mapping[str, Any]]], discretion: Discretion
) -> list[Headline]:
    """The log in a few numbers."""
    totals = {row["what"]: row["total"] for row in tables.get("overview", ())}
    sessions = totals.get("sessions", 0)
    if not sessions:
        return []
    shown = [Headline("sessions", number(sessions), f"of {number(totals.get('events'))} events")]
    buy, anonymous = totals.get("purchase sessions"), totals.get("anonymous sessions")
    if buy is not None and not discretion.hide_rates and not discretion.small(buy, sessions - buy):
        shown.append(
            Headline("have a purchase", f"{percent(buy / sessions, 2)} %", f"{number(buy)} sessions")
        )
    if anonymous is not None and not discretion.small(anonymous, sessions - anonymous):
        shown.append(
            Headline("are anonymous", f"{percent(anonymous / sessions)} %", f"{number(anonymous)} sessions")
        )
    if totals.get("identified visitors") is not None:
        shown.append(Headline("visitors are known", discretion.count(totals["identified visitors"])))
    return shown


def _subtitle(description: Description, log: Log | None) -> str:
    sessions = (
        f"What sets sessions with a purchase apart, in {description.about['counts']['sessions']:,} sessions"
    )
    if log is None or not log.about["first"]:
        return sessions
    return f"{sessions} from {str(log.about['first'])[:10]} to {str(log.about['last'])[:10]}"


def _facts(description: Description, options: DescribeOptions) -> dict[str, str]:
    about = description.about
    of = about["session_options"]
    ended = (
        "" if of["by"] == "given" else f", ended by more than {of['gap_minutes']:g} minutes without an event"
    )
    return {
        "log": f"{shorten(description.name, 80)}, fingerprint {about['log_fingerprint']}",
        "sessions": f"{_KEYS.get(of['by'], of['by'])}{ended}; fingerprint {about['sessions_fingerprint']}",
        "hours and days": f"of {about['zone']}, by a session's first event",
        "class": "a session with a purchase anywhere in it, or another",
        "device, channel": "of a session's first event",
        "intervals": f"{100 * options.confidence:g} %; Wilson's for shares and rates, normal for means; sessions are "
        "taken as independent, which those of one visitor are not quite",
        "standardised": f"ddof {options.ddof}, over groups, each counting once",
        "engine": str(about["engine"]),
        "numbers": "all of them, unhidden, are in the description's tables/*.csv",
    }


def _notes(description: Description, discretion: Discretion) -> list[str]:
    """What a reader has to know; without notes that count few people."""
    return [
        sentence(note)
        for note in map(str, description.about["notes"])
        if not discretion.small(*(int(found.replace(",", "")) for found in re.findall(r"\d[\d,]*", note)))
    ]


def _command(description: Description, options: DescribeOptions) -> str:
    """The description again; what is as by default is not said."""
    of: dict[str, Any] = description.about["session_options"]
    words = ["diptych", "intent", "describe", "LOG", "--out", "DESCRIPTION"]
    default = DescribeOptions()
    if set(description.tables) != set(ORDER):
        words += [word for name in description.tables for word in ("--statistic", name)]
    for option, value, usual in (
        ("--by", of["by"], "client"),
        ("--gap", f"{of['gap_minutes']:g}", "30"),
        ("--ddof", options.ddof, default.ddof),
        ("--journey", options.journey, default.journey),
        ("--confidence", options.confidence, default.confidence),
    ):
        if value != usual:
            words += [option, str(value)]
    return shlex.join(words)
