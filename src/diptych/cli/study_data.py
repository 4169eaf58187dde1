"""The collections, or the shop's log, that a study is run on, as they are named on the command line.

``--data NAME=DATASET`` is repeated for each; ``--images NAME=FOLDER``, ``--reader NAME=READER`` and
``--reader-option NAME.KEY=VALUE`` are about one of them, and about all without a name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.cli.sources import DataSpec, parse_values
from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.options import Options, parameter

if TYPE_CHECKING:
    from diptych.studies import LogSource, Study

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


class DataChoices(Options):
    """Which data a study is run on."""

    data: list[str] = parameter(
        [],
        "A dataset: folder or file; a log, of a shop's. Of several collections NAME=DATASET, repeated.",
    )
    images: list[str] = parameter([], "Folder of images, where it is not beside the data; or NAME=FOLDER.")
    reader: list[str] = parameter(
        [],
        "The data's format, where it is not recognised; or NAME=READER.",
        names="diptych.data.readers:READERS",
    )
    reader_option: list[str] = parameter([], "KEY=VALUE for the reader; or NAME.KEY=VALUE. Repeatable.")
    skip_bad_images: bool = parameter(False, "Leave out and count images that cannot be read.")

    def choices(self, study: Study) -> dict[str, Any]:
        """Return what these are among the choices of who runs a study."""
        if study.several:
            return {"collections": self.several()}
        return {"log": self.log(study.name)} if study.of_logs else {"data": self.one()}

    def one(self) -> dict[str, Any] | None:
        """Return the data section of a study of one collection; None where no data is named."""
        self._check_one("this study is of one collection")
        return next((section for _, section in self.several()), None)

    def log(self, name: str) -> LogSource | None:
        """Return the log of study ``name``; None where none is named."""
        from diptych.studies import LogSource

        if self.images or self.skip_bad_images:
            flag = "--images" if self.images else "--skip-bad-images"
            raise UsageError(f"{flag}: {name} is of a shop's log", f"leave {flag} out")
        self._check_one(f"{name} is of one log")
        if not self.data:
            return None
        options = parse_values(self.reader_option, "--reader-option")
        return LogSource(Path(self.data[0]), next(iter(self.reader), None), options)

    def several(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Return a name (empty: the collection's own) and a data section for each collection."""
        named = [_split(text) for text in self.data]
        names = [name for name, _ in named if name]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"two collections are called {name!r}", "give each --data another NAME")
        images, readers = (_by_name(getattr(self, key), names, f"--{key}") for key in ("images", "reader"))
        options = _named(self.reader_option, names, "--reader-option", ".")
        options.sort(key=lambda one: bool(one[0]))  # those of all first: one's own replace them

        def section(name: str, path: str) -> dict[str, Any]:
            folder = images.get(name, images.get(""))
            spec = DataSpec(
                data=Path(path),
                images=None if folder is None else Path(folder),
                reader=readers.get(name, readers.get("")),
                reader_option=[text for about, text in options if about in ("", name)],
                skip_bad_images=self.skip_bad_images,
            )
            return spec.section(None)

        return tuple((name, section(name, path)) for name, path in named)

    def _check_one(self, why: str) -> None:
        for key in ("data", "images", "reader"):
            given = getattr(self, key)
            if len(given) > 1:
                raise UsageError(f"--{key} is given {len(given)} times: {', '.join(given)}", why)


def _split(text: str) -> tuple[str, str]:
    """``NAME=VALUE``, or a value without a name; a path that is there is a path."""
    found = _NAMED.fullmatch(text)
    return ("", text) if found is None or Path(text).exists() else (found[1], found[2])


def _named(texts: Sequence[str], names: Sequence[str], flag: str, sign: str) -> list[tuple[str, str]]:
    """Which collection (empty: all) each text is about, and the rest of it; names may have dots."""
    found = []
    for text in texts:
        name = max((name for name in names if text.startswith(f"{name}{sign}")), key=len, default="")
        before, dot, _ = text.partition("=")[0].partition(sign)
        unknown = _split(text)[0] if sign == "=" else before * bool(dot)
        if unknown and not name:
            raise UnknownNameError(f"collection of {flag}", unknown, names)
        found.append((name, text[len(name) + 1 :] if name else text))
    return found


def _by_name(texts: Sequence[str], names: Sequence[str], flag: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in _named(texts, names, flag, "="):
        if name in found:
            raise UsageError(
                f"{flag} is given twice for {name or 'all collections'}", f"e.g. {flag} NAME={value}"
            )
        found[name] = value
    return found
