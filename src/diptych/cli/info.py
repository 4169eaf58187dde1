"""``diptych info``: what is installed, what can be named, or what a path holds."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.cli.console import next_step, show
from diptych.cli.verbs import completion
from diptych.core.errors import UnknownNameError
from diptych.core.extras import EXTRA_OF
from diptych.core.reading import read_json, read_toml
from diptych.core.table import Table
from diptych.training.environment import environment

# Topics of names: the registry, and where its names are used.
NAMES = {
    "encoders": ("diptych.encoders.family:FAMILIES", "how an encoder is named"),
    "datasets": ("diptych.data.known:KNOWN", "diptych data show NAME"),
    "readers": ("diptych.data.readers:READERS", "--reader"),
    "recipes": ("diptych.training.recipe:recipe_names", "diptych train NAME"),
    "objectives": ("diptych.objectives:OBJECTIVES", "objective.name of a recipe"),
    "measures": ("diptych.metrics:MEASURES", "--measure"),
    "positives": ("diptych.data.extended_positives:EXTENDED_POSITIVES", "--positives NAME:PATH"),
    "judgements": ("diptych.data.judgements:JUDGEMENTS", "--judgements NAME:PATH"),
    "engines": ("diptych.index:ENGINES", "diptych index --engine"),
    "perturbations": ("diptych.analysis.perturbations:PERTURBATIONS", "diptych analyse stress --perturb"),
    "granularity": (
        "diptych.analysis.granularity.features:FEATURES",
        "diptych analyse granularity --feature",
    ),
    "protocols": ("diptych.evaluation.variants.axes:AXES", "what diptych analyse protocol varies"),
    "log-formats": ("diptych.commerce.logs:LOG_FORMATS", "diptych intent ingest --format"),
    "statistics": ("diptych.commerce.purchase_intent.statistics:STATISTICS", "diptych intent describe"),
    "intent-features": ("diptych.commerce.purchase_intent.features:FEATURES", "diptych intent features"),
    "intent-models": ("diptych.commerce.purchase_intent.models:MODELS", "diptych intent train --model"),
    "intent-splits": ("diptych.commerce.purchase_intent.models:SPLITS", "diptych intent evaluate --split"),
    "intent-checks": ("diptych.commerce.purchase_intent.auditing:CHECKS", "diptych intent audit --check"),
    "taxonomies": ("diptych.commerce.taxonomy:TAXONOMIES", "diptych categories tree --format"),
    "settings": ("diptych.commerce.catalogue:SETTINGS", "diptych categories train --setting"),
    "catalogue-splits": ("diptych.commerce.catalogue:SPLITS", "diptych categories train --split-by"),
}

_WEIGHTS = (".th", ".pth", ".pt", ".bin", ".safetensors")
_DEPTH = 3
_LONGEST = 120


def info(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A topic of names, such as measures; a dataset, run, encoder, embeddings, index, result or "
            "checkpoint; or an encoder's name such as xvlm:FILE.",
            show_default=False,
            autocompletion=completion("diptych.cli.info:NAMES"),
        ),
    ] = None,
) -> None:
    """Print what is installed and which names there are, or what a path holds.

    Examples:
        diptych info
        diptych info measures
        diptych info runs/flickr8k
        diptych info albef:flickr30k.pth
    """
    if name is None:
        show(_installed())
        rows = [(topic, where) for topic, (_, where) in NAMES.items()]
        show(Table.of("names", "", ("diptych info TOPIC", "used as"), rows))
        next_step("diptych info measures")
    elif name in NAMES:
        show(_names(name))
    elif Path(name).exists():
        show(Table.of(name, "", ("what", "value"), _about(Path(name))))
    elif ":" in name:
        show(Table.of(name, "", ("what", "value"), _encoder(name)))
    else:
        raise UnknownNameError("path or topic", name, NAMES)


def _installed() -> Table:
    from importlib import metadata

    values = environment()
    rows = [("diptych", values["diptych"]), ("python", f"{values['python']}, {values['system']}")]
    rows += [(name, version) for name, version in values["libraries"].items()]
    installed = metadata.packages_distributions()
    for library, extra in EXTRA_OF.items():
        names = installed.get(library, ())
        versions = {name: metadata.version(name) for name in names if name not in values["libraries"]}
        rows += versions.items() if names else [(library, f"not installed: pip install 'diptych[{extra}]'")]
    threads = "" if values["threads"] is None else f", {values['threads']} threads"
    rows.append(("CPUs", f"{values['processors']}{threads}"))
    return Table.of("installed", "", ("what", "version"), [*rows, ("GPU", values["accelerator"] or "none")])


def _names(topic: str) -> Table:
    registry, where = NAMES[topic]
    module, _, attribute = registry.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    rows = []
    for one in found() if callable(found) else found:
        if isinstance(found, dict):
            is_text = isinstance(found[one], str)
            line = found[one] if is_text else getattr(found[one], "description", None)
            rows.append((one, line or str(found[one].__doc__).split("\n")[0]))
        elif isinstance(one, str):
            rows.append((one, ""))
        else:
            forms = ", ".join(form for form in getattr(one, "forms", ()) if isinstance(form, str))
            rows.append((one.name, f"{one.description}{f': {forms}' if forms else ''}"))
    return Table.of(f"{topic}: {where}", "", ("name", "what it is"), rows)


def _about(path: Path) -> list[tuple[str, str]]:
    is_encoder = (path / "diptych.json").is_file()
    if (rows := _headers(path)) and not is_encoder:
        return rows
    if path.is_file() and path.suffix in _WEIGHTS:
        from diptych.encoders.official.checkpoint import describe

        return describe(path)
    from diptych.encoders.family import FAMILIES

    if is_encoder or any(one.recognises(path) for one in FAMILIES if path.is_dir()):
        return _encoder(str(path))
    from diptych.commerce.catalogue import catalogue_of
    from diptych.data import read_collection
    from diptych.data.products import paths_of

    collection = read_collection(path)
    rows = [("kind", "dataset"), ("contents", collection.describe())]
    if any(paths_of(record) for record in collection.records or ()):
        rows.append(("products", catalogue_of(collection).describe()))
    return rows + [("note", note) for note in collection.notes]


def _headers(path: Path) -> list[tuple[str, str]]:
    """Return what the headers in a folder, or of a file, say, by dotted names; nothing where there are none of ours."""
    is_folder = path.is_dir()
    summary = path if path.suffix == ".json" else path.with_suffix(".summary.json")
    files = sorted(path.glob("*.json")) if is_folder else [summary] if summary.is_file() else []
    rows = [row for file in files for row in _header(file)]
    if (path / "recipe.toml").is_file():
        rows += _fields(read_toml(path / "recipe.toml"), "recipe", _DEPTH)
    if rows and is_folder:
        rows.append(("files", ", ".join(sorted(file.name for file in path.iterdir()))))
    return rows


def _header(file: Path) -> list[tuple[str, str]]:
    content = read_json(file)
    known = {"format", "artifact"} | (
        {"k", "origin"} if file.name in ("picks.json", "sparse.json") else set()
    )
    if not isinstance(content, dict) or not known & content.keys():
        return []
    kind = str(content.get("artifact", file.name.split(".")[-2])).replace("_", " ")
    rows = [("kind", kind), ("fingerprint", str(content.get("fingerprint", "")))]
    return [*rows, *_fields(content.get("content", content), "", _DEPTH)]


def _fields(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth and value:
        for key, inner in value.items():
            yield from _fields(inner, f"{name}.{key}" if name else str(key), depth - 1)
        return
    if isinstance(value, dict | list):
        text = ", ".join(map(str, value))
        is_short = len(text) <= _LONGEST and not any(isinstance(one, dict | list) for one in value)
        yield name, text if is_short else f"{len(value):,} values"
    elif value is not None:
        yield name, f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _encoder(source: str) -> list[tuple[str, str]]:
    from diptych.encoders.dual_encoder import DualEncoder

    return [
        ("kind", "encoder"),
        *((key, str(value)) for key, value in DualEncoder.load(source).describe().items()),
    ]
