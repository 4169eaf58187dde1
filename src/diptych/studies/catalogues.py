"""Rows of a catalogue: models are evaluated together, once, in ``PAPER.catalogues/NAME-KEY/`` next to the studies.

KEY tells catalogues and ways of measuring apart. ``evaluation/`` is as ``diptych categories evaluate`` writes it, and
grows by models, settings and seeds; ``rows/ROW-seed-N/`` has a row's values per category.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from diptych.commerce.catalogue import Catalogue, assign_splits, catalogue_of, training_part, validation_part
from diptych.commerce.category_to_image.evaluation import (
    RESULTS,
    ModelsEvaluation,
    evaluate_models,
    why_not,
)
from diptych.commerce.category_to_image.features import (
    TRAINED,
    FeatureMaker,
    TrainOptions,
    learning_texts,
)
from diptych.commerce.category_to_image.rankers import CATEGORY_MEASURES
from diptych.commerce.category_to_image.results import ModelResult, count_errors
from diptych.commerce.scenes.products import product_scenes
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.options import Options
from diptych.data.collection import Collection
from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis
from diptych.studies.evidence import KEPT, Kept
from diptych.studies.plan import MEASURE, Plan
from diptych.studies.results import Measured, Measurement, Measuring
from diptych.studies.sources import Source, Subject, keyed, logger
from diptych.studies.study import AS_PAPER, PUBLISHED, Row

_SECTIONS = ("features", "train", MEASURE)
# Others are set by rows, seeds and measure.query; resample would see other categories per epoch.
_OF_ROWS = ("modalities", "setting", "seed", "query", "resample")
_TRAIN_KEYS = [key for key in TrainOptions.model_fields if key not in _OF_ROWS]
# Columns of measures: mAP@k of the chapter looks divided by the hits among the first k.
_COLUMNS = {name: name for name in CATEGORY_MEASURES if "hits" not in name}
_COLUMNS |= {f"mAP-hits@{k}": f"mAP@{k}{PUBLISHED}" for k in (5, 10)}

_DEPTHS = range(-4, 5)  # differences of depth that have a column


class CatalogueOptions(Options):
    """Options of measuring a catalogue (``--set measure.KEY=VALUE``)."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    relevance: Literal["label", "path"] = "label"  # path: to the ancestors of a product's category too
    query: Literal["name", "path"] = "name"  # what stands for a category
    split: Literal["given", "product", "category"] | None = None  # None: the data's own, else by product
    attributes: Literal["named", "values"] = "named"  # values: an attribute's text without its name
    draw: int = Field(0, ge=0)  # seed of the categories that the setting all draws for test products
    jobs: int = Field(1, ge=1)


class CatalogueRows(Source):
    """Rows of a catalogue; those that the products or their encoders do not allow are left out."""

    nothing = "nothing of it can be counted here: no categories of the kind, or no errors"

    def begin(self, plan: Plan, rows: Sequence[Row], seeds: Sequence[int]) -> dict[str, str]:
        """Read what was set, split the products and load the encoders."""
        chosen = replace(plan.choices, values={**plan.setting.measure, **plan.choices.values})
        for section in (key.partition(".")[0] for key in chosen.values):
            if section not in _SECTIONS:
                raise UnknownNameError("section of a study of a catalogue", section, _SECTIONS)
        self.train_values, self.training = chosen.below("train"), None
        for key in self.train_values:
            if plan.name in AS_PAPER:
                raise UsageError(
                    f"train.{key} is set, and this setting trains as the thesis says",
                    "choose --setting data, or leave it out",
                )
            if key not in _TRAIN_KEYS:
                raise UnknownNameError("key of train", key, _TRAIN_KEYS)
        if plan.name not in AS_PAPER:
            self.training = TrainOptions.read(self.train_values, "train")
        self.options = CatalogueOptions.read(chosen.below(MEASURE), MEASURE)
        features = {"image": "grid", "text": "lsa", **chosen.below("features")}
        image, text = features.pop("image"), features.pop("text")
        if not isinstance(text, str) or not text:
            raise UsageError(f"features.text is {text!r}", "name an encoder, or lsa")
        if chosen.data is not None:
            products = plan.collections.of(chosen.data)
        elif plan.setting.generated is not None:
            products = product_scenes(**plan.setting.generated)
        else:
            raise DataError(
                f"no products given for {plan.study.name}", "--data DATASET, or --quick for generated ones"
            )
        self.catalogue = split_products(products, self.options)
        self.maker = FeatureMaker.of(
            None if image in ("", "none") else image,
            text,
            learn_from=learning_texts(training_part(self.catalogue)[0]),
            cache=plan.features,
            image_options=features,
        )
        test = self.catalogue.split("test")
        left_out = {row.name: why for row in rows if (why := why_not(row.options["model"], self.maker, test))}
        usable = [row.options for row in rows if row.name not in left_out]
        self.grid = {
            "models": [options["model"] for options in usable],
            "settings": [one for options in usable for one in options["setting"].split(", ")],
            "seeds": list(seeds),
        }
        self.folder = keyed(
            plan.folder.resolve().parent / f"{plan.study.paper.key}.catalogues",
            self.catalogue.name,
            self.catalogue.fingerprint,
            list(self.catalogue.splits),
            self.maker.fingerprint,
            self.options.model_dump(exclude={"jobs"}),
            self.training and self.training.model_dump(mode="json"),
        )
        return left_out

    @cached_property
    def evaluation(self) -> ModelsEvaluation:
        """All models in all settings, each trained with every seed; what was made before is used."""
        folder = self.folder / "evaluation"
        found = ModelsEvaluation.open(folder) if (folder / RESULTS).is_file() else None
        before = {name: getattr(found, name, ()) for name in self.grid}
        grid = {name: list(dict.fromkeys([*before[name], *own])) for name, own in self.grid.items()}
        if found is not None and all(len(grid[name]) == len(before[name]) for name in grid):
            return found
        sizes = ", ".join(f"{len(of)} {name}" for name, of in grid.items())
        logger.info(f"{self.catalogue.name}: evaluating {sizes}")
        train, test = training_part(self.catalogue, "test")
        options: dict[str, Any] = {**grid, "seeds": sorted(grid["seeds"]), "judged_seed": self.options.draw}
        options |= self.options.model_dump(include={"relevance", "query", "jobs"})
        options |= {"published": self.training is None, "options": self.training}
        return evaluate_models(train, validation_part(self.catalogue), test, self.maker, folder, **options)

    def is_fixed(self, row: Row) -> bool:
        return row.options["model"] not in TRAINED

    def all_options(self, plan: Plan, row: Row) -> dict[str, Any]:
        return {**plan.setting.measure, **plan.choices.values}

    def make(self, plan: Plan, row: Row, seed: int, what: str) -> Subject:
        """Evaluate all models for the first row; others are read from it."""
        evaluation, model = self.evaluation, row.options["model"]
        place = 0 if self.is_fixed(row) else evaluation.seeds.index(seed)
        cells = {one: evaluation.cells(one, model)[place] for one in row.options["setting"].split(", ")}
        kept = self.folder / "rows" / f"{row.name}-seed-{seed}"
        run = CatalogueRun(cells, row.options.get("group"), plan.target(row, seed), kept, self)
        is_lsa = model == "sentence" and isinstance(self.maker.text, LatentSemanticAnalysis)
        return Subject(
            run,
            None,
            plan.features,
            state=(self.folder.name,),
            stands_for="latent semantics" if is_lsa else "",
            data=self.catalogue.describe(),
            seconds=sum(float(cell.about.get("processor_seconds", 0.0)) for cell in cells.values()),
            again=True,
        )

    def hint(self) -> tuple[str, str]:
        return self.catalogue.describe(), "give a catalogue with more products"


def split_products(collection: Collection, options: CatalogueOptions) -> Catalogue:
    """Return products and their tree, split as ``options`` say; by product where they have no test split."""
    catalogue = catalogue_of(collection, attribute_form=options.attributes)
    if options.split in (None, "category") and not {"train", "test"} <= set(catalogue.split_sizes):
        catalogue = assign_splits(catalogue, "product")
    if options.split is not None:
        catalogue = assign_splits(catalogue, options.split)
    for name in ("train", "test"):
        if name not in catalogue.split_sizes:
            raise DataError(
                f"{catalogue.name} has no split {name!r}, only {', '.join(catalogue.split_sizes)}",
                "--set measure.split=product",
            )
    return catalogue


@dataclass(frozen=True)
class CatalogueRun:
    """A row and seed of an evaluation."""

    cells: Mapping[str, ModelResult]  # by setting, the row's model as it was trained with the seed
    group: str | None  # of the categories: seen or unseen in training; None: all
    folder: Path  # the row's own
    kept: Path  # of values per category
    source: CatalogueRows


@dataclass(frozen=True)
class OfCatalogue(Measuring):
    """One of the chapter's tables, by its name in papers' files: measures of a row and seed."""

    table: Literal["retrieved", "seen", "error-trees", "error-depths"]

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one row and seed, in per cent but counts by tree; nothing of no categories or errors."""
        run: CatalogueRun = subject.run
        source, options = run.source, run.source.options
        nodes = np.concatenate([cell.nodes for cell in run.cells.values()])
        per_category: dict[str, np.ndarray] = {}
        if self.table in ("retrieved", "seen"):
            (cell,) = run.cells.values()
            group = np.full(len(nodes), True) if run.group is None else cell.seen == (run.group == "seen")
            nodes, measures = nodes[group], cell.result.per_query["t2i"]
            per_category = {column: measures[name][group] for name, column in _COLUMNS.items()}
            values = {name: 100.0 * float(one.mean()) for name, one in per_category.items() if len(nodes)}
            if run.group is not None and values:
                values["categories"] = float(len(nodes))
        else:
            found, right = (
                np.concatenate([getattr(cell, name) for cell in run.cells.values()])
                for name in ("found", "right")
            )
            errors = count_errors(source.catalogue.tree, nodes, found, right)
            values = {"same tree": float(errors["same_tree"]), "different tree": float(errors["other_tree"])}
            if self.table == "error-depths":
                shares = {depth: 100.0 * n / errors["same_tree"] for depth, n in errors["depths"].items()}
                values = {f"d = {depth}": shares.get(depth, 0.0) for depth in sorted({*_DEPTHS, *shares})}
                values["more general"] = sum((share for depth, share in shares.items() if depth < 0), 0.0)
                values["more specific"] = sum((share for depth, share in shares.items() if depth > 0), 0.0)
                values = values if shares else {}
        if not values:
            return ()
        Kept({name: 100.0 * one for name, one in per_category.items()}, nodes).save(run.kept / KEPT)
        data, protocol = source.catalogue, f"by {options.relevance}"
        protocol += "" if options.query == "name" else f", categories by their {options.query}"
        on = Measured(data.name, "test", protocol=protocol, products=len(data), categories=len(nodes))
        changed = [f"split by {options.split}"] if options.split else []
        changed += [f"train.{key} {value}" for key, value in source.train_values.items()]
        line = source.evaluation.line() + (f"; with {', '.join(changed)}" if changed else "")
        return (Measurement(values, on, line, kept=os.path.relpath(run.kept, run.folder.resolve())),)
