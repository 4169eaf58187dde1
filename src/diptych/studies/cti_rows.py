"""Rows of the studies of thesis chapter 7: models in settings, and what they are called."""

from __future__ import annotations

from diptych.studies.study import Column, Row

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
