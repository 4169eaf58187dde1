"""What a reader of one dataset format declares, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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
