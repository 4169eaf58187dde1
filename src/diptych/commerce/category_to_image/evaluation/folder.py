"""The folder of an evaluation: begin it, or go on with one of the same protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from diptych.commerce.catalogue.relevance import Judged, Relevance
from diptych.commerce.category_to_image.evaluation.protocol import GridProtocol
from diptych.core.arrays import read_arrays, write_arrays
from diptych.core.errors import MismatchError
from diptych.core.files import read_json, write_json
from diptych.core.version import __version__
from diptych.data.taxonomy import CategoryTree
from diptych.metrics.ground_truth import GroundTruth

MARKER = "evaluation.json"
RESULTS = "results.json"
TREE = "tree.json"
JUDGED = "judged"
FORMAT = 1
_NEW = "give another --out, or remove the folder"


def begin(
    folder: Path,
    protocol: GridProtocol,
    tree: CategoryTree,
    judged: Mapping[str, Judged],
    about: Mapping[str, Any],
) -> None:
    """Write what is evaluated; a folder of the same protocol may grow by models, settings and seeds."""
    said = {
        "format": FORMAT,
        "kind": "categories",
        "key": protocol.key,
        "diptych": __version__,
        "protocol": protocol.to_dict(),
        **about,
    }
    if (folder / MARKER).is_file():
        there = read_json(folder / MARKER)
        if not isinstance(there, dict) or there.get("format") != FORMAT or there.get("kind") != "categories":
            raise MismatchError(f"{folder} holds no evaluation of categories of format {FORMAT}", _NEW)
        other = GridProtocol.from_dict(there["protocol"])
        if other.key != protocol.key:
            found = "; ".join(other.differences(protocol))
            raise MismatchError(f"{folder} holds another evaluation; there and asked for: {found}", _NEW)
        if {name: there.get(name) for name in said} != said:
            (folder / RESULTS).unlink(missing_ok=True)  # they are of another grid
    write_json(folder / MARKER, said)
    if not (folder / TREE).is_file():
        write_json(folder / TREE, [list(path) for path in tree.paths])
    for setting, one in judged.items():
        if not (file := _judged_file(folder, setting)).is_file():
            write_arrays(
                file,
                nodes=one.nodes,
                products=one.products,
                labels=one.labels,
                image=one.truth.i2t.queries,
                text=one.truth.i2t.rows,
                seed=np.array(one.seed),
                relevance=np.array(one.relevance),
                without_category=np.array(one.without_category),
            )


def read_tree(folder: Path) -> CategoryTree:
    """The categories of an evaluation."""
    return CategoryTree(read_json(folder / TREE))


def read_judged(folder: Path, setting: str) -> Judged:
    """What was relevant to what in a setting."""
    names = ("nodes", "products", "labels", "image", "text", "seed", "relevance", "without_category")
    nodes, products, labels, image, text, seed, relevance, without = read_arrays(
        _judged_file(folder, setting), names
    )
    truth = GroundTruth.from_pairs(image, text, len(products), len(nodes), np.full(len(nodes), -1))
    answered = truth.i2t.counts > 0
    if not answered.all():  # by paths a product may be relevant to no category that asks
        truth = replace(truth, asked={"i2t": answered})
    return Judged(
        nodes, products, truth, labels, setting, cast(Relevance, str(relevance)), int(seed), int(without)
    )


def _judged_file(folder: Path, setting: str) -> Path:
    return folder / JUDGED / f"{setting}.npz"
