"""What is made of a catalogue once and serves all studies of a paper: features, trained models, their evaluation.

::

    studies/
      cti.table-7.1/                 a study's folder
      cti.catalogues/                beside it, shared by the studies of the paper
        NAME-KEY/                    one catalogue, measured in one way; KEY says which
          evaluation/                as ``diptych categories evaluate`` writes it

An evaluation grows by models, settings and seeds: what another study made is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted
from diptych.core.files import read_json
from diptych.core.fingerprint import fingerprint
from diptych.studies.catalogue_options import CatalogueOptions
from diptych.studies.results import file_name

if TYPE_CHECKING:
    from diptych.commerce.catalogue import Catalogue
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.commerce.category_to_image.features import FeatureMaker

KEY = 8
"""Characters of a fingerprint that tell folders apart."""

_VALIDATION = ("val", "validation", "valid", "dev")


@dataclass
class CatalogueWorkshop:
    """A catalogue and what is made of it, each when it is first asked for.

    Attributes:
        beside: the folder of all catalogues of a paper's studies.
        catalogue: all products, with the splits that are used.
        options: how it is measured.
        features_root: folder of cached features; the cache when not given.
        should_stop: asked where something takes long.
        tell: gets one line before something is made.
    """

    beside: Path
    catalogue: Catalogue
    options: CatalogueOptions
    features_root: Path | None = None
    should_stop: Callable[[], bool] = lambda: False
    tell: Callable[[str], None] = lambda line: None

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
        return self.beside / f"{file_name(self.catalogue.name)}-{self.key[:KEY]}" / "evaluation"

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
        from diptych.commerce.category_to_image.evaluation.protocol import RESULTS

        there = self._there()
        wanted = {
            name: list(dict.fromkeys([*there.get(name, []), *given]))
            for name, given in (("models", models), ("settings", settings), ("seeds", seeds))
        }
        grows = not there or any(set(wanted[name]) != set(there[name]) for name in wanted)
        if not grows and (self.folder / RESULTS).is_file():
            return ModelsEvaluation.open(self.folder)
        self.tell(
            f"{self.catalogue.name}: {len(wanted['models'])} models in {len(wanted['settings'])} settings, "
            f"seeds {', '.join(map(str, wanted['seeds']))}"
        )
        options = self.options
        try:
            with stop_when(self.should_stop):
                return evaluate_models(
                    self.catalogue.split("train"),
                    self._validation,
                    self.catalogue.split("test"),
                    self.maker,
                    self.folder,
                    models=wanted["models"],
                    settings=wanted["settings"],
                    relevance=options.relevance,  # type: ignore[arg-type]
                    query=options.query,  # type: ignore[arg-type]
                    seeds=sorted(wanted["seeds"]),
                    published=options.published,
                    options=options.training(),
                    judged_seed=options.draw,
                    missing=options.missing,  # type: ignore[arg-type]
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
        from diptych.commerce.category_to_image.evaluation.protocol import MARKER

        file = self.folder / MARKER
        return read_json(file)["protocol"] if file.is_file() else {}


def catalogue_with_splits(collection: Any, options: CatalogueOptions) -> Catalogue:
    """The products of a collection, split as asked."""
    from diptych.commerce.catalogue import catalogue_of
    from diptych.commerce.catalogue.splits import assign_splits

    catalogue = catalogue_of(collection, attribute_form=options.attributes)  # type: ignore[arg-type]
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
