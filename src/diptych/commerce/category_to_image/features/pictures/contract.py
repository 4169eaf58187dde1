"""What makes rows of product pictures, and how it is asked for in one line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from diptych.core.errors import UsageError
from diptych.core.registry import Registry
from diptych.encoders.targets import TargetModel

Precision = Literal["float32", "bfloat16"]

_OTHERWISE = "dual"


class PictureEncoder(ABC):
    """Pictures to unit rows; frozen.

    Attributes:
        kind: its name in the registry.
        source: what :func:`make_picture_encoder` takes to make it again.
        options: as they were given, checked and JSON-able.
    """

    kind: ClassVar[str]
    source: str
    options: dict[str, Any]

    @property
    @abstractmethod
    def width(self) -> int:
        """Length of a row."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Of everything that a row depends on besides the picture."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """What has to be printed beside its numbers, JSON-able."""

    @abstractmethod
    def prepared(self, item: Any, name: str) -> Any:
        """What can be done to one picture before the network; called from several threads at once."""

    @abstractmethod
    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        """(n, width) float32 unit rows of what :meth:`prepared` gave."""

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        """What an item is."""
        return "pictures"

    @property
    def texts(self) -> TargetModel | None:
        """Its own text side, whose rows can be compared with its rows of pictures; None without one."""
        return None


class NoOptions(BaseModel):
    """Of kinds that have none."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True)
class PictureKind:
    """A way to make rows of pictures.

    Attributes:
        name: what its source begins with.
        form: how its source is written, for help texts.
        description: one line.
        citation: where it is from.
        options: what it can be told besides.
        make: from what follows ``NAME:`` in the source, the checked options and the precision.
    """

    name: str
    form: str
    description: str
    citation: str
    options: type[BaseModel]
    make: Callable[[str, Any, Precision], PictureEncoder]


PICTURES: Registry[PictureKind] = Registry(
    "kind of picture encoder", "diptych.commerce.category_to_image.features.pictures.kinds"
)


def make_picture_encoder(
    source: str, options: Mapping[str, Any] | None = None, precision: Precision = "float32"
) -> PictureEncoder:
    """The encoder that a source asks for: ``grid``, ``backbone:NAME``, or whatever ``DualEncoder.load`` takes."""
    name, _, rest = source.partition(":")
    known = name in PICTURES.names() and name != _OTHERWISE
    kind = PICTURES.get(name if known else _OTHERWISE)
    try:
        checked = kind.options.model_validate(dict(options or {}))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        there = ", ".join(kind.options.model_fields) or "none"
        raise UsageError(
            f"image option {where!r} of {source}: {first['msg']}", f"{kind.form} has the options: {there}"
        ) from None
    return kind.make(rest if known else source, checked, precision)
