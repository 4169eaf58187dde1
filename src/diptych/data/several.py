"""The collections that are named together: each by ``NAME=DATASET``, with options of its own or of all.

``--images NAME=FOLDER``, ``--reader NAME=READER`` and ``--reader-option NAME.KEY=VALUE`` are about one of them, and
about all without a name.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from diptych.core.errors import UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.options import Options, parameter
from diptych.data.collection import Collection
from diptych.data.source import DataSpec

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


class DataChoices(Options):
    data: list[str] = parameter(
        [],
        "A dataset or a shop's log: folder or file. Of several NAME=DATASET, repeated.",
    )
    images: list[str] = parameter([], "Folder of images, where it is not next to the data; or NAME=FOLDER.")
    reader: list[str] = parameter(
        [],
        "The data's format, where it is not recognised; or NAME=READER.",
        names="diptych.data.readers:READERS",
    )
    reader_option: list[str] = parameter([], "KEY=VALUE for the reader; or NAME.KEY=VALUE. Repeatable.")
    skip_bad_images: bool = parameter(False, "Leave out and count images that cannot be read.")

    def several(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Return a name (empty: the collection's own) and a recipe's data section for each collection."""
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
            return spec.section()

        return tuple((name, section(name, path)) for name, path in named)

    def one(self, why: str = "this study is of one collection") -> dict[str, Any] | None:
        for key in ("data", "images", "reader"):
            if len(given := getattr(self, key)) > 1:
                raise UsageError(f"--{key} is given {len(given)} times: {', '.join(given)}", why)
        return next((section for _, section in self.several()), None)


def named_apart(collections: Iterable[Collection]) -> dict[str, Collection]:
    """Return collections by their names; two that are called alike, or would share a folder, are refused."""
    found: dict[str, Collection] = {}
    for one in collections:
        folder = safe_name(one.name).lower()
        if same := next((name for name in found if safe_name(name).lower() == folder), None):
            both = repr(same) if same == one.name else f"{same!r} and {one.name!r}, which are one"
            raise UsageError(f"two collections are called {both}", "name them: NAME=DATASET")
        found[one.name] = one
    return found


def _split(text: str) -> tuple[str, str]:
    """``NAME=VALUE``, or a value without a name; a path that is there is a path."""
    found = _NAMED.fullmatch(text)
    return ("", text) if found is None or Path(text).exists() else (found[1], found[2])


def _named(texts: Sequence[str], names: Sequence[str], flag: str, sign: str) -> list[tuple[str, str]]:
    """Return which collection (empty: all) each text is about, and the rest of it; names may have dots."""
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
            whose = name or "all collections"
            raise UsageError(f"{flag} is given twice for {whose}", f"e.g. {flag} NAME={value}")
        found[name] = value
    return found
