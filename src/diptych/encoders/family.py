"""Encoder families: how a name or a folder becomes a DualEncoder, one declaration per family."""

import importlib
import logging
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from diptych.core.errors import StorageError, UsageError, nearest_path
from diptych.core.extras import require
from diptych.core.reading import read_json
from diptych.core.registry import Registry
from diptych.encoders.dual_encoder import CONFIG_FILE, DualEncoder, EncoderHeader
from diptych.encoders.given_rows import is_folder_of_rows

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Family:
    """One kind of encoder and how it is found and loaded."""

    name: str  # what diptych.json calls it
    description: str  # one line
    forms: tuple[str, ...]  # how its sources are written, for help texts and errors
    prefix: str | None  # PREFIX:rest names a source of this family; None when it has folders only
    load: Callable[[str, str | None], DualEncoder]  # (source without prefix, device); imports the library
    recognises: Callable[[Path], bool] = lambda folder: False  # whether a folder without diptych.json is its
    matches: bool = False  # whether its encoders have a matching head; see diptych.encoders.rerank
    load_texts: Callable[[str, str | None], DualEncoder] | None = None  # without what only images need


FAMILIES: Registry[Family] = Registry("encoder family", "diptych.encoders.family", "diptych.encoders")


def _loader(place: str, extra: str, **options: Any) -> Callable[[str, str | None], DualEncoder]:
    """Return a function that imports ``MODULE:CLASS``, with the library it needs, and opens a source."""
    module, _, name = place.partition(":")

    def load(source: str, device: str | None) -> DualEncoder:
        if extra:
            require("torch", extra, f"the encoder {source}")
        found = getattr(importlib.import_module(f"diptych.encoders.{module}"), name)
        return found.open(source, device=device, **options)  # type: ignore[no-any-return]

    return load


def _has(file: str, folder: Path) -> bool:
    return bool(file) and (folder / file).is_file()


def model_type(folder: Path) -> Any:
    file = folder / "config.json"
    content = read_json(file) if file.is_file() else None
    return content.get("model_type") if isinstance(content, dict) else None


def _is_huggingface(folder: Path) -> bool:
    # modules.json: a model of sentence-transformers, a CLIP among others.
    if (folder / "modules.json").is_file() or model_type(folder) is None:
        return False
    from diptych.encoders.huggingface import TEXT_RULES

    return model_type(folder) in TEXT_RULES


_RECOGNISED: dict[str, Callable[[Path], bool]] = {
    "blip": lambda folder: model_type(folder) == "blip",
    "huggingface": _is_huggingface,
    "rows": is_folder_of_rows,
}
for _name, _about in tomllib.loads(
    (resources.files("diptych.encoders") / "families.toml").read_text(encoding="utf-8")
).items():
    _loading = _about.pop("loader"), _about.pop("extra", "pretrained")
    _about["load"] = _loader(*_loading)
    _about["load_texts"] = _loader(*_loading, images=False) if _name == "two_tower" else None
    _about["recognises"] = _RECOGNISED.get(_name, partial(_has, _about.pop("file", "")))
    FAMILIES.add(Family(_name, forms=tuple(_about.pop("forms")), **{"prefix": None, **_about}))


_CHECKPOINTS = (".th", ".pth", ".pt")  # no library of encoders calls its weights so


def _checkpoint_fix(place: Path) -> str:
    known = ", ".join(f"{name}:{place}" for name in ("albef", "xvlm", "blip"))
    return f"say whose checkpoint it is: {known}; diptych info {place} looks into it"


def _of_folder(folder: Path) -> Family:
    marker = folder / CONFIG_FILE
    if marker.is_file():
        return FAMILIES.get(EncoderHeader.open(folder).family)
    if (folder / "sparse.json").is_file():
        raise UsageError(
            f"{folder} makes bags of terms; dense embeddings are needed here",
            "name the encoder that the head was trained on; in Python SparseEncoder.load reads this folder",
        )
    fitting = [family for family in FAMILIES if family.recognises(folder)]  # the hub has some in both layouts
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


def _reading(declared: Family, options: str) -> Family:
    """Return a family whose encoders read texts as ``characters=150&prefix=a photo of a `` says."""
    given = dict(parse_qsl(options, keep_blank_values=True))
    if not given or given.keys() - {"characters", "prefix"} or not given.get("characters", "1").isdigit():
        raise UsageError(f"#{options} does not say how to read texts", "#characters=150&prefix=a photo of a ")

    def load(source: str, device: str | None) -> DualEncoder:
        from diptych.encoders.pretrained import PretrainedEncoder

        encoder = declared.load(source, device)
        if not isinstance(encoder, PretrainedEncoder):
            raise UsageError(f"#{options}: {declared.name} reads texts in one way", f"leave #{options} out")
        if "characters" in given:
            encoder = encoder.cut_texts_at(int(given["characters"]))
        return encoder.prefix_texts_with(given["prefix"]) if "prefix" in given else encoder

    return replace(declared, load=load, load_texts=None)


def resolve(name_or_folder: str | Path) -> tuple[Family, str]:
    """Find the family of a source, and the source without its prefix; a run stands for its best encoder.

    After a ``#`` stands how texts are read: ``hf:openai/clip-vit-large-patch14#characters=150``.
    """
    source, mark, options = str(name_or_folder).rpartition("#")
    if mark and "=" in options:
        declared, found = resolve(source)
        return _reading(declared, options), found
    source, folder = str(name_or_folder), Path(name_or_folder).expanduser()
    if (folder / "run.json").is_file():
        if not (folder / "best").is_dir():
            raise UsageError(f"{source} has no trained encoder yet", f"diptych train --resume {source}")
        source = str(folder / "best")
    folder = Path(source).expanduser()
    if folder.is_dir():
        return _of_folder(folder), str(folder)
    for declared in FAMILIES:
        if declared.prefix and source.startswith(f"{declared.prefix}:"):
            return declared, source.removeprefix(f"{declared.prefix}:")
    if folder.is_file():
        raise UsageError(
            f"{source} is a file, which does not say what encoder it holds", _checkpoint_fix(folder)
        )
    forms = ", ".join(form for declared in FAMILIES for form in declared.forms)
    raise UsageError(
        f"{source!r} is neither a folder nor a name with a known prefix",
        nearest_path(folder) or f"an encoder is one of: {forms}",
    )


def rooted(source: str) -> str:
    """``source`` with the path in it made absolute, where there is one: it then means the same from any folder.

    >>> rooted("hf:openai/clip-vit-base-patch32")
    'hf:openai/clip-vit-base-patch32'
    """
    prefix, colon, rest = source.rpartition(":")
    rest, mark, options = rest.partition("#")
    place = Path(rest).expanduser()
    return f"{prefix}{colon}{place.resolve()}{mark}{options}" if rest and place.exists() else source
