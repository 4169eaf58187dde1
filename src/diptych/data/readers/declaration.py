"""What a reader of one dataset format declares, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from diptych.core.errors import DataError, UsageError, nearest_path
from diptych.core.registry import Registry
from diptych.data.collection import Collection


@dataclass(frozen=True)
class Reader:
    """How one dataset format is recognised and read.

    Attributes:
        name: what ``--reader`` calls it.
        description: one line for help texts.
        recognises: whether a path looks like this format; cheap, reads at most a file's beginning.
        read: path and keyword options to a Collection.
        options: the keyword options and what each means.
        general: of several formats that recognise a path, the least general one reads it.
    """

    name: str
    description: str
    recognises: Callable[[Path], bool]
    read: Callable[..., Collection]
    options: dict[str, str]
    general: int = 0


READERS: Registry[Reader] = Registry("reader", "diptych.data.readers")


def has_own_format(path: Path) -> bool:
    """Return whether it is a folder, or a file of a format that no other kind of data is written in."""
    if not path.is_file():
        return path.is_dir()
    return any(one.general == 0 and one.recognises(path) for one in READERS)


def read_collection(path: Path | str, reader: str | None = None, **options: Any) -> Collection:
    """Read a dataset.

    Args:
        path: a folder or file, or a hub name when ``reader`` is ``"huggingface"``.
        reader: the format's name; recognised from the path when not given.
        options: the reader's own options, e.g. ``images="folder/of/pictures"``.

    Raises:
        UsageError: no reader recognises the path, or an option is not one of the reader's.
        DataError: the path does not exist, or its content is not as its format says.
    """
    path = Path(path)
    if reader is None:
        if not path.exists():
            raise DataError(f"{path} does not exist", f"{nearest_path(path)}give a dataset's folder or file")
        found = sorted((r for r in READERS if r.recognises(path)), key=lambda r: r.general)
        if not found:
            raise UsageError(
                f"no reader recognises {path}",
                f"name the format with --reader, one of {', '.join(READERS.names())}",
            )
        chosen = found[0]
    else:
        chosen = READERS.get(reader)
    given = {key: value for key, value in options.items() if value is not None}
    for key in given:
        if key not in chosen.options:
            known = ", ".join(chosen.options) or "none"
            raise UsageError(f"reader {chosen.name!r} has no option {key!r}", f"its options: {known}")
    return chosen.read(path, **given)
