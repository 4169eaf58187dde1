"""Rows of the studies of thesis chapter 7: models in settings, and what they are called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.studies.study import Column, Row, Setting, SettingName
from diptych.studies.verdict import Evidence

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation


MODELS = {
    "bm25": "BM25",
    "clip": "CLIP",
    "sentence": "sentence encoder",
    "clip-i": "CLIP-I",
    "clip-t": "CLIP-T",
    "clip-a": "CLIP-A",
    "clip-it": "CLIP-IT",
    "clip-ia": "CLIP-IA",
    "clip-ta": "CLIP-TA",
    "clip-ita": "CLIP-ITA",
}
"""Models and what reports call them; the thesis's sentence encoder is MPNet."""

BASELINES = ("bm25", "clip", "sentence")
UNPRINTED = ("clip-t", "clip-a", "clip-it", "clip-ta")
FULL = "clip-ita"
"""The model with all modalities, whose errors the chapter looks at."""

SETTINGS = {"all": "all categories", "most-general": "most general", "most-specific": "most specific"}
"""Which category a product is given, and what reports call it."""

MEASURES = ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision")

RETRIEVAL = tuple(Column(name, decimals=2) for name in MEASURES)
"""Columns of tables 7.1 and 7.3, in per cent."""

_SUBSETS = "not in the thesis: what its modalities are worth without each other"


def row_name(first: str, setting: str) -> str:
    """The name of a model's row, or a group's, in a setting."""
    return f"{first}-{setting}"


def of_row(name: str) -> tuple[str, str]:
    """What :func:`row_name` was made of."""
    setting = next(one for one in ("most-general", "most-specific", "all") if name.endswith(f"-{one}"))
    return name.removesuffix(f"-{setting}"), setting


def model_rows() -> tuple[Row, ...]:
    """A row per setting and model, as table 7.1 has them."""
    return tuple(
        Row(
            row_name(model, setting),
            f"{label}, {called}",
            extra=_SUBSETS if model in UNPRINTED else "",
            catalogue_alone=True,
        )
        for setting, called in SETTINGS.items()
        for model, label in MODELS.items()
    )


def seen_rows() -> tuple[Row, ...]:
    """Two rows per setting, as table 7.3 has them."""
    return tuple(
        Row(row_name(group, setting), f"{MODELS[FULL]}, {group}, {called}", catalogue_alone=True)
        for setting, called in SETTINGS.items()
        for group in ("unseen", "seen")
    )


def setting_rows(total: bool = False) -> tuple[Row, ...]:
    """A row per setting, and one of all together."""
    named = {**SETTINGS, **({"total": "total"} if total else {})}
    return tuple(Row(name, label, catalogue_alone=True) for name, label in named.items())


TRAINED: dict[SettingName, Setting] = {
    "paper": Setting(
        description="CLIP's ViT-B/32 and all-mpnet-base-v2 by their names on Hugging Face, trained as section 7.4.2 "
        "says (τ = 1, λ = 0.5, 30 epochs, batches of 8 and 128); on XMarket, whose 38,921 products of the chapter were "
        "not published",
        recipes={},
        measure={
            "features.image": "hf:openai/clip-vit-base-patch32",
            "features.text": "sentence:sentence-transformers/all-mpnet-base-v2",
        },
        time="not measured; both encoders on 40,000 products are for a GPU, training is not",
    ),
    "data": Setting(
        description="any catalogue, our defaults of training; colours, edges and latent semantics where no encoder is "
        "given",
        recipes={},
        seeds=(0, 1, 2),
        time="1 min per training; on a slow processor, of 5,000 products, and 63 trainings with three seeds, once "
        "pictures are encoded",
    ),
    "quick": Setting(
        description="generated products, colours and edges of small pictures, latent semantics, ten epochs; a fifth of "
        "the most specific categories is only tested",
        recipes={},
        measure={
            "train.epochs": 10,
            "train.hidden": 96,
            "train.width": 64,
            "features.text": "lsa:64",
            "measure.split": "category",
        },
        products={"n_products": 1200, "levels": (2, 5), "size": 32, "seed": 7},
        time="1 min; on a processor, for all four together",
    ),
}

MAP_NOTE = (
    "Printed mAP@k is held against mAP over the hits among the first k (mAP-hits@k); the number below it is divided by "
    "min(k, relevant products)."
)
"""Of tables with mAP@k."""

NOTES = (
    "Encoders are given with --set features.image=… and --set features.text=…; the row of CLIP needs one that reads "
    "pictures and texts. All four studies share one evaluation, in the folder cti.catalogues beside theirs.",
    "The test products get one category each, drawn once (all categories) or as the setting says; a category asks when "
    "it has a test product.",
)
"""Of all."""

_FLIPS = 10_000


def evaluation_of(evidence: Evidence) -> ModelsEvaluation | None:
    """The evaluation that rows were read from; None where it is gone, or where numbers are printed ones."""
    folder = next((one for folders in evidence.kept.values() for one in folders if one.is_dir()), None)
    return None if folder is None else _opened(str(folder.resolve()), _written(folder))


def _written(folder: Path) -> int:
    """When its numbers were written: an evaluation that has grown is another one."""
    from diptych.commerce.category_to_image.evaluation.grid import RESULTS

    file = folder / RESULTS
    return file.stat().st_mtime_ns if file.is_file() else 0


@lru_cache(maxsize=2)
def _opened(folder: str, written: int) -> ModelsEvaluation | None:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.core.errors import DataError, StorageError

    if not written:
        return None
    try:
        return ModelsEvaluation.open(folder)
    except (DataError, StorageError):
        return None  # begun anew, or moved: numbers are kept with the rows


def tested(evidence: Evidence, first: str, second: str, columns: Sequence[str]) -> Mapping[str, str]:
    """Column → what a test over categories says of two models in one setting, to stand behind their difference.

    Paired random swaps per category of the means over seeds, with Holm's correction over the columns. Empty where
    there are no values per category, as of printed numbers.
    """
    (one, setting), (other, same) = of_row(first), of_row(second)
    found = evaluation_of(evidence)
    if (
        found is None
        or setting != same
        or setting not in found.settings
        or not {one, other} <= set(found.models)
    ):
        return {}
    return _compared(str(found.folder), _written(found.folder), setting, one, other, tuple(columns))


@lru_cache(maxsize=512)
def _compared(
    folder: str, written: int, setting: str, one: str, other: str, columns: tuple[str, ...]
) -> dict[str, str]:
    from diptych.commerce.category_to_image.evaluation.summary import compare_models
    from diptych.metrics.bootstrap import Bootstrap

    found = _opened(folder, written)
    assert found is not None
    values = {
        model: {
            name: [cell.result.per_query["t2i"][name] for cell in found.cells(setting, model)]
            for name in columns
        }
        for model in (one, other)
    }
    differences = compare_models(values, other, columns, flips=_FLIPS, bootstrap=Bootstrap(samples=0))
    return {difference.measure: f"; {_said(difference.p)}" for difference in differences}


def _said(p: float | None) -> str:
    if p is None:
        return "no test"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
