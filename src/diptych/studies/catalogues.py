"""Rows of a catalogue: models of categories and products are trained and evaluated together, rows are read from that.

::

    studies/
      cti.table-7.1/             a study's folder
      cti.catalogues/            beside it, shared by the studies of the paper
        NAME-KEY/                one catalogue, measured in one way; KEY says which
          evaluation/            as ``diptych categories evaluate`` writes it; it grows by models, settings and seeds
          rows/ROW-seed-N/       a row's values per category

A user may set (``--set KEY=VALUE``) ``features.image``, ``features.text``, ``features.KEY`` of the image encoder,
``train.KEY`` of training, and ``measure.KEY``: see :class:`MeasureOptions`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field

from diptych.core.errors import DataError, StorageError, UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.studies.evidence import Evidence, keep
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.results import Measurement, Measuring
from diptych.studies.sources import Source, Subject, logger
from diptych.studies.study import AS_PAPER, PUBLISHED, Row
from diptych.studies.verdict import Measured

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.errors import ErrorCounts
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.commerce.category_to_image.evaluation.grid import Cell
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.data.collection import Collection

_SECTIONS = ("features", "train", MEASURE)
_OF_ROWS = ("modalities", "setting", "seed", "query", "resample")
"""Options of training that rows, seeds and ``measure.query`` set; ``resample`` would see other categories per epoch."""

_COLUMNS = {name: name for name in ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision")}
_COLUMNS |= {f"mAP@{k}{PUBLISHED}": f"mAP-hits@{k}" for k in (5, 10)}
"""Columns and their measures: mAP@k of the chapter looks divided by the hits among the first k."""

_DEPTHS = range(-4, 5)  # differences of depth that have a column
_KEY = 8  # characters of a fingerprint that tell folders apart


class MeasureOptions(Options):
    """How a catalogue is measured (``--set measure.KEY=VALUE``)."""

    model_config = ConfigDict(strict=True)

    relevance: Literal["label", "path"] = "label"  # path: to the ancestors of a product's category too
    query: Literal["name", "path"] = "name"  # what stands for a category
    # without it the data's own test split where it has one, else by product
    split: Literal["given", "product", "category"] | None = None
    attributes: Literal["named", "values"] = "named"  # values: an attribute's text without its name
    missing: Literal["error", "none"] = "none"  # error: no image may be missing or corrupt
    draw: int = Field(0, ge=0)  # seed of the categories that the setting all draws for test products
    jobs: int = Field(1, ge=1)

    @property
    def protocol(self) -> str:
        """How is measured, in the words of printed numbers."""
        query = "" if self.query == "name" else f", categories by their {self.query}"
        return f"by {self.relevance}{query}"


class CatalogueRows(Source):
    """Rows of a catalogue. One that the products or their encoders cannot give is left out."""

    nothing = "nothing of it can be counted here: no categories of the kind, or no errors"

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Read what was set, split the products and load the encoders."""
        from diptych.commerce.catalogue.source import training_part
        from diptych.commerce.category_to_image.features.maker import FeatureMaker, learning_texts
        from diptych.data.scenes import product_scenes

        generated = plan.setting.generated
        chosen = replace(plan.choices, values={**plan.setting.measure, **plan.choices.values})
        for section in (key.partition(".")[0] for key in chosen.values):
            if section not in _SECTIONS:
                raise UnknownNameError("section of a study of a catalogue", section, _SECTIONS)
        self.set_train = chosen.below("train")
        features = {"image": "grid", "text": "lsa", **chosen.below("features")}
        image, self.text = features.pop("image"), features.pop("text")
        if not isinstance(self.text, str) or not self.text:
            raise UsageError(f"features.text is {self.text!r}", "name an encoder, or lsa")
        self.options = MeasureOptions.read(chosen.below(MEASURE), MEASURE)
        self.training = _training(self.set_train, published=plan.name in AS_PAPER)
        if chosen.data is None and generated is None:
            fix = "--data DATASET, or --quick for generated ones"
            raise DataError(f"no products given for {plan.study.name}", fix)
        own = product_scenes(**(generated or {})) if chosen.data is None else plan.collections.of(chosen.data)
        self.catalogue = split_products(own, self.options)
        self.maker = FeatureMaker.of(
            None if image in ("", "none") else image,
            self.text,
            learn_from=learning_texts(training_part(self.catalogue)[0]),
            cache=plan.features,
            image_options=features,
        )
        left_out = {row.name: why for row in rows if (why := self._why_not(row.options["model"]))}
        there = [row.options for row in rows if row.name not in left_out]
        models, settings = (
            [name for one in there for name in one[key].split(", ")] for key in ("model", "setting")
        )
        self.grid = {"models": models, "settings": settings, "seeds": list(seeds)}
        how = (
            self.options.model_dump(exclude={"jobs"}),
            self.training and self.training.model_dump(mode="json"),
        )
        products = self.catalogue.fingerprint, list(self.catalogue.splits)
        key = fingerprint(*products, self.maker.fingerprint, *how)[:_KEY]
        beside = plan.folder.resolve().parent / f"{plan.study.paper.key}.catalogues"
        self.folder = beside / f"{safe_name(self.catalogue.name)}-{key}"
        return left_out

    def _why_not(self, model: str) -> str:
        """Return why a model cannot be had with these products and encoders; empty where it can."""
        from diptych.commerce.category_to_image.evaluation import modalities_of

        images, products = self.maker.image, self.catalogue.split("test")
        if model == "clip":
            fix = "give one with --set features.image=MODEL"
            reads = images is not None and images.texts is not None
            return "" if reads else f"needs an encoder of pictures that reads texts too: {fix}"
        has = {
            "image": images is not None and bool(products.pictured.any()),
            "title": any(title.strip() for title in products.titles),
            "attributes": any(text.strip() for given in products.attributes for text in given),
        }
        lacks = [one for one in modalities_of(model) or ("title",) if not has[one]]
        return f"needs {' and '.join(lacks)}, which no product has" if lacks else ""

    @cached_property
    def evaluation(self) -> ModelsEvaluation:
        """All models in all settings, each trained with every seed; what was made before is used."""
        from diptych.commerce.catalogue.source import training_part, validation_part
        from diptych.commerce.category_to_image.evaluation import ModelsEvaluation, evaluate_models
        from diptych.commerce.category_to_image.evaluation.grid import RESULTS, GridHeader

        folder = self.folder / "evaluation"
        there = asdict(GridHeader.open(folder).protocol) if GridHeader.is_at(folder) else {}
        grid = {name: list(dict.fromkeys([*there.get(name, ()), *own])) for name, own in self.grid.items()}
        if (folder / RESULTS).is_file() and all(len(grid[name]) == len(there[name]) for name in grid):
            return ModelsEvaluation.open(folder)
        sizes = ", ".join(f"{len(of)} {name}" for name, of in grid.items())
        logger.info(f"{self.catalogue.name}: evaluating {sizes}")
        train, test = training_part(self.catalogue, "test")
        return evaluate_models(
            train,
            validation_part(self.catalogue),
            test,
            self.maker,
            folder,
            models=grid["models"],
            settings=grid["settings"],
            seeds=sorted(grid["seeds"]),
            judged_seed=self.options.draw,
            **self.options.model_dump(include={"relevance", "query", "missing", "jobs"}),
            published=self.training is None,
            options=self.training,
        )

    def line(self) -> str:
        """Return all that numbers depend on."""
        notes = [f"split by {self.options.split}"] if self.options.split else []
        notes += [f"train.{key} {value}" for key, value in self.set_train.items()]
        return self.evaluation.line() + (f"; with {', '.join(notes)}" if notes else "")

    def is_fixed(self, row: Row) -> bool:
        """Return whether a row's model is not trained."""
        from diptych.commerce.category_to_image.evaluation import modalities_of

        return modalities_of(row.options["model"]) is None

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        """Return what is set."""
        return {**plan.setting.measure, **plan.choices.values}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Evaluate all models for the first row; others are read from it."""
        run = CatalogueRow(row, seed, plan.target(row, seed), self)
        is_lsa = row.options["model"] == "sentence" and self.text.partition(":")[0] == "lsa"
        seconds = sum(float(cell.about.get("processor_seconds", 0.0)) for cell in run.cells.values())
        return Subject(
            run,
            None,
            plan.features,
            state=(self.folder.name,),
            stands_for="latent semantics" if is_lsa else "",
            data=self.catalogue.describe(),
            seconds=seconds,
            again=True,
        )

    def hint(self) -> tuple[str, str]:
        """Return what was measured, and what to give instead."""
        return self.catalogue.describe(), "give a catalogue with more products"


def _training(train: dict[str, Any], published: bool) -> TrainOptions | None:
    """Return how models are trained; None as the thesis says."""
    from diptych.commerce.category_to_image.options import TrainOptions

    known = [key for key in TrainOptions.model_fields if key not in _OF_ROWS]
    for key in train:
        if published:
            fix = "choose --setting data, or leave it out"
            raise UsageError(f"train.{key} is set, and this setting trains as the thesis says", fix)
        if key not in known:
            raise UnknownNameError("key of train", key, known)
    return None if published else TrainOptions.read(train, "train")


def split_products(collection: Collection, options: MeasureOptions) -> Catalogue:
    """Return products and their tree, split as asked; by product where their own test split is wanted and missing."""
    from diptych.commerce.catalogue.making import assign_splits, catalogue_of

    catalogue = catalogue_of(collection, attribute_form=options.attributes)
    if options.split in (None, "category") and not {"train", "test"} <= set(catalogue.split_sizes):
        catalogue = assign_splits(catalogue, "product")
    if options.split is not None:
        catalogue = assign_splits(catalogue, options.split)
    for name in ("train", "test"):
        if name not in catalogue.split_sizes:
            what = f"{catalogue.name} has no split {name!r}, only {', '.join(catalogue.split_sizes)}"
            raise DataError(what, "--set measure.split=product")
    return catalogue


@dataclass(frozen=True)
class CatalogueRow:
    """A row and seed of an evaluation; ``folder`` is the row's own."""

    row: Row
    seed: int
    folder: Path
    source: CatalogueRows

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """By setting, the row's model as it was trained with the row's seed."""
        evaluation, model = self.source.evaluation, self.row.options["model"]
        place = evaluation.protocol.seeds.index(self.seed) if evaluation.is_trained(model) else 0
        return {one: evaluation.cells(one, model)[place] for one in self.row.options["setting"].split(", ")}

    @property
    def nodes(self) -> np.ndarray:
        """The categories that ask, setting by setting."""
        return np.concatenate([self.source.evaluation.judged(one).nodes for one in self.cells])

    @property
    def errors(self) -> list[ErrorCounts]:
        """The errors of first products, setting by setting."""
        from diptych.commerce.category_to_image.errors import count_errors

        of = self.source.evaluation
        found = [(of.judged(one).nodes, of.first_categories(one, cell)) for one, cell in self.cells.items()]
        return [count_errors(of.tree, nodes, *first) for nodes, first in found]

    def retrieved(self, asked: np.ndarray, **more: float) -> tuple[Measurement, ...]:
        """Return measures over some of the categories, (q,) booleans, and ``more`` numbers; nothing of none."""
        if not asked.any():
            return ()
        (cell,) = self.cells.values()
        per_query = cell.result.per_query["t2i"]
        each = {column: per_query[measure][asked] for column, measure in _COLUMNS.items()}
        means = {column: 100.0 * float(values.mean()) for column, values in each.items()}
        return self.measured({**means, **more}, {name: 100.0 * one for name, one in each.items()}, asked)

    def measured(
        self, values: Mapping[str, float], each: Mapping[str, np.ndarray], asked: np.ndarray | None = None
    ) -> tuple[Measurement, ...]:
        """Return numbers of the row with all that they depend on; keep those of ``each`` category that asked."""
        of, nodes = self.source, self.nodes if asked is None else self.nodes[asked]
        kept = of.folder / "rows" / f"{self.row.name}-seed-{self.seed}"
        keep(kept, each, nodes)
        data, how = of.catalogue, of.options.protocol
        on = Measured(data.name, "test", protocol=how, products=len(data), categories=len(nodes))
        place = os.path.relpath(kept, self.folder.resolve())
        return (Measurement(values, on, of.line(), kept=place),)


def evaluation_of(evidence: Evidence) -> ModelsEvaluation | None:
    """Return the evaluation that rows were read from; None where it is gone, or numbers are printed ones."""
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

    folder = next((one for folders in evidence.kept.values() for one in folders), None)
    try:
        return None if folder is None else ModelsEvaluation.open(folder.resolve().parents[1] / "evaluation")
    except (DataError, StorageError):
        return None  # begun anew, or moved: numbers are kept with the rows


# What is measured of a row ---------------------------------------------------------------------------


def _retrieved(run: CatalogueRow) -> tuple[Measurement, ...]:
    """Measure a model in a setting: the chapter's six measures in per cent."""
    return run.retrieved(np.ones(len(run.nodes), bool))


def _seen(run: CatalogueRow) -> tuple[Measurement, ...]:
    """Measure CLIP-ITA on categories that training saw, or on the others."""
    (cell,) = run.cells.values()
    asked = cell.seen if run.row.options["group"] == "seen" else ~cell.seen
    return run.retrieved(asked, categories=float(asked.sum()))


def _error_trees(run: CatalogueRow) -> tuple[Measurement, ...]:
    """Count CLIP-ITA's errors, in all settings of the row together: in the tree of the target or in another."""
    counts = run.errors
    same, other = sum(one.same_tree for one in counts), sum(one.other_tree for one in counts)
    return run.measured({"same tree": float(same), "different tree": float(other)}, {})


def _error_depths(run: CatalogueRow) -> tuple[Measurement, ...]:
    """Measure CLIP-ITA's errors within the tree by d(c, c_p) = depth(c_p) − depth(c), in per cent of them."""
    (counts,) = run.errors
    if not counts.same_tree:
        return ()
    shares = {depth: 100.0 * n / counts.same_tree for depth, n in counts.depths.items()}
    values = {f"d = {depth}": shares.get(depth, 0.0) for depth in sorted({*_DEPTHS, *shares})}
    values["more general"] = sum((share for depth, share in shares.items() if depth < 0), 0.0)
    values["more specific"] = sum((share for depth, share in shares.items() if depth > 0), 0.0)
    return run.measured(values, {})


_MEASURED = {
    "retrieved": _retrieved,
    "seen": _seen,
    "error-trees": _error_trees,
    "error-depths": _error_depths,
}


@dataclass(frozen=True)
class OfCatalogue(Measuring):
    """One of the chapter's tables, by its name in papers' files: measures of a row and seed."""

    table: str

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one row and seed."""
        return _MEASURED[self.table](subject.run)
