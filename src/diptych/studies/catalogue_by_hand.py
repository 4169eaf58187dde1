"""The command that makes the like of a study's evaluation of models by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from diptych.studies.catalogue_options import CatalogueOptions


def by_hand(
    data: Mapping[str, Any] | None,
    options: CatalogueOptions,
    models: Sequence[str],
    settings: Sequence[str],
    seeds: Sequence[int],
) -> str:
    """``diptych categories evaluate …``, braces doubled as commands of studies have them.

    Empty where the command line cannot say it: of generated products, of seeds that do not count up from 0, where no
    picture may be missing, or where pictures that cannot be read are left out.
    """
    if data is None or list(seeds) != list(range(len(seeds))):
        return ""
    if options.missing != "none" or data.get("skip_bad_images"):
        return ""
    words = ["diptych", "categories", "evaluate", str(data["path"]), "--out", "evaluation"]
    words += ["--model", ",".join(models), "--setting", ",".join(settings), "--seeds", str(len(seeds))]
    words += ["--image-encoder", options.image or "none", "--text-encoder", options.text]
    words += _several("--image-option", options.image_options)
    words += ["--published"] if options.published else _several("--set", options.train)
    if data.get("reader"):
        words += ["--reader", str(data["reader"])]
    words += _several("--reader-option", data.get("options") or {})
    for flag, value, usual in (
        ("--relevance", options.relevance, "label"),
        ("--query", options.query, "name"),
        ("--judged-seed", options.draw, 0),
        ("--split-by", options.split, None),
        ("--attribute-form", options.attributes, "named"),
    ):
        words += [] if value == usual else [flag, str(value)]
    return shlex.join(words).replace("{", "{{").replace("}", "}}")


def _several(flag: str, values: Mapping[str, Any]) -> list[str]:
    return [word for key, value in _flat(values) for word in (flag, f"{key}={value}")]


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys, and values as they are typed."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value if isinstance(value, str) else json.dumps(value)
