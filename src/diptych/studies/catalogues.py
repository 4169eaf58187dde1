"""Studies of a catalogue: how it is measured, what is made of it once, and its rows.

::

    studies/
      cti.table-7.1/                 a study's folder
      cti.catalogues/                beside it, shared by the studies of the paper
        NAME-KEY/                    one catalogue, measured in one way; KEY says which
          evaluation/                as ``diptych categories evaluate`` writes it

An evaluation grows by models, settings and seeds: what another study made is not made again.

What a person may choose about models of a catalogue (``--set KEY=VALUE``) are ``features.image``, ``features.text``,
``features.KEY`` of the image encoder, ``train.KEY`` of training, and ``measure.KEY``: see :class:`CatalogueOptions`.
Settings have other defaults for some of them, which ``diptych study show`` names.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, cast

from pydantic import ConfigDict, Field, model_validator

from diptych.core.errors import DataError, Interrupted, UnknownNameError, UsageError
from diptych.core.files import safe_name
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.studies.making import Collections, Machine, Made, Unit, logger
from diptych.studies.rows import BASE_SEED, Choices, rows_of, run_folder, setting_for, usable_rows
from diptych.studies.study import Measuring, Row, SettingName, Study, Subject

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.commerce.category_to_image.features import FeatureMaker
    from diptych.commerce.category_to_image.options import TrainOptions
    from diptych.data.collection import Collection


MEASURED_BY = ("relevance", "query", "split", "attributes", "missing", "draw", "jobs")
"""Keys of ``measure``."""

_SECTIONS = ("features", "train", "measure")
_OWN = ("modalities", "setting", "seed", "query", "resample")
"""Options of training that rows, seeds and ``measure.query`` set; ``resample`` would see other categories per epoch."""


class CatalogueOptions(Options):
    """How a catalogue is measured."""

    model_config = ConfigDict(strict=True)

    image: str | None = Field(
        "grid", min_length=1
    )  # encoder of images: grid, backbone:NAME, a dual encoder; or none
    text: str = Field("lsa", min_length=1)  # encoder of titles, attributes, categories: lsa, sentence:MODEL
    image_options: dict[str, Any] = Field(default_factory=dict)  # e.g. weights, size, timm.pad_type
    train: dict[str, Any] = Field(default_factory=dict)  # see diptych categories train --help
    published: bool = False
    relevance: Literal["label", "path"] = (
        "label"  # path: relevant to the ancestors of a product's category too
    )
    query: Literal["name", "path"] = "name"  # what stands for a category
    # without it the data's own test split where it has one, else by product
    split: Literal["given", "product", "category"] | None = None
    attributes: Literal["named", "values"] = "named"  # values: an attribute's text without its name
    missing: Literal["error", "none"] = (
        "none"  # error: no product may lack an image, or have one that cannot be read
    )
    draw: int = Field(0, ge=0)  # seed of the categories that the setting all draws for test products
    jobs: int = Field(1, ge=1)

    @classmethod
    def of(cls, values: Mapping[str, Any], *, published: bool = False) -> CatalogueOptions:
        """From dotted keys and values, as settings have them and as a person sets them."""
        sections: dict[str, dict[str, Any]] = {name: {} for name in _SECTIONS}
        for key, value in values.items():
            name, point, rest = key.partition(".")
            if name not in sections:
                raise UnknownNameError("section of a study of a catalogue", name, _SECTIONS)
            if not point or not rest:
                raise UsageError(f"{name} is a section, not a value", f"set its keys: --set {name}.KEY=VALUE")
            _put(sections[name], rest.split("."), value)
        features = sections["features"]
        encoders = {side: features.pop(side) for side in ("image", "text") if side in features}
        if encoders.get("image") == "none":
            encoders["image"] = None
        for key in sections["measure"]:
            if key not in MEASURED_BY:
                raise UnknownNameError("key of measure", key, MEASURED_BY)
        others = {"image_options": features, "train": sections["train"], "published": published}
        return cls.read({**encoders, **sections["measure"], **others}, "measuring a catalogue")

    @model_validator(mode="after")
    def _of_training(self) -> Self:
        if self.published and self.train:
            raise UsageError(
                f"train.{next(iter(self.train))} is set, and the setting 'paper' trains as the thesis says",
                "choose --setting data, or leave it out",
            )
        self.training()
        return self

    def training(self) -> TrainOptions | None:
        """Options of training; None for the thesis's."""
        from diptych.commerce.category_to_image.options import TrainOptions

        if self.published:
            return None
        known = [key for key in TrainOptions.model_fields if key not in _OWN]
        for key in self.train:
            if key not in known:
                raise UnknownNameError("key of train", key, known)
        return TrainOptions.read(self.train, "train")

    def protocol(self) -> str:
        """How is measured, in the words of printed numbers."""
        return f"by {self.relevance}" + (
            "" if self.query == "name" else f", categories by their {self.query}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All that numbers depend on besides the encoders, which have fingerprints; JSON-able."""
        return self.model_dump(exclude={"image", "text", "image_options", "jobs"})


def _put(section: dict[str, Any], keys: list[str], value: Any) -> None:
    """``timm.pad_type`` is a key of the table ``timm``."""
    for key in keys[:-1]:
        section = section.setdefault(key, {})
    section[keys[-1]] = value


KEY = 8
"""Characters of a fingerprint that tell folders apart."""

_VALIDATION = ("val", "validation", "valid", "dev")


@dataclass
class CatalogueWorkshop:
    """A catalogue and what is made of it, each when it is first asked for."""

    beside: Path
    catalogue: Catalogue
    options: CatalogueOptions
    features_root: Path | None = None

    @cached_property
    def maker(self) -> FeatureMaker:
        """The frozen encoders; ``lsa`` learns from the training products."""
        from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts

        return FeatureMaker.of(
            self.options.image,
            self.options.text,
            learn_from=learning_texts(self.catalogue.split("train")),
            cache=self.features_root,
            image_options=dict(self.options.image_options) or None,
        )

    @cached_property
    def key(self) -> str:
        """Of products, splits, encoders and how it is measured; which models and seeds plays no part."""
        splits = list(self.catalogue.splits)
        return fingerprint(self.catalogue.fingerprint, splits, self.maker.fingerprint, self.options.to_dict())

    @property
    def folder(self) -> Path:
        """Where its evaluation is."""
        return self.beside / f"{safe_name(self.catalogue.name)}-{self.key[:KEY]}" / "evaluation"

    def why_not(self, model: str) -> str | None:
        """Why a model cannot be had of this catalogue with these encoders; None where it can."""
        from diptych.commerce.category_to_image.evaluation import modalities_of

        if model == "clip" and (self.maker.image is None or self.maker.image.texts is None):
            return (
                f"needs an encoder of pictures that reads texts too, which {self.options.image} does not: give one "
                "with --set features.image=MODEL"
            )
        products = self.catalogue.split("test")
        has = {
            "image": self.maker.image is not None and bool(products.pictured.any()),
            "title": any(title.strip() for title in products.titles),
            "attributes": any(any(text.strip() for text in given) for given in products.attributes),
        }
        lacks = [one for one in modalities_of(model) or ("title",) if not has[one] and model != "clip"]
        return f"needs {' and '.join(lacks)}, which no product has" if lacks else None

    def evaluation(
        self, models: Sequence[str], settings: Sequence[str], seeds: Sequence[int]
    ) -> ModelsEvaluation:
        """Models in settings, each trained with every seed; what was made before is used."""
        from diptych.commerce.category_to_image.evaluation import ModelsEvaluation, evaluate_models
        from diptych.commerce.category_to_image.evaluation.grid import RESULTS

        there = self._there()
        wanted = {
            name: list(dict.fromkeys([*there.get(name, []), *given]))
            for name, given in (("models", models), ("settings", settings), ("seeds", seeds))
        }
        grows = not there or any(set(wanted[name]) != set(there[name]) for name in wanted)
        if not grows and (self.folder / RESULTS).is_file():
            return ModelsEvaluation.open(self.folder)
        logger.info(
            f"{self.catalogue.name}: {len(wanted['models'])} models in {len(wanted['settings'])} settings, "
            f"seeds {', '.join(map(str, wanted['seeds']))}"
        )
        options = self.options
        try:
            return evaluate_models(
                self.catalogue.split("train"),
                self._validation,
                self.catalogue.split("test"),
                self.maker,
                self.folder,
                models=wanted["models"],
                settings=wanted["settings"],
                relevance=options.relevance,
                query=options.query,
                seeds=sorted(wanted["seeds"]),
                published=options.published,
                options=options.training(),
                judged_seed=options.draw,
                missing=options.missing,
                jobs=options.jobs,
            )
        except Interrupted:
            raise Interrupted(
                "stopped: every model that was measured is kept", "the same command goes on"
            ) from None

    @property
    def _validation(self) -> Catalogue | None:
        """Products that choose a training's best epoch: of the split for it, where one of them has a category."""
        name = next((name for name in _VALIDATION if name in self.catalogue.split_sizes), None)
        part = None if name is None else self.catalogue.split(name)
        return None if part is None or not bool((part.place >= 0).any()) else part

    def _there(self) -> dict[str, Any]:
        """What an earlier call measured here, or began to."""
        from diptych.commerce.category_to_image.evaluation.grid import GridHeader

        return asdict(GridHeader.open(self.folder).protocol) if GridHeader.is_at(self.folder) else {}


def catalogue_with_splits(collection: Any, options: CatalogueOptions) -> Catalogue:
    """The products of a collection, split as asked."""
    from diptych.commerce.catalogue import catalogue_of
    from diptych.commerce.catalogue.making import assign_splits

    catalogue = catalogue_of(collection, attribute_form=options.attributes)
    kind = options.split
    tested = {"train", "test"} <= set(catalogue.split_sizes)
    if kind in (None, "category") and not tested:
        catalogue = assign_splits(catalogue, "product")
    if kind is not None:
        catalogue = assign_splits(catalogue, kind)
    for name in ("train", "test"):
        if name not in catalogue.split_sizes:
            has = ", ".join(catalogue.split_sizes)
            raise DataError(
                f"{catalogue.name} has no split {name!r}, only {has}", "--set measure.split=product"
            )
    return catalogue


@dataclass(frozen=True)
class CatalogueRow:
    """A row and seed of a study of a catalogue."""

    row: Row
    seed: int
    folder: Path
    evaluation: ModelsEvaluation
    options: CatalogueOptions
    dataset: str
    products: int
    by_hand: str = ""


class CatalogueMeasuring(Measuring, Protocol):
    """How rows of a catalogue are read from an evaluation of models."""

    def needs(self, row: Row) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Models and settings that the row is read from."""

    def is_trained(self, row: Row) -> bool:
        """Whether there is a row per seed."""

    def seconds(self, made: CatalogueRow) -> float:
        """Processor time of its models."""


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


_NOTHING = "nothing of it can be counted here: no categories of the kind, or no errors"


@dataclass
class CatalogueRows:
    """The rows of a study of a catalogue: their models are trained and evaluated together, rows are read from that.

    A row that the catalogue or its encoders cannot give is left out, and the table says why.
    """

    study: Study
    folder: Path
    setting: SettingName
    usable: list[Row]
    seeds: tuple[int, ...]
    workshop: CatalogueWorkshop
    choices: Choices
    left_out: dict[str, str]
    nothing: str = "nothing of it can be counted here: no categories of the kind, or no errors"

    @classmethod
    def of(
        cls,
        study: Study,
        folder: Path,
        choices: Choices,
        rows: list[str] | None,
        seeds: Sequence[int] | None,
        machine: Machine,
    ) -> CatalogueRows:
        """Open the products and choose setting and options."""
        collection = Collections(choices).given
        setting = setting_for(study, None if collection is None else collection.name, choices.setting)
        chosen = study.settings[setting]
        options = CatalogueOptions.of({**chosen.measure, **choices.values}, published=setting == "paper")
        asked = rows_of(study, setting, rows)
        if collection is None:
            collection = _generated(study, setting)
        catalogue = catalogue_with_splits(collection, options)
        beside = folder.resolve().parent / f"{study.paper.key}.catalogues"
        workshop = CatalogueWorkshop(beside, catalogue, options, machine.features_root)
        measure = cast(CatalogueMeasuring, study.measure)
        left_out = {
            row.name: why
            for row in asked
            for model in measure.needs(row)[0]
            if (why := workshop.why_not(model))
        }
        usable = usable_rows(study, asked, left_out)
        seeds = tuple(chosen.seeds if seeds is None else seeds)
        return cls(study, folder, setting, usable, seeds, workshop, choices, left_out)

    @property
    def _measure(self) -> CatalogueMeasuring:
        return cast(CatalogueMeasuring, self.study.measure)

    def units(self) -> list[Unit]:
        """Return a unit per row and seed; models that are not trained have one."""
        return [
            Unit(row, seed, place=f"row {n} of {len(self.usable)}")
            for n, row in enumerate(self.usable, 1)
            for seed in (self.seeds if self._measure.is_trained(row) else (BASE_SEED,))
        ]

    @cached_property
    def _evaluated(self) -> tuple[ModelsEvaluation, str]:
        """The evaluation of all models, and the command that makes the like of it by hand."""
        needs = [self._measure.needs(row) for row in self.usable]
        models, settings = (
            list(dict.fromkeys(name for one in needs for name in one[side])) for side in (0, 1)
        )
        command = by_hand(self.choices.data, self.workshop.options, models, settings, self.seeds)
        return self.workshop.evaluation(models, settings, self.seeds), command

    def made(self, unit: Unit) -> Iterator[Made]:
        """Yield what the evaluation has of a row and seed."""
        evaluation, command = self._evaluated
        catalogue, target = self.workshop.catalogue, run_folder(self.study, unit.row, unit.seed, self.folder)
        made = CatalogueRow(
            unit.row,
            unit.seed,
            target,
            evaluation,
            self.workshop.options,
            catalogue.name,
            len(catalogue),
            command,
        )
        yield Made(
            Subject(made, None, None),
            (self.workshop.key,),
            changed=tuple(sorted(self.choices.values)),
            data=catalogue.describe(),
            seconds=self._measure.seconds(made),
            again=True,
        )

    def hint(self) -> tuple[str, str]:
        """Return what was measured, and what to give instead."""
        return self.workshop.catalogue.describe(), "give a catalogue with more products"


def _generated(study: Study, setting: SettingName) -> Collection:
    """The setting's own products."""
    from diptych.data.scenes import product_scenes

    options = study.settings[setting].products
    if options is None:
        raise DataError(
            f"no products given for {study.name}", "--data DATASET, or --quick for generated ones"
        )
    return product_scenes(**options)
