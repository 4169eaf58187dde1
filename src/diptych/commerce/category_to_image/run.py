"""CategoryRun: the folder of a trained model with all that using it takes; its training, evaluation and use.

It has ``category_run.json``, written last, ``model.safetensors`` (the heads), ``encoders/`` (of texts; that of images
is opened by its name), ``splits.parquet`` (of every product), ``metrics.jsonl`` and ``training.json`` of the training.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from pydantic import model_validator

from diptych.commerce.catalogue import (
    SETTINGS,
    VALIDATION,
    Catalogue,
    CategoryText,
    catalogue_of,
    category_texts,
    judge,
    training_part,
    validation_part,
)
from diptych.commerce.category_to_image.features import (
    TRAINED,
    EncoderSpec,
    FeatureMaker,
    TrainOptions,
    encoders_line,
    encoders_of,
)
from diptych.commerce.category_to_image.rankers import CATEGORY_MEASURES, RANKERS, measure_ranker
from diptych.commerce.category_to_image.results import percent
from diptych.commerce.product_data import ProductData, SortedData
from diptych.commerce.taxonomy import CategoryTree
from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.core.files import atomic_path, create_array
from diptych.core.options import command_line, parameter, parse_values
from diptych.core.reading import file_errors
from diptych.core.table import Cell, Table
from diptych.data.products import paths_of
from diptych.data.source import OutOption, SamplesOption, TargetOption
from diptych.encoders.embeddings import Embeddings
from diptych.encoders.inputs import load_tensors, save_tensors
from diptych.metrics.bootstrap import Bootstrap
from diptych.metrics.runs import blocks
from diptych.training.environment import environment

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.commerce.category_to_image.training import TrainedModel

_WEIGHTS, _TEXT, _SPLITS = "model.safetensors", "encoders", "splits.parquet"
_AGAIN = "train it again: diptych categories train"
_BLOCK = 16_384  # products that are embedded together


@dataclass(frozen=True, eq=False)
class CategoryRun(Artifact, kind="category_run", version=4, recreate="diptych categories train DATA"):
    """A trained model, its encoders and its tree; model and encoders are read when they are first needed."""

    about: dict[str, Any]  # model, fingerprint, options, training, data (a ProductData), encoders, …
    paths: list[list[str]]  # of the tree, in node order
    codes: list[list[Any]]  # path and code of the nodes that have one
    folder: Path = field(init=False, default=Path())

    @classmethod
    def finish(
        cls,
        folder: Path | str,
        model: TrainedModel,
        maker: FeatureMaker,
        catalogue: Catalogue,
        data: Mapping[str, Any],
    ) -> CategoryRun:
        import pyarrow
        import pyarrow.parquet as parquet

        from diptych.training.run import TrainingFolder

        folder, tree = Path(folder), catalogue.tree
        about = {
            "model": model.name,
            "fingerprint": model.fingerprint,
            "options": model.options.model_dump(mode="json"),
            "training": dict(model.about),
            "data": dict(data),
            "catalogue": catalogue.fingerprint,
            "splits": catalogue.split_sizes,
            "notes": list(catalogue.notes),
            "encoders": maker.describe(),
            "tree": tree.fingerprint,
            "environment": environment(),
        }
        with atomic_path(folder / _WEIGHTS) as temporary:
            save_tensors(model.model.state_dict(), temporary)
        maker.text.save(folder / _TEXT)
        splits = {"id": list(map(str, catalogue.ids)), "split": list(catalogue.splits)}
        with atomic_path(folder / _SPLITS) as temporary:
            parquet.write_table(pyarrow.table(splits), temporary, compression="zstd")
        codes = [[list(path), code] for path, code in tree.codes.items()]
        cls(about, [list(path) for path in tree.paths], codes).save(folder / cls.marker())
        TrainingFolder(folder).finish()
        return cls.open(folder)

    @property
    def options(self) -> TrainOptions:
        return TrainOptions.read(self.about["options"], str(self.folder), StorageError)

    @cached_property
    def model(self) -> TrainedModel:
        from diptych.commerce.category_to_image.training import TrainedModel

        options, encoders, file = self.options, self.about["encoders"], self.folder / _WEIGHTS
        image, text = ((encoders[side] or {"width": 0})["width"] for side in ("image", "text"))
        model = TrainedModel.untrained(options, image, text, encoders_of(encoders, *options.sides))
        with file_errors(file, fix=_AGAIN):
            model.model.load_state_dict(load_tensors(file, _AGAIN))
        if model.fingerprint != self.about["fingerprint"]:
            problem = f"{file} has the fingerprint {model.fingerprint}, the run {self.about['fingerprint']}"
            raise MismatchError(problem, _AGAIN)
        return replace(model, about=self.about["training"])

    @cached_property
    def maker(self) -> FeatureMaker:
        return FeatureMaker.reopen(self.about["encoders"], self.folder / _TEXT)

    @cached_property
    def tree(self) -> CategoryTree:
        return CategoryTree(self.paths, {tuple(path): code for path, code in self.codes})

    @cached_property
    def splits(self) -> dict[str, str]:
        """The split of every product that it was trained with, by id."""
        import pyarrow.parquet as parquet

        with file_errors(self.folder / _SPLITS, fix=_AGAIN):
            table = parquet.read_table(self.folder / _SPLITS)
            return dict(zip(table["id"].to_pylist(), table["split"].to_pylist(), strict=True))

    def products(self) -> Catalogue:
        again = ProductData.read(self.about["data"], str(self.folder), StorageError, _AGAIN).catalogue()
        return replace(again, splits=[self.splits.get(name, "new") for name in again.ids])

    def texts(self, tree: CategoryTree) -> list[str]:
        """Return the query of every node of a tree, in the form that the model was trained with."""
        return category_texts(tree, range(len(tree)), self.options.query)

    def category_rows(self, texts: Sequence[str]) -> np.ndarray:
        """(q, d) float32 embeddings of category texts."""
        return self.model.category_rows(self.maker.categories(texts))

    @contextmanager
    def embeddings(self, catalogue: Catalogue, **about: Any) -> Iterator[Embeddings]:
        """Yield (n, d) float32 embeddings of products, made block by block and memory-mapped while the block runs."""
        features, n, model = self.maker.products(catalogue), len(catalogue), self.model
        width = model.options.width + (features.title.shape[1] if model.options.share_of_zero_shot else 0)
        with TemporaryDirectory() as folder:
            rows = create_array(Path(folder) / "rows.npy", "float32", (n, width))
            for here in track([*blocks(n, _BLOCK)], "products", unit="blocks"):
                rows[here] = model.product_rows(features.part(np.arange(n)[here]))
            made, data = {"ranker": model.describe(), **about}, catalogue.fingerprint
            yield Embeddings(catalogue.ids, rows, model.fingerprint, data, "product", made)


class OtherData(SortedData):
    """Options of the products that a run is used on; without ``data`` those that it was trained on."""

    def of(self, run: CategoryRun, split: str | None = None, own_tree: bool = True) -> Catalogue:
        """Read the products of a split, in the tree of their taxonomy, else their ``own_tree``, else the run's."""
        if self.data is None:
            if self != OtherData(unknown=self.unknown):
                fix = "name the products after the run, or leave them out"
                raise UsageError("options of data, but no data", fix)
            found = run.products()
        else:
            collection, tree, unknown = self.collection(), self.tree(), self.unknown
            if not tree and not (own_tree and any(map(paths_of, collection.records or ()))):
                tree, unknown = run.tree, "none"
            form = run.about["data"].get("attribute_form", "named")
            found = catalogue_of(collection, attribute_form=form, tree=tree, unknown=unknown)
        return found if split in (None, "all") else found.split(split)

    def use(self, run: CategoryRun, split: str | None, part: Catalogue) -> dict[str, Any]:
        """Return the metadata of what a run was used on, with how many of its products it was trained on."""
        learned = np.array([run.splits.get(name) == "train" for name in part.ids], dtype=bool)
        return {
            "run": str(run.folder.resolve()),
            "model": run.about["model"],
            "fingerprint": run.about["fingerprint"],
            "split": split,
            "data": run.about["data"] if self.data is None else self.model_dump(mode="json"),
            "trained_on": int((learned & ((part.place >= 0) | (self.data is not None))).sum()),
        }


class PartOptions(OutOption):
    """Options of a part of the products, and of the place of results."""

    split: str | None = parameter(None, "Only the products of this split, e.g. test.")


_SETTINGS = "diptych.commerce.catalogue:SETTINGS"
_STAND_INS = {
    "grid": "  the grid sees colours and edges only: better images with --image-encoder backbone:NAME or hf:NAME",
    "lsa": "  lsa knows the words of the training products only: better texts with --text-encoder sentence:NAME",
}


class HeadOptions(TargetOption):
    """Options of the training of heads over frozen encoders."""

    query: CategoryText | None = parameter(
        None, "unique: a category's path where names repeat.", default="unique; name with --published"
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
        "Products' categories: all (one drawn per epoch), most-specific or most-general.",
        names=_SETTINGS,
    )
    seed: int = parameter(0, "Of weights, order and draws.", ge=0)

    def chosen(self) -> TrainOptions:
        for what, name, known in (
            ("trained model", self.model, TRAINED),
            ("setting", self.setting, SETTINGS),
        ):
            if name not in known:
                raise UnknownNameError(what, name, known)
        made = TrainOptions.published if self.published else TrainOptions
        base = made(modalities=TRAINED[self.model], setting=self.setting).model_dump()
        resample = self.setting == "all" and not self.published
        return self.training(base | {"query": self.text, "seed": self.seed, "resample": resample}, "--seed")


def train_catalogue(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> list[str | Table]:
    from diptych.commerce.category_to_image.training import train
    from diptych.training.run import TrainingFolder

    chosen, out = options.chosen(), options.out
    TrainingFolder(out).check({}, allowed=(), whole=False)
    catalogue = products.catalogue()
    maker = encoders.maker(catalogue, chosen.modalities)
    [learned], validated = training_part(catalogue), validation_part(catalogue)
    features = maker.products(learned)
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), chosen.query))
    validation = None if validated is None else maker.products(validated)
    trained = train(features, categories, chosen, out, validation=validation)
    run = CategoryRun.finish(out, trained, maker, catalogue, products.model_dump(mode="json"))
    about, described = trained.about, run.about["encoders"]
    sizes = ", ".join(f"{name} {size:,}" for name, size in catalogue.split_sizes.items())
    lines: list[str | Table] = [catalogue.describe(), *(f"  {note}" for note in catalogue.notes)]
    lines += [f"splits: {sizes}", encoders_line(described)]
    kinds = [(described[side] or {}).get("kind") for side in ("image", "text")]
    lines += [line for kind, line in _STAND_INS.items() if kind in kinds]
    if unreadable := features.about["unreadable_pictures"]:
        lines.append(f"{unreadable:,} images to train on cannot be read: their products stand without")
    left, best, by = about["without_category"], about["best_epoch"], about["chosen_by"]
    model = (
        f"{chosen.model} of {chosen.setting} categories by {chosen.query}, {trained.fingerprint}, in {out}"
    )
    last = about["metrics"][best - 1]
    taken = f"the best by {by} of validation products, {100 * last[by]:.2f} %" if by else "the last"
    lines.append(f"{model}: trained on {about['products']:,} products, {left:,} without a category left out")
    lines.append(f"epoch {best} of {about['epochs']}, {taken}: loss {last['loss']:.4f}")
    if "test" in catalogue.split_sizes and ((part := catalogue.split("test")).place >= 0).any():
        judged = judge(part, chosen.setting, "label", chosen.seed)
        tested = measure_ranker(run.model, maker.products(part), categories, judged)
        names = [name for name in CATEGORY_MEASURES if "hits" not in name]
        scores = [tested.score(name, "t2i") for name in names]
        rows = {chosen.model: [one.value for one in scores], "chance": [one.chance for one in scores]}
        cells = [[Cell(name), *map(percent, values)] for name, values in rows.items()]
        after = "per cent; products are relevant by label; mAP@k divided by min(k, relevant)"
        lines.append(Table(f"Test products, {chosen.setting}", ("model", *names), cells, after=after))
    return lines


class EvaluateOptions(HeadOptions, SamplesOption):
    """Options of an evaluation."""

    model: list[str] = parameter(
        [], "bm25, clip, sentence, clip-i … clip-ita, mixed. Repeatable.", default="all but mixed"
    )
    setting: list[str] = parameter(
        [], "all, most-general, most-specific. Repeatable.", names=_SETTINGS, default="all three"
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
    """Train on the split ``train`` and rank the split ``test``; a run is measured on what it has not seen."""
    from diptych.commerce.category_to_image.evaluation import evaluate_models

    if options.run is not None and encoders != EncoderSpec():
        raise UsageError("a run is measured as it is", "leave out the encoders")
    catalogue, models = products.catalogue(), _names(options.model)
    words = ["diptych", "categories", "evaluate", "DATA", "--out", "EVALUATION"]
    words += ["--run", "RUN"] if options.run else []
    paths = ["data", "images", "taxonomy", "out", "run", "jobs"]  # of this machine
    command = command_line(words, products, encoders, options, left_out=paths)
    about: dict[str, Any] = {"source": products.model_dump(mode="json"), "command": command}
    train, validation, test = None, None, catalogue
    how = options.model_dump(include={"relevance", "judged_seed"})
    how |= {"settings": _names(options.setting), "bootstrap": Bootstrap(options.samples), "about": about}
    if options.run is not None:
        run = CategoryRun.open(options.run)
        maker, test = run.maker, held_out(run, catalogue)
        about |= {"run": str(run.folder.resolve()), "notes": list(test.notes)}
        what = f"{run.about['model']} trained on {run.options.setting} categories"
        how |= {"given": (run.model, what), "query": run.options.query}
        if run.about["catalogue"] == catalogue.fingerprint:
            [train] = training_part(replace(catalogue, splits=[run.splits[name] for name in catalogue.ids]))
    else:
        if {"train", "test"} <= catalogue.split_sizes.keys() or not models or not set(models) <= set(RANKERS):
            validation, (train, test) = validation_part(catalogue), training_part(catalogue, "test")
        elif "test" in catalogue.split_sizes:
            test = catalogue.split("test")  # baselines need no more
        maker = encoders.maker(catalogue)
        training = options.training({}, "--seeds") if options.set_ else None
        how |= {"models": models, "seeds": tuple(range(options.seeds)), "options": training}
        how |= {"query": options.text, "published": options.published, "jobs": options.jobs}
    return evaluate_models(train, validation, test, maker, options.out, **how), test


def _names(given: Sequence[str]) -> list[str] | None:
    return [name for text in given for name in text.split(",") if name] if given else None


def held_out(run: CategoryRun, catalogue: Catalogue) -> Catalogue:
    """Return the products that a run did not train on or choose its epoch by, with a note about the others."""
    known = ("train", *VALIDATION)
    rows = [row for row, name in enumerate(catalogue.ids) if run.splits.get(name) not in known]
    if not rows:
        problem = f"the run was trained on all {len(catalogue):,} products of {catalogue.name}"
        raise UsageError(problem, "give other products")
    if not (left := len(catalogue) - len(rows)):
        return catalogue
    note = f"{left:,} products left out that the run was trained or validated on"
    return replace(catalogue.subset(rows), notes=(*catalogue.notes, note))


def evaluated_products(found: ModelsEvaluation) -> Catalogue:
    """Read the products that an evaluation ranked; StorageError where they are no longer what they were."""
    source, run = found.about.get("source", {}), found.about.get("run")
    whole = ProductData.read(source, str(found.folder), StorageError, "evaluate again").catalogue()
    parts = [whole, *([held_out(CategoryRun.open(run), whole)] if run else [])]
    for part in [*parts, *([whole.split("test")] if "test" in whole.split_sizes else [])]:
        if part.fingerprint == found.protocol.test:
            return part
    raise StorageError("the products are not those that were ranked any more", "evaluate again")
