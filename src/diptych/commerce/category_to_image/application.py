"""Training on a catalogue, and applying a run to one: images, indexes, searches, evaluations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import model_validator

from diptych.commerce.catalogue.catalogue import Catalogue, CategoryText, category_texts, judge
from diptych.commerce.catalogue.making import catalogue_of, seen_nodes
from diptych.commerce.catalogue.source import (
    VALIDATION,
    ProductData,
    SortedData,
    training_part,
    validation_part,
)
from diptych.commerce.category_to_image.features import EncoderSpec
from diptych.commerce.category_to_image.options import TrainOptions
from diptych.commerce.category_to_image.picking import PICKS, Among, Picks, pick
from diptych.commerce.category_to_image.rankers import RANKERS, product_embeddings
from diptych.commerce.category_to_image.runs import CategoryRun, encoder_name
from diptych.commerce.category_to_image.tables import run_tables
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.errors import StorageError, UsageError
from diptych.core.files import check_replaceable
from diptych.core.options import parameter, parse_values
from diptych.core.table import Table
from diptych.data.products import paths_of
from diptych.data.source import OutOption, SamplesOption, TargetOption
from diptych.encoders.embeddings import Embeddings
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.results import ModelsEvaluation

SETTINGS = "diptych.commerce.catalogue:SETTINGS"


class HeadOptions(TargetOption):
    """Options of the training of heads over frozen encoders."""

    query: CategoryText | None = parameter(
        None,
        "A category's text: name, path, or unique: the path where names repeat.",
        metavar="FORM",
        default="unique; name with --published",
    )
    published: bool = parameter(False, "As in the thesis: τ = 1, no dropout, …")
    set_: list[str] = parameter([], "KEY=VALUE, e.g. epochs=10. Repeatable.", "--set")

    @property
    def text(self) -> CategoryText:
        return self.query or ("name" if self.published else "unique")

    def training(self, base: Mapping[str, Any], seed: str) -> TrainOptions:
        """Return the options of training over ``base``; ``seed`` is the option that seeds come from."""
        values = parse_values(self.set_, "--set")
        named = {"modalities": "--model", "setting": "--setting", "query": "--query", "seed": seed}
        for key in values.keys() & named.keys():
            raise UsageError(f"--set {key}", f"use {named[key]}")
        return TrainOptions.read({**base, **values}, "options of the training")


class TrainHeads(HeadOptions):
    """Options of one training; a folder of an unfinished one is resumed."""

    model: str = parameter("clip-ita", "clip- and what it reads: i(mage), t(itle), a(ttributes).")
    setting: str = parameter(
        "all",
        "A product's category: all (one drawn in each epoch), most-specific or most-general.",
        names=SETTINGS,
    )
    seed: int = parameter(0, "Of weights, order and draws.", ge=0)

    def chosen(self) -> TrainOptions:
        from diptych.commerce.category_to_image.evaluation import trained_options

        base = trained_options(self.model, self.setting, self.published).model_dump()
        resample = self.setting == "all" and not self.published
        return self.training(base | {"query": self.text, "seed": self.seed, "resample": resample}, "--seed")


def _lines(run: CategoryRun, catalogue: Catalogue, unreadable: int) -> list[str]:
    """Return what was trained on how much, which encoders made the embeddings, and which epoch was taken."""
    about = run.model.about
    image, text = (run.about["encoders"][side] for side in ("image", "text"))
    sizes = ", ".join(f"{name} {size:,}" for name, size in catalogue.split_sizes.items())
    lines = [catalogue.describe(), *(f"  {note}" for note in catalogue.notes), f"splits: {sizes}"]
    if unreadable:
        lines.append(f"{unreadable:,} images to train on cannot be read: their products stand without")
    shown = encoder_name(image, "name", "fingerprint") if image else "none, the model needs none"
    lines.append(f"text encoder: {encoder_name(text, 'name', 'fingerprint')}; image encoder: {shown}")
    lines += [_STAND_INS[one["kind"]] for one in (image, text) if one and one.get("kind") in _STAND_INS]
    left, chosen, best = about["without_category"], about["chosen_by"], about["best_epoch"]
    skipped = f", {left:,} without a category left out" if left else ""
    trained = f"{run.about['model']} of {run.options.setting} categories by {run.options.query}"
    lines.append(
        f"{trained}, {run.about['fingerprint']}, in {run.folder}: trained on {about['products']:,} products{skipped}"
    )
    last = about["metrics"][best - 1]
    by = f"the best by {chosen} of validation products, {100 * last[chosen]:.2f} %" if chosen else "the last"
    return [*lines, f"epoch {best} of {about['epochs']}, {by}: loss {last['loss']:.4f}"]


_STAND_INS = {
    "grid": "  the grid sees colours and edges only: better images with --image-encoder backbone:NAME or hf:NAME",
    "lsa": "  lsa knows the words of the training products only: better texts with --text-encoder sentence:NAME",
}


def train_catalogue(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> list[str | Table]:
    """Train on the split ``train``, choose the epoch by the validation split; return what is shown."""
    from diptych.commerce.category_to_image.measuring import CATEGORY_MEASURES, measure_ranker
    from diptych.commerce.category_to_image.training import train
    from diptych.training.run import TrainingFolder

    chosen, out = options.chosen(), options.out
    TrainingFolder(out).check({}, beside=(), whole=False)
    catalogue = products.catalogue()
    maker = encoders.maker(catalogue, chosen.modalities)
    [learned], validated = training_part(catalogue), validation_part(catalogue)
    features = maker.products(learned, missing="none")
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), chosen.query))
    validation = None if validated is None else (validated, maker.products(validated, missing="none"))
    trained = train(learned, features, categories, chosen, out, validation=validation)
    run = CategoryRun.finish(out, trained, maker, catalogue, products.model_dump(mode="json"))
    shown: list[str | Table] = [*_lines(run, catalogue, features.about["unreadable_pictures"])]
    if "test" in catalogue.split_sizes and ((part := catalogue.split("test")).place >= 0).any():
        judged = judge(part, chosen.setting, "label", chosen.seed)
        about = {"dataset": catalogue.name, "split": "test"}
        queries = run.category_features(judged.nodes)
        tested = measure_ranker(run.model, run.features(part), queries, judged, about=about)
        names = [name for name in CATEGORY_MEASURES if "hits" not in name]
        shown += run_tables(chosen.model, chosen.setting, tested, names)
    return shown


def own_products(run: CategoryRun) -> Catalogue:
    """Return the products that a run was trained on, with their splits; later ones are of the split ``new``."""
    again = ProductData.read(run.about["data"], str(run.folder), StorageError, "train it again").catalogue()
    return replace(again, splits=[run.splits.get(name, "new") for name in again.ids])


class OtherData(SortedData):
    """Options of the products that a run is used on; without ``data`` those that it was trained on."""

    def of(self, run: CategoryRun, split: str | None = None, own_tree: bool = True) -> Catalogue:
        """Read the products of a split, attributes as the run does.

        They are sorted into the tree of their taxonomy, with ``own_tree`` into their own where any product has a
        category, else into the run's.
        """
        if self.data is None and self != OtherData(unknown=self.unknown):
            fix = "name the products after the run, or leave them out"
            raise UsageError("options of data, but no data", fix)
        if self.data is None:
            found = own_products(run)
        else:
            collection, tree, unknown = self.collection(), self.tree(), self.unknown
            if not tree and not (own_tree and any(map(paths_of, collection.records or ()))):
                tree, unknown = run.tree, "none"
            form = run.about["data"].get("attribute_form", "named")
            found = catalogue_of(collection, attribute_form=form, tree=tree, unknown=unknown)
        return found if split in (None, "all") else found.split(split)


class PartOptions(OutOption):
    """Options of a part of the products, and of the place of results."""

    split: str | None = parameter(None, "Only the products of this split, e.g. test.")


def use_of(run: CategoryRun, data: OtherData, split: str | None, part: Catalogue) -> dict[str, Any]:
    """Return the metadata of what a run was used on, with how many of its products it was trained on."""
    learned = np.array([run.splits.get(name) == "train" for name in part.ids], dtype=bool)
    return {
        "run": str(run.folder.resolve()),
        "model": run.about["model"],
        "fingerprint": run.about["fingerprint"],
        "data": run.about["data"] if data.data is None else data.model_dump(mode="json"),
        "split": split,
        "trained_on": int((learned & ((part.place >= 0) | (data.data is not None))).sum()),
    }


@contextmanager
def rows_for(run: CategoryRun, catalogue: Catalogue, **about: Any) -> Iterator[Embeddings]:
    with tempfile.TemporaryDirectory() as folder:
        place, data = Path(folder) / "rows", catalogue.fingerprint
        yield product_embeddings(run.model, run.features(catalogue), place, data=data, about=about)


def category_rows(run: CategoryRun, tree: CategoryTree) -> np.ndarray:
    texts = category_texts(tree, range(len(tree)), run.options.query)
    return run.model.category_rows(run.category_features(texts))


class PickOptions(PartOptions):
    """Options of images for categories; written to RUN/picks by default."""

    k: int = parameter(8, "Images per category.", "-k", ge=1)
    among: Among = parameter("all", "members: only of products in it or below.")
    beyond: bool = parameter(False, "Fill up to -k where a category has fewer products.")
    distinct: list[str] = parameter([], "content or title: equal ones are picked once. Repeatable.")
    sheet: bool = parameter(True, "Write the tree's contact sheet.")
    side: int = parameter(112, "Longest side of its images, in pixels.", ge=16, le=640)


def pick_images(run: CategoryRun, data: OtherData, options: PickOptions, folder: Path) -> Picks:
    """Pick the best images for every category of the products' tree."""
    check_replaceable(folder, PICKS)
    catalogue = data.of(run, options.split)
    about = {"ranker": run.model.describe(), **use_of(run, data, options.split, catalogue)}
    texts = category_texts(catalogue.tree, range(len(catalogue.tree)), run.options.query)
    how: dict[str, Any] = options.model_dump(include={"k", "among", "beyond", "distinct"})
    with rows_for(run, catalogue) as embedded:
        rows = category_rows(run, catalogue.tree), embedded.rows
        return pick(*rows, catalogue, texts=texts, about=about, **how)


class EvaluateOptions(HeadOptions, SamplesOption):
    """Options of an evaluation."""

    model: list[str] = parameter(
        [], "bm25, clip, sentence, clip-i … clip-ita, mixed. Repeatable.", default="all but mixed"
    )
    setting: list[str] = parameter(
        [], "all, most-general, most-specific. Repeatable.", names=SETTINGS, default="all three"
    )
    seeds: int = parameter(3, "Trainings of each model.", ge=1)
    run: Path | None = parameter(None, "Measure a run on what it has not seen.")
    relevance: Literal["label", "path"] = parameter("label", "path: the categories above are right, too.")
    judged_seed: int = parameter(0, "Of categories drawn for all.", ge=0)
    jobs: int = parameter(1, "Processes; the numbers do not depend on it.", "--jobs", "-j", ge=1)

    @model_validator(mode="after")
    def _exclusive(self) -> Self:
        if self.published and self.set_:
            raise UsageError("--published trains as in the thesis", "leave out --set, or --published")
        fitting, fields = ("model", "query", "published", "set_", "seeds", "jobs"), type(self).model_fields
        if self.run is not None and any(getattr(self, name) != fields[name].default for name in fitting):
            raise UsageError("a run is measured as it is", "leave out what makes or trains models")
        return self


def evaluate_catalogue(
    products: ProductData, encoders: EncoderSpec, options: EvaluateOptions
) -> tuple[ModelsEvaluation, Catalogue]:
    """Train on the split ``train``, choose epochs by the validation split if there is one, rank the split ``test``.

    A run that was trained before is measured on the products that it has not seen.
    """
    from diptych.commerce.category_to_image.evaluation import evaluate_models

    if options.run is not None and encoders != EncoderSpec():
        raise UsageError("a run is measured as it is", "leave out the encoders")
    catalogue = products.catalogue()
    about: dict[str, Any] = {"source": products.model_dump(mode="json")}
    train, validation, test = None, None, catalogue
    models = _names(options.model)
    how = options.model_dump(include={"relevance", "judged_seed"})
    how |= {"settings": _names(options.setting), "bootstrap": Bootstrap(options.samples), "missing": "none"}
    if options.run is not None:
        run = CategoryRun.open(options.run)
        maker, (test, notes) = run.maker, held_out(run.splits, catalogue)
        about |= {"run": str(run.folder.resolve()), "notes": [*catalogue.notes, *notes]}
        what = f"{run.about['model']} trained on {run.options.setting} categories"
        how |= {"given": (run.model, what), "query": run.options.query}
        if run.about["catalogue"] == catalogue.fingerprint:
            [learned] = training_part(replace(catalogue, splits=[run.splits[name] for name in catalogue.ids]))
            epochs = run.options.epochs if run.options.resample else 0
            how["seen"] = seen_nodes(learned, run.options.setting, run.options.seed, epochs=epochs)
    else:
        if {"train", "test"} <= catalogue.split_sizes.keys() or not models or not set(models) <= set(RANKERS):
            validation, (train, test) = validation_part(catalogue), training_part(catalogue, "test")
        elif "test" in catalogue.split_sizes:
            test = catalogue.split("test")  # baselines need no more
        maker, about["encoder options"] = encoders.maker(catalogue), encoders.given
        training = options.training({}, "--seeds") if options.set_ else None
        how |= {"models": models, "seeds": tuple(range(options.seeds)), "options": training}
        how |= {"query": options.text, "published": options.published, "jobs": options.jobs}
    return evaluate_models(train, validation, test, maker, options.out, about=about, **how), test


def _names(given: list[str]) -> list[str] | None:
    return [name for text in given for name in text.split(",") if name] if given else None


def held_out(splits: Mapping[str, str], catalogue: Catalogue) -> tuple[Catalogue, list[str]]:
    """Return the products that a run did not train on or choose its epoch by, and a note about the others."""
    rows = [row for row, name in enumerate(catalogue.ids) if splits.get(name) not in ("train", *VALIDATION)]
    if not rows:
        problem = f"the run was trained on all {len(catalogue):,} products of {catalogue.name}"
        raise UsageError(problem, "give other products")
    if not (left := len(catalogue) - len(rows)):
        return catalogue, []
    return catalogue.subset(rows), [f"{left:,} products left out that the run was trained or validated on"]


def evaluated_products(found: ModelsEvaluation) -> Catalogue:
    """Read the products that an evaluation ranked; StorageError where they are no longer what they were."""
    source, run = found.about.get("source", {}), found.about.get("run")
    whole = ProductData.read(source, str(found.folder), StorageError, "evaluate again").catalogue()
    parts = [whole, *([held_out(CategoryRun.open(run).splits, whole)[0]] if run else [])]
    for part in [*parts, *([whole.split("test")] if "test" in whole.split_sizes else [])]:
        if part.fingerprint == found.protocol.test:
            return part
    raise StorageError("the products are not those that were ranked any more", "evaluate again")
