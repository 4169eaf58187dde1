"""The verbs train and evaluate: their options, and what they make of a catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import model_validator

from diptych.commerce.catalogue.catalogue import Catalogue, CategoryText, category_texts, judge
from diptych.commerce.catalogue.making import seen_nodes
from diptych.commerce.catalogue.source import VALIDATION, ProductData, training_part, validation_part
from diptych.commerce.category_to_image.features import TRAINED, EncoderSpec, TrainOptions, encoders_line
from diptych.commerce.category_to_image.rankers import CATEGORY_MEASURES, RANKERS, measure_ranker
from diptych.commerce.category_to_image.results import percent
from diptych.commerce.category_to_image.run import CategoryRun
from diptych.core.errors import StorageError, UnknownNameError, UsageError
from diptych.core.options import command_line, parameter, parse_values
from diptych.core.table import Cell, Table
from diptych.data.source import SamplesOption, TargetOption
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

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
        if self.model not in TRAINED:
            raise UnknownNameError("trained model", self.model, TRAINED)
        made = TrainOptions.published if self.published else TrainOptions
        base = made(modalities=TRAINED[self.model], setting=self.setting).model_dump()
        resample = self.setting == "all" and not self.published
        return self.training(base | {"query": self.text, "seed": self.seed, "resample": resample}, "--seed")


def train_catalogue(products: ProductData, encoders: EncoderSpec, options: TrainHeads) -> list[str | Table]:
    """Train on the split ``train``, choose the epoch by the validation split; return what is shown."""
    from diptych.commerce.category_to_image.training import train
    from diptych.training.run import TrainingFolder

    chosen, out = options.chosen(), options.out
    TrainingFolder(out).check({}, beside=(), whole=False)
    catalogue = products.catalogue()
    maker = encoders.maker(catalogue, chosen.modalities)
    [learned], validated = training_part(catalogue), validation_part(catalogue)
    features = maker.products(learned)
    categories = maker.categories(category_texts(catalogue.tree, range(len(catalogue.tree)), chosen.query))
    validation = None if validated is None else (validated, maker.products(validated))
    trained = train(learned, features, categories, chosen, out, validation=validation)
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
        tested = measure_ranker(run.model, maker.products(part), categories.part(judged.nodes), judged)
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
    """Train on the split ``train``, choose epochs by the validation split if there is one, rank the split ``test``.

    A run that was trained before is measured on the products that it has not seen.
    """
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
            [learned] = training_part(replace(catalogue, splits=[run.splits[name] for name in catalogue.ids]))
            epochs = run.options.drawn_epochs
            how["seen"] = seen_nodes(learned, run.options.setting, run.options.seed, epochs=epochs)
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
