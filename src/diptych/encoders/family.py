"""Encoder families: how a name or a folder becomes a DualEncoder, one declared file per family."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from diptych.core.errors import StorageError, UsageError
from diptych.core.registry import Registry
from diptych.encoders.dual_encoder import CONFIG_FILE, DualEncoder, EncoderHeader

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Family:
    """One kind of encoder and how it is found and loaded.

    Attributes:
        name: what ``diptych.json`` and ``DualEncoder.load(family=...)`` call it.
        description: one line.
        forms: how its sources are written, for help texts and errors.
        prefix: ``PREFIX:rest`` names a source of this family; None when it has folders only.
        recognises: whether a folder without ``diptych.json`` is one of this family's.
        load: (source without prefix, device) to an encoder; imports the library it needs.
        matches: whether its encoders also have a matching head; see :mod:`diptych.encoders.matching`.
    """

    name: str
    description: str
    forms: tuple[str, ...]
    prefix: str | None
    recognises: Callable[[Path], bool]
    load: Callable[[str, str | None], DualEncoder]
    matches: bool = False


FAMILIES: Registry[Family] = Registry("encoder family", "diptych.encoders.families")


_CHECKPOINTS = (".th", ".pth", ".pt")  # no library of encoders calls its weights so


def _checkpoint_fix(place: Path) -> str:
    """How to load a file of weights that does not say whose it is."""
    known = ", ".join(f"{name}:{place}" for name in ("albef", "xvlm", "blip"))
    return f"say whose checkpoint it is: {known}; diptych info {place} looks into it"


def _strip(source: str, family: Family) -> str:
    return source.removeprefix(f"{family.prefix}:") if family.prefix else source


def _of_folder(folder: Path) -> Family:
    marker = folder / CONFIG_FILE
    if marker.is_file():
        return FAMILIES.get(EncoderHeader.open(folder).family)
    fitting = [family for family in FAMILIES if family.recognises(folder)]
    if not fitting:
        names = sorted(path.name for path in folder.iterdir())
        weights = [name for name in names if name.endswith(_CHECKPOINTS)]
        raise StorageError(
            f"{folder} holds no encoder that is known (found: {', '.join(names[:8]) or 'nothing'})",
            _checkpoint_fix(folder / weights[0])
            if weights
            else f"expected {CONFIG_FILE}, open_clip_config.json, or the config.json of a CLIP-like model",
        )
    if len(fitting) > 1:
        others = ", ".join(family.name for family in fitting[1:])
        logger.info("%s can be read as %s and %s; reading the first", folder, fitting[0].name, others)
    return fitting[0]


def resolve(name_or_folder: str | Path, family: str | None = None) -> tuple[Family, str]:
    """Find the family of a source, and the source without its prefix.

    A folder with ``diptych.json`` says its family; one that several families recognise (the hub
    has folders in both layouts) goes to the first by name.
    """
    source = str(name_or_folder)
    if family is not None:
        declared = FAMILIES.get(family)
        return declared, _strip(source, declared)
    folder = Path(source).expanduser()
    if folder.is_dir():
        return _of_folder(folder), str(folder)
    for declared in FAMILIES:
        if declared.prefix and source.startswith(f"{declared.prefix}:"):
            return declared, _strip(source, declared)
    if folder.is_file():
        raise UsageError(
            f"{source} is a file, which does not say what encoder it holds", _checkpoint_fix(folder)
        )
    forms = ", ".join(form for declared in FAMILIES for form in declared.forms)
    raise UsageError(
        f"{source!r} is neither a folder nor a name with a known prefix", f"an encoder is one of: {forms}"
    )


def rooted(source: str) -> str:
    """``source`` with the path in it made absolute, where there is one: it then means the same from any folder.

    >>> rooted("hf:openai/clip-vit-base-patch32")
    'hf:openai/clip-vit-base-patch32'
    """
    prefix, colon, rest = source.rpartition(":")
    place = Path(rest).expanduser()
    return f"{prefix}{colon}{place.resolve()}" if rest and place.exists() else source
