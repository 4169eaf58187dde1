"""A generated shop log (``diptych scenes --shop-log``), whose every fact is known."""

from __future__ import annotations

from pathlib import Path

from diptych.core.files import read_json
from diptych.data.logs.declaration import LOG_FORMATS, Given, LogFormat
from diptych.data.logs.rows import Row
from diptych.data.logs.source_files import SourceFile
from diptych.data.logs.sql import choose
from diptych.data.logs.words import YES_WORDS
from diptych.data.scenes.shop_log.columns import ACTIONS, DATASET, MARKER, RAW_COLUMNS, event_files

__all__: list[str] = []


def _marked(folder: Path) -> bool:
    if not (folder / MARKER).is_file():
        return False
    marker = read_json(folder / MARKER)
    return isinstance(marker, dict) and marker.get("dataset") == DATASET


def _files(folder: Path) -> list[Path] | None:
    return sorted(folder.glob(event_files(read_json(folder / MARKER)["format"]))) if _marked(folder) else None


def _zone(folder: Path) -> str:
    return str(read_json(folder / MARKER)["zone"])


def _given(file: SourceFile) -> Given:
    row = Row(file)
    action, purchased = row["action"], row["purchased"]
    return Given(
        row,
        time=row.time("time", "iso"),
        client=row["cookie"],
        visitor=row["customer"],
        device=row["device"],
        channel=row["channel"],
        country=row["country"],
        action=choose(action, {canonical: [said] for said, canonical in ACTIONS.items()}),
        said=action,
        page_type=row["page"],
        query=row["query"],
        item=row["item"],
        price=row["price"],
        purchase=f"{choose(purchased, {'yes': YES_WORDS})} = 'yes'",
    )


LOG_FORMATS.add(
    LogFormat(
        "shop-log",
        "a generated shop log: the folder that diptych scenes --shop-log made",
        lambda file: file.first == tuple(RAW_COLUMNS),
        _given,
        files=_files,
        zone=_zone,
    )
)
