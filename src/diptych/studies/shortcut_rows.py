"""The rows of chapter 4's studies: two models, what they are trained with, and how.

Rows are called MODEL-SETUP, and MODEL-SETUP-METHOD where something is to keep shortcuts from being all
that is learned: ``vse-unique``, ``clip-bits-4``, ``vse-unique-ltd-eta-0.05``, ``clip-none-ifm-0.1``.
``vse`` is trained from scratch; ``clip`` goes on from a pretrained encoder: the one that is given
(``--set fine_tune=ENCODER``), else, where the setting is not the paper's, from the row ``pretrained``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from diptych.studies.shortcut_checks import VALIDATION, chosen_of
from diptych.studies.study import Row, Setting, SettingName
from diptych.studies.verdict import Evidence

FIGURE, LTD_TABLE, IFM_TABLE = "svl.figure-4.5", "svl.table-4.1", "svl.table-4.2"
"""Studies in whose folders runs are."""

MODELS = {"vse": "From scratch", "clip": "Fine-tuned"}
BITS = tuple(range(14))
BOUNDS = (0.01, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
BUDGETS = (0.05, 0.1, 0.2, 0.5, 1.0)

PRETRAINED = Row(
    "pretrained",
    "Pretrained",
    "pretrained",
    {"shortcuts.setup": "per-caption", "shortcuts.carries": "one"},
    home=FIGURE,
)
"""What fine-tuned rows start from where no encoder is given.

It has to know digits, as CLIP does from the web's pictures with writing on them: a model that has never
seen any does not find the shortcut in a short fine-tuning. So its pictures carry the number of one of
their captions, which says nothing about the others.
"""

_OURS = "not in the paper: every caption has a number of its own"

SETUPS: Mapping[str, tuple[str, dict[str, Any], str]] = {
    "none": ("no shortcuts", {"shortcuts.setup": "none"}, ""),
    "captions": ("on captions alone", {"shortcuts.setup": "captions"}, ""),
    "images": ("on images alone", {"shortcuts.setup": "images"}, ""),
    "unique": ("unique", {"shortcuts.setup": "unique"}, ""),
    **{
        f"bits-{bits}": (
            f"{bits} bit{'' if bits == 1 else 's'}",
            {"shortcuts.setup": "bits", "shortcuts.bits": bits},
            "",
        )
        for bits in BITS
    },
    "per-caption-all": (
        "per caption, all on the image",
        {"shortcuts.setup": "per-caption", "shortcuts.carries": "all"},
        f"{_OURS}, and its image carries them all",
    ),
    "per-caption-one": (
        "per caption, one on the image",
        {"shortcuts.setup": "per-caption", "shortcuts.carries": "one"},
        f"{_OURS}, and its image carries one of them",
    ),
}
"""Setup → label, what it changes, and why it is there although the paper has it not."""


def setup_row(model: str, setup: str) -> Row:
    """A row of figure 4.5: InfoNCE with one setup of shortcuts."""
    label, changes, extra = SETUPS[setup]
    return Row(
        f"{model}-{setup}",
        f"{MODELS[model]}, {label}",
        model,
        changes,
        base=PRETRAINED.name if model == "clip" else None,
        home=FIGURE,
        extra=extra,
    )


def _with(model: str, setup: str, name: str, label: str, home: str, changes: dict[str, Any]) -> Row:
    """InfoNCE's row with something added."""
    plain = setup_row(model, setup)
    return Row(
        f"{plain.name}-{name}",
        f"{plain.label}, {label}",
        model,
        {**plain.changes, **changes},
        base=plain.base,
        home=home,
    )


def ltd_row(model: str, setup: str, bound: float | None) -> Row:
    """A row of table 4.1: latent target decoding as a constraint with a bound, or as second loss with None."""
    changes: dict[str, Any] = {"reconstruction.kind": "latent"}
    if bound is None:
        return _with(
            model, setup, "ltd-dual", "LTD, β = 1", LTD_TABLE, {**changes, "reconstruction.beta": 1.0}
        )
    changes |= {"reconstruction.constraint.bound": bound}
    return _with(model, setup, f"ltd-eta-{bound:g}", f"LTD, η = {bound:g}", LTD_TABLE, changes)


def ifm_row(model: str, setup: str, budget: float) -> Row:
    """A row of table 4.2: implicit feature modification with a budget ε."""
    changes = {"objective.name": "infonce-ifm", "objective.epsilon": budget}
    return _with(model, setup, f"ifm-{budget:g}", f"IFM, ε = {budget:g}", IFM_TABLE, changes)


def ltd_candidates(model: str, setup: str) -> list[str]:
    """The names of all rows that table 4.1 chooses one of."""
    return [ltd_row(model, setup, bound).name for bound in (None, *BOUNDS)]


def ifm_candidates(model: str, setup: str) -> list[str]:
    """The names of all rows that table 4.2 chooses one of."""
    return [ifm_row(model, setup, budget).name for budget in BUDGETS]


def chosen_remarks(*blocks: list[str]) -> Any:
    """One sentence per block of candidates: which one claims are judged on, and by what."""

    def remarks(evidence: Evidence) -> list[str]:
        said = []
        for candidates in blocks:
            chosen = chosen_of(evidence, candidates)
            judged = evidence.only(candidates, VALIDATION)
            if chosen is None or not judged:
                continue
            values = ", ".join(f"{row} {figure.mean:.1f}" for row, figure in judged.items())
            said.append(f"Chosen by validation rsum without shortcuts: {chosen}; of {values}.")
        return said

    return remarks


# How it is trained ------------------------------------------------------------------------------


_Changes = dict[str, dict[str, Any]]


def _latent(**changes: Any) -> _Changes:
    """Changes of all rows with latent targets."""
    return {
        name: {f"reconstruction.{key}": value for key, value in changes.items()}
        for model in MODELS
        for setup in ("none", "unique")
        for name in ltd_candidates(model, setup)
    }


def _as_published(latent: _Changes) -> _Changes:
    """Numbers dealt anew every epoch, and in targets too."""
    dealt = {"shortcuts.shuffled": True}
    changes: _Changes = {
        name: dict(dealt)
        for model in MODELS
        for name in (
            *(f"{model}-{setup}" for setup in ("captions", "images", "unique")),
            *ifm_candidates(model, "unique"),
        )
    }
    for name, of_row in latent.items():
        has_shortcuts = "-unique-" in name
        changes[name] = {**of_row, **({**dealt, "shortcuts.in_targets": True} if has_shortcuts else {})}
    return changes


_PAPER = Setting(
    description="the paper's: ResNet-152 and a GRU end to end for 30 epochs; a pretrained CLIP fine-tuned for 5",
    recipes={"vse": "svl.paper.vse.toml", "clip": "svl.paper.clip.toml"},
    changes=_as_published(
        _latent(
            hidden=(1024, 1024),
            targets={"kind": "sentence", "model": "sentence-transformers/all-mpnet-base-v2"},
        )
    ),
    fine_tunes=("clip",),
    time="GPU days; half a day per row from scratch, an hour fine-tuned",
)
_DATA = Setting(
    description="MobileNetV2 on pictures of 128 pixels with digits of 21, its upper blocks trained, 6 epochs",
    recipes={
        "vse": "svl.data.vse.toml",
        "clip": "svl.data.clip.toml",
        "pretrained": "svl.data.vse.toml",
    },
    fine_tunes=("clip",),
    time="4 min per row; of a processor core on Flickr8k, from scratch, 2.5 fine-tuned",
)
_QUICK = Setting(
    description="scenes: a small network trained end to end on pictures of 64 pixels with digits of 8, LSA targets",
    recipes={
        "vse": "svl.quick.vse.toml",
        "clip": "svl.quick.clip.toml",
        "pretrained": "svl.quick.pretrained.toml",
    },
    changes=_latent(targets={"kind": "lsa", "width": 64}),
    fine_tunes=("clip",),
    time="8 min; of a processor core",
)
_SETTINGS: Mapping[SettingName, Setting] = {"paper": _PAPER, "data": _DATA, "quick": _QUICK}


def setting_of(name: SettingName) -> Setting:
    """How chapter 4's rows are trained; studies say which of them and with which seeds."""
    return _SETTINGS[name]


def some(model: str, *setups: str) -> tuple[str, ...]:
    """Names of one model's rows."""
    return tuple(f"{model}-{setup}" for setup in setups)


NOTES = (
    "From scratch is VSE++ in the paper, fine-tuned is CLIP with a ResNet-50. In the paper's setting an encoder must "
    "be given (--set fine_tune=ENCODER); in the others fine-tuned rows start, where none is given, from the row "
    "pretrained, which is trained from scratch here: on other scenes in the setting quick, on the same collection in "
    "the setting data. Its pictures carry the number of one of their five captions, so that it can read digits, as "
    "CLIP can, and still needs what captions say; one that has never seen digits does not find the shortcut in a short "
    "fine-tuning.",
    "Numbers are rows of the whole collection and never collide. In the paper's setting they are dealt anew every "
    "epoch, as the published code does except for VSE++ on COCO (--set shortcuts.shuffled=false). There up to 2,000 "
    "(Flickr30k) or 10,000 (COCO) pairs of images share one, and image 0 has a random one of 8 bits "
    "(--set shortcuts.compat=published).",
    "Other captions of an image in a batch are positives here; the published code takes them for negatives "
    "(--set objective.compat=pairs).",
    "In the settings data and quick the GRU reads both ways. One way alone, the six digits come between a caption and "
    "what is kept of it, and a short training does not learn to carry the caption across them.",
    "Warm-up over m steps has (n + 1)/(m + 1) of the learning rate at step n, from 0; the published code (n + 1)/m.",
    "The learned temperature stays above 0.01, as CLIP's; the published VSE++ has no bound.",
    "Recalls and rsum are without shortcuts; with rsum is measured with those of training, where both sides had them. "
    "The encoder is that of the last epoch, as published.",
)
