"""What the numbers of a grid depend on: a folder goes on with the same only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from diptych.commerce.catalogue.catalogue import Judged, Relevance
from diptych.core.artifact import Artifact, encode, write_arrays
from diptych.core.errors import MismatchError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_arrays, read_json
from diptych.core.version import __version__
from diptych.data.taxonomy import CategoryTree
from diptych.metrics.ground_truth import GroundTruth

_GRID = ("models", "settings", "seeds")


@dataclass(frozen=True)
class GridProtocol:
    """What is evaluated, and how.

    Attributes:
        models, settings: what the grid is made of.
        seeds: of trained models; others are measured once.
        train, validation, test: fingerprints of the three catalogues; empty where there is none.
        encoders: fingerprint of what made the features.
        relevance: ``label`` or ``path``.
        query: what stands for a category: its ``name`` or its ``path``.
        published: whether models are trained as the thesis says.
        options: of training, as given; modality, setting and seed are each cell's own.
        judged_seed: of the draws that judge the test products.
        given: of models that were trained before, what they are; nothing is fitted then.
        pictures: which products stand without one; empty where all have one.
    """

    models: tuple[str, ...]
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    train: str
    validation: str
    test: str
    encoders: str
    relevance: str
    query: str
    published: bool
    options: dict[str, Any]
    judged_seed: int
    given: str = ""
    pictures: str = ""

    @property
    def key(self) -> str:
        """A short name of what every cell depends on; the grid may grow by models, settings and seeds."""
        return fingerprint({name: value for name, value in encode(self, {}).items() if name not in _GRID})

    def differences(self, other: GridProtocol) -> list[str]:
        """What is not the same besides the grid itself, e.g. ``query name and path``."""
        mine, theirs = asdict(self), asdict(other)
        found = []
        for name in mine:
            if name in _GRID or mine[name] == theirs[name]:
                continue
            if name == "options":
                both = dict.fromkeys([*mine[name], *theirs[name]])
                found += [
                    f"{key} {mine[name].get(key)} and {theirs[name].get(key)}"
                    for key in both
                    if mine[name].get(key) != theirs[name].get(key)
                ]
            else:
                found.append(f"{name} {_said(mine[name])} and {_said(theirs[name])}")
        return found

    def line(self) -> str:
        """How it was made, for the line under every table."""
        way = "as the chapter says (compat published)" if self.published else "by our defaults"
        seeds = ", ".join(map(str, self.seeds))
        return "; ".join(
            [
                f"relevance by {self.relevance}",
                f"a category's text is its {self.query}",
                f"{self.given}, nothing fitted" if self.given else f"trained {way}, seeds {seeds}",
                f"judged with seed {self.judged_seed}",
                "P@k over k, mAP@k over min(k, relevant products), mAP-hits@k over those found (compat), R-precision "
                "over relevant products",
                "ties expected",
            ]
        )


def _said(value: Any) -> str:
    return "none" if value == "" else str(value)


RESULTS = "results.json"
TREE = "tree.json"
JUDGED = "judged"


@dataclass(frozen=True)
class GridHeader(
    Artifact, kind="category_evaluation", recreate="diptych categories evaluate DATA --out EVALUATION"
):
    """What is evaluated, and what readers are told of it."""

    protocol: GridProtocol
    about: dict[str, Any]


MARKER = GridHeader.marker()


def begin(
    folder: Path,
    protocol: GridProtocol,
    tree: CategoryTree,
    judged: Mapping[str, Judged],
    about: Mapping[str, Any],
) -> None:
    """Write what is evaluated; a folder of the same protocol may grow by models, settings and seeds."""
    header = GridHeader(protocol, {"diptych": __version__, **about})
    if GridHeader.is_at(folder):
        there = GridHeader.open(folder)
        if there.protocol.key != protocol.key:
            found = "; ".join(there.protocol.differences(protocol))
            raise MismatchError(
                f"{folder} holds another evaluation; there and asked for: {found}",
                "give another --out, or remove the folder",
            )
        if there != header:
            (folder / RESULTS).unlink(missing_ok=True)  # they are of another grid
    header.save(folder / MARKER)
    if not (folder / TREE).is_file():
        write_json(folder / TREE, [list(path) for path in tree.paths])
    for setting, one in judged.items():
        if not (file := _judged_file(folder, setting)).is_file():
            write_arrays(
                file,
                dict(
                    nodes=one.nodes,
                    products=one.products,
                    labels=one.labels,
                    image=one.truth.i2t.queries,
                    text=one.truth.i2t.rows,
                    seed=np.array(one.seed),
                    relevance=np.array(one.relevance),
                    without_category=np.array(one.without_category),
                ),
            )


def read_tree(folder: Path) -> CategoryTree:
    """The categories of an evaluation."""
    return CategoryTree(read_json(folder / TREE))


def read_judged(folder: Path, setting: str) -> Judged:
    """What was relevant to what in a setting."""
    names = ("nodes", "products", "labels", "image", "text", "seed", "relevance", "without_category")
    nodes, products, labels, image, text, seed, relevance, without = read_arrays(
        _judged_file(folder, setting), names
    ).values()
    truth = GroundTruth.from_pairs(image, text, len(products), len(nodes), np.full(len(nodes), -1))
    answered = truth.i2t.counts > 0
    if not answered.all():  # by paths a product may be relevant to no category that asks
        truth = replace(truth, asked={"i2t": answered})
    return Judged(
        nodes, products, truth, labels, setting, cast(Relevance, str(relevance)), int(seed), int(without)
    )


def _judged_file(folder: Path, setting: str) -> Path:
    return folder / JUDGED / f"{setting}.npz"
