"""Perturbations: changes of captions and images that people make, each declared once.

All are functions of (seed, id), so that they can be repeated, one at a time and in any order; what could not be
changed is counted with its reason. ``perturb_caption(text, "character-swap", compat="published")`` changes one caption
as the thesis's code did, :func:`perturb_captions` many.
"""

from diptych.analysis.perturbations.caption import Caption, Unchanged
from diptych.analysis.perturbations.declaration import (
    GROUPS,
    PERTURBATIONS,
    NoOptions,
    Perturbation,
    PicturePerturbation,
    TextPerturbation,
    choose_perturbations,
)
from diptych.analysis.perturbations.perturb import PerturbedCaptions, perturb_caption, perturb_captions
from diptych.analysis.perturbations.pictures import perturbed_pictures

__all__ = [
    "GROUPS",
    "PERTURBATIONS",
    "Caption",
    "NoOptions",
    "Perturbation",
    "PerturbedCaptions",
    "PicturePerturbation",
    "TextPerturbation",
    "Unchanged",
    "choose_perturbations",
    "perturb_caption",
    "perturb_captions",
    "perturbed_pictures",
]
