"""The collections, or the shop's log, that a study is run on, as they are named on the command line.

``--data NAME=DATASET`` is repeated for each; ``--images NAME=FOLDER``, ``--reader NAME=READER`` and
``--reader-option NAME.KEY=VALUE`` are about one of them, and about all without a name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.sources import DataChoice, parse_values
from diptych.core.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from diptych.studies import LogSource

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


@dataclass(frozen=True)
class DataChoices:
    """The data options of ``diptych study run``, as they were given."""

    data: Sequence[str] = ()
    images: Sequence[str] = ()
    reader: Sequence[str] = ()
    reader_option: Sequence[str] = ()
    skip_bad_images: bool = False

    def one(self) -> dict[str, Any] | None:
        """The data section of a study of one collection; None where no data is named."""
        for flag, given in (("--data", self.data), ("--images", self.images), ("--reader", self.reader)):
            if len(given) > 1:
                raise UsageError(
                    f"{flag} is given {len(given)} times: {', '.join(given)}",
                    "this study is of one collection",
                )
        if not self.data:
            return None
        return _section(
            self.data[0],
            next(iter(self.images), None),
            next(iter(self.reader), None),
            self.reader_option,
            self,
        )

    def log(self, name: str) -> LogSource | None:
        """The log of study ``name``; None where none is named."""
        from diptych.studies import LogSource

        if self.images or self.skip_bad_images:
            flag = "--images" if self.images else "--skip-bad-images"
            raise UsageError(f"{flag}: {name} is of a shop's log", f"leave {flag} out")
        for flag, given in (("--data", self.data), ("--reader", self.reader)):
            if len(given) > 1:
                raise UsageError(
                    f"{flag} is given {len(given)} times: {', '.join(given)}", f"{name} is of one log"
                )
        if not self.data:
            return None
        options = parse_values(list(self.reader_option), "--reader-option")
        return LogSource(Path(self.data[0]), next(iter(self.reader), None), options)

    def several(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """A name (empty: the collection's own) and a data section for each collection."""
        named = [_split(text) for text in self.data]
        names = [name for name, _ in named if name]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two collections are called {name!r}", "give each --data another NAME")
        images, readers = (
            _by_name(given, names, flag)
            for given, flag in ((self.images, "--images"), (self.reader, "--reader"))
        )
        options: dict[str, list[str]] = {}
        for text in self.reader_option:
            about, option = _about(text, names)
            options.setdefault(about, []).append(option)
        return tuple(
            (
                name,
                _section(
                    path,
                    images.get(name, images.get("")),
                    readers.get(name, readers.get("")),
                    [*options.get("", []), *(options.get(name, []) if name else [])],
                    self,
                ),
            )
            for name, path in named
        )


def _split(text: str) -> tuple[str, str]:
    """``NAME=VALUE``, or a value without a name; a path that is there is a path."""
    found = _NAMED.fullmatch(text)
    if found is None or Path(text).exists():
        return "", text
    return found[1], found[2]


def _about(text: str, names: Sequence[str]) -> tuple[str, str]:
    """Which collection (empty: all) a reader's option is about, and the option; names may have dots."""
    about = max((name for name in names if text.startswith(f"{name}.")), key=len, default="")
    if about:
        return about, text[len(about) + 1 :]
    name, dot, _ = text.partition("=")[0].partition(".")
    if dot:
        raise UnknownNameError("collection of --reader-option", name, names)
    return "", text


def _by_name(given: Sequence[str], names: Sequence[str], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in given:
        name, value = _split(text)
        if name and name not in names:
            raise UnknownNameError(f"collection of {flag}", name, names)
        if name in found:
            raise UsageError(
                f"{flag} is given twice for {name or 'all collections'}", f"e.g. {flag} NAME={value}"
            )
        found[name] = value
    return found


def _section(
    path: str, images: str | None, reader: str | None, options: Sequence[str], given: DataChoices
) -> dict[str, Any]:
    folder = None if images is None else Path(images)
    return DataChoice(Path(path), folder, reader, list(options), given.skip_bad_images).section(None)


def command_of(
    name: str,
    data: DataChoices,
    rows: str | None,
    seeds: str | None,
    setting: str | None,
    targets: str | None,
    regions: Path | None,
    positives: str | None,
    set_: list[str] | None,
) -> str:
    """What a person types to have the same."""
    parts = ["diptych", "study", "run", name]
    for flag, given in (
        ("--data", data.data),
        ("--images", data.images),
        ("--reader", data.reader),
        ("--reader-option", data.reader_option),
    ):
        parts += [part for text in given for part in (flag, text)]
    parts += ["--skip-bad-images"] if data.skip_bad_images else []
    for flag, value in (
        ("--rows", rows),
        ("--seeds", seeds),
        ("--setting", setting if setting != "quick" else None),
        ("--targets", targets),
        ("--regions", regions),
        ("--positives", positives),
    ):
        if value is not None:
            parts += [flag, str(value)]
    parts += ["--quick"] if setting == "quick" else []
    parts += [part for text in set_ or [] for part in ("--set", text)]
    return shlex.join(parts)
