"""The grid of an evaluation: what its numbers depend on, and the work of one cell: train, measure, keep."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from diptych.commerce.catalogue import SETTINGS, Catalogue, Judged, Relevance
from diptych.commerce.category_to_image.evaluation.measure import (
    PRODUCT_MEASURES,
    first_of,
    measure_ranker,
    score_rows,
)
from diptych.commerce.category_to_image.features import (
    MODALITIES,
    CategoryFeatures,
    Modality,
    ProductFeatures,
)
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.rankers import Ranker
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact, encode, write_arrays
from diptych.core.context import check_stop
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.job import Job
from diptych.core.reading import read_arrays, read_json
from diptych.core.version import __version__
from diptych.evaluation.result import Result
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


CELLS = "cells"
FIRST = 10
"""How many products of each category a cell keeps."""


class CellName(NamedTuple):
    """One point of the grid; ``seed`` is -1 for a model that is not trained."""

    setting: str
    model: str
    seed: int

    @property
    def text(self) -> str:
        """For progress and messages."""
        return f"{self.model}, {self.setting}" + ("" if self.seed < 0 else f", seed {self.seed}")

    @property
    def key(self) -> str:
        """Of the job."""
        return f"{self.setting}-{self.model}" + ("" if self.seed < 0 else f"-seed-{self.seed}")


@dataclass(frozen=True, eq=False)
class Cell(Artifact, kind="category_cell", recreate="diptych categories evaluate DATA --out EVALUATION"):
    """A result, and what came first; make one with :meth:`of`.

    Attributes:
        result: with values per query of all measures of categories (``t2i``) and those of products (``i2t``) that a
            cell keeps.
        first: (q, ≤ 10) int64 rows of the judged products that each category found first, -1 where fewer were.
    """

    result: Result
    first: np.ndarray
    scores: np.ndarray  # (q, ≤ 10) float64 theirs
    guess: np.ndarray  # (n,) int64 rows of the judged categories that each product found first, -1 for none
    seen: np.ndarray  # (q,) booleans: the category was trained on
    about: dict[str, Any]  # the model, what it was trained with, seconds

    @classmethod
    def of(cls, result: Result, **values: Any) -> Cell:
        """Keep a result; a category belongs to no product: each is resampled by itself."""
        products = {name: result.per_query["i2t"][name] for name in PRODUCT_MEASURES}
        per_query = {"t2i": dict(result.per_query["t2i"]), "i2t": products}
        alone = np.full(result.protocol.n_texts, -1)
        return cls(replace(result, per_query=per_query, ranks={}, text_image=alone), **values)


@dataclass(frozen=True)
class Cells(Artifact, kind="category_cells"):
    """What all cells of a grid depend on, which may grow by models, settings and seeds."""

    protocol: str


def job_of(folder: Path, protocol: GridProtocol) -> Job[Cell]:
    """Return the cells of an evaluation."""
    return Job(folder / CELLS, Cells(protocol.key), Cell, noun="models")


_LETTERS: dict[str, Modality] = {one[0]: one for one in MODALITIES}

TRAINED: tuple[str, ...] = tuple(
    "clip-" + "".join(one[0] for one in chosen)
    for size in range(1, len(MODALITIES) + 1)
    for chosen in combinations(MODALITIES, size)
)
"""``clip-i`` … ``clip-ita``: every subset of modalities, fewest first."""

_PRINTED = {"bm25": "BM25", "sentence": "sentence encoder"}


def modalities_of(model: str) -> tuple[Modality, ...] | None:
    """What a trained model represents a product by; None for a name of none."""
    return tuple(_LETTERS[letter] for letter in model.removeprefix("clip-")) if model in TRAINED else None


def trained_options(model: str, setting: str, published: bool = False) -> TrainOptions:
    """Return how a model of that name is trained on products' categories of a setting, before anything is set."""
    modalities = modalities_of(model)
    if modalities is None:
        raise UnknownNameError("trained model", model, TRAINED)
    SETTINGS.get(setting)
    if published:
        return TrainOptions.published(modalities, setting)
    return TrainOptions(modalities=modalities, setting=setting)


def printed_name(model: str) -> str:
    """``CLIP-ITA``, ``BM25``, ``sentence encoder``."""
    return _PRINTED.get(model, model.upper())


def options_for(protocol: GridProtocol, name: CellName) -> TrainOptions:
    """The options of one cell's training."""
    modalities = modalities_of(name.model)
    if modalities is None:
        raise UnknownNameError("trained model", name.model, protocol.models)
    base = (
        TrainOptions.published(modalities, name.setting).model_dump()
        if protocol.published
        else protocol.options
    )
    own = {"modalities": modalities, "setting": name.setting, "seed": name.seed, "query": protocol.query}
    return TrainOptions(**{**base, **own})


def ready_ranker(model: str, products: ProductFeatures) -> Ranker:
    """An untrained model for these products."""
    from diptych.commerce.category_to_image.rankers import RANKERS

    return RANKERS.get(model).make(products)


def features_of_nodes(categories: CategoryFeatures, nodes: np.ndarray) -> CategoryFeatures:
    """The rows of some nodes, of those of all nodes."""
    return CategoryFeatures(
        [categories.texts[node] for node in nodes.tolist()],
        categories.text[nodes],
        None if categories.dual is None else categories.dual[nodes],
        categories.about,
    )


@dataclass(frozen=True, eq=False)
class Work:
    """What cells need; processes get a copy of it.

    Attributes:
        seen: per setting and seed of training, (nodes,) booleans: categories that training saw.
        given: models that were trained before, by name; then nothing else is measured.
    """

    folder: Path  # of the evaluation
    protocol: GridProtocol  # of the grid
    train: (
        Catalogue | None
    )  # train, validation: catalogues; None where nothing is trained, or nothing validated
    validation: Catalogue | None
    train_features: ProductFeatures | None  # train_features, validation_features: theirs
    validation_features: ProductFeatures | None
    test_features: ProductFeatures  # of the catalogue that was judged
    categories: CategoryFeatures  # features of all nodes of the tree
    judged: Mapping[str, Judged]  # per setting
    seen: Mapping[tuple[str, int], np.ndarray]
    about: Mapping[str, Any]  # what every number depends on
    given: Mapping[str, Ranker] = field(default_factory=dict)

    def names(self) -> Iterator[CellName]:
        """The grid, setting by setting."""
        for setting in self.protocol.settings:
            for model in self.protocol.models:
                seeds = self.protocol.seeds if self.is_trained(model) else (-1,)
                yield from (CellName(setting, model, seed) for seed in seeds)

    def is_trained(self, model: str) -> bool:
        """Whether cells of this model are trained here, once per seed."""
        return not self.protocol.given and modalities_of(model) is not None

    def run(self, name: CellName) -> Cell:
        """Train and measure a cell."""
        began, spent = time.perf_counter(), time.process_time()
        with one_thread():
            if name.model in self.given:
                ranker = self.given[name.model]
            elif self.is_trained(name.model):
                ranker = self._trained(name)
            else:
                ranker = ready_ranker(name.model, self.test_features)
            trained = time.perf_counter() - began
            cell = self.measured(name, ranker)
        cell.about.update(
            seconds=round(time.perf_counter() - began, 3),
            seconds_of_training=round(trained, 3),
            processor_seconds=round(time.process_time() - spent, 3),
        )
        return cell

    def measured(self, name: CellName, ranker: Ranker) -> Cell:
        """The cell of a ready model; nothing is written."""
        judged = self.judged[name.setting]
        asking = features_of_nodes(self.categories, judged.nodes)
        scored = score_rows(ranker, self.test_features, asking, judged)
        said = {**self.about, **({} if name.seed < 0 else {"seed": name.seed})}
        result = measure_ranker(ranker, self.test_features, asking, judged, about=said, scored=scored)
        first, scores = first_of(scored, FIRST)
        guess, _ = first_of(scored, 1, side="i2t")
        seed = name.seed if name.seed >= 0 else (self.protocol.seeds or (0,))[0]
        known = self.seen.get((name.setting, seed))
        return Cell.of(
            result,
            first=first,
            scores=scores,
            guess=guess[:, 0],
            seen=np.zeros(len(judged.nodes), bool) if known is None else known[judged.nodes],
            about={
                "ranker": ranker.describe(),
                "fingerprint": ranker.fingerprint,
                "seen_known": known is not None,
            },
        )

    def _trained(self, name: CellName) -> Ranker:
        from diptych.commerce.category_to_image.training import train

        assert self.train is not None
        assert self.train_features is not None
        validation = None
        if self.validation is not None and self.validation_features is not None:
            validation = (self.validation, self.validation_features)
        model = train(
            self.train,
            self.train_features,
            self.categories,
            options_for(self.protocol, name),
            validation=validation,
        )
        check_stop("stopped: every model that was measured is kept")
        return model


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch compute with one thread: its sums, and so the bits, depend on how many there are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def run_grid(work: Work, jobs: int = 1) -> None:
    """Make every cell that is not finished, or is corrupt."""
    if jobs < 1:
        raise UsageError(f"{jobs} jobs: at least one process is needed")
    units = {name.key: name for name in work.names()}
    job_of(work.folder, work.protocol).run(units, Work.run, processes=jobs, setup=_given, setup_args=(work,))


def _given(work: Work) -> Work:
    return work
