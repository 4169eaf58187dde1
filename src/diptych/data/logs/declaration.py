"""What a log format declares, and the registry of them: one file of ``formats/`` each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diptych.core.registry import Registry
from diptych.data.logs.rows import Row
from diptych.data.logs.source_files import SourceFile


@dataclass(frozen=True)
class Given:
    """What a row of a log says, each as SQL over the row; NULL where the log does not have it.

    All are texts but ``time`` (microseconds since 1970 UTC), ``purchase`` and ``is_twin`` (true or false).

    Attributes:
        row: the row they are taken from.
        time: when.
        written: the same as the log writes it, to be listed where it is no time.
        client: the browser: a cookie.
        visitor: the customer, where known.
        session: the log's own.
        device: type, in the log's words.
        channel: in the log's words.
        country: two letters.
        action: a canonical action, or NULL for one that is not known.
        said: what the log calls the action, to be listed where it is not known.
        page_type: of pages.
        query: what was typed.
        item: the product.
        price: of it.
        purchase: whether the event means that something was bought, besides the action ``purchase``.
        agent: the browser's user agent; it is looked at and not kept.
        address: of the page; it tells events of different pages apart and is not kept.
        is_twin: whether the event is dropped where another one of this client, time and ``address`` says more.
    """

    row: Row
    time: str
    written: str = "NULL"
    client: str = "NULL"
    visitor: str = "NULL"
    session: str = "NULL"
    device: str = "NULL"
    channel: str = "NULL"
    country: str = "NULL"
    action: str = "'page'"
    said: str = "NULL"
    page_type: str = "NULL"
    query: str = "NULL"
    item: str = "NULL"
    price: str = "NULL"
    purchase: str = "false"
    agent: str = "NULL"
    address: str = "NULL"
    is_twin: str = "false"


@dataclass(frozen=True)
class LogFormat:
    """How one format of logs is recognised and read.

    Attributes:
        name: what ``--format`` calls it.
        description: one line for help texts.
        recognises: whether a file of events looks like this format.
        given: what its rows say.
        notes: what a reader of the imported log must know.
        general: of several formats that recognise a file, the least general one reads it.
        others: names of files, without endings, that come with the log and hold no events.
        files: the files of a folder that is marked as this format's, None where it is not.
        zone: the zone such a folder says its days are in.
    """

    name: str
    description: str
    recognises: Callable[[SourceFile], bool]
    given: Callable[[SourceFile], Given]
    notes: tuple[str, ...] = ()
    general: int = 0
    others: tuple[str, ...] = ()
    files: Callable[[Path], list[Path] | None] | None = None
    zone: Callable[[Path], str] | None = None


LOG_FORMATS: Registry[LogFormat] = Registry("log format", "diptych.data.logs.formats")
