"""Perturbations: changes of captions and pictures that people make, each declared once.

A text perturbation turns one caption into another, a picture perturbation one picture; both are functions of
(seed, id), so that they can be made again, one at a time and in any order. What could not be changed is
counted with its reason, never passed on in silence.

``perturb_caption(text, "character-swap", compat="published")`` changes one caption, as the thesis's code did;
:func:`perturb_captions` changes many and says what became of each.
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
