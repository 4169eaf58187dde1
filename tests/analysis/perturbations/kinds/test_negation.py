from __future__ import annotations

import pytest

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)


def perturbed(tagged: str) -> PerturbedCaptions:
    """Of ``word/TAG word/TAG``."""
    kind = PERTURBATIONS.get("negation")
    assert isinstance(kind, TextPerturbation)
    pairs = [token.rsplit("/", 1) for token in tagged.split()]
    return perturb_captions(
        kind, [" ".join(word for word, _ in pairs)], ["0"], tags=[[tag for _, tag in pairs]]
    )


@pytest.mark.parametrize(
    ("tagged", "after"),
    [
        ("A/DT dog/NN is/VBZ running/VBG", "A dog is not running"),
        ("Dogs/NNS were/VBD seen/VBN", "Dogs were not seen"),
        ("A/DT dog/NN runs/VBZ home/NN", "A dog does not run home"),
        ("A/DT boy/NN jumps/NNS in/IN", "A boy does not jump in"),
        ("Two/CD dogs/NNS run/VBP", "Two dogs do not run"),
        ("A/DT dog/NN has/VBZ a/DT ball/NN", "A dog does not have a ball"),
        ("A/DT dog/NN has/VBZ caught/VBN it/PRP", "A dog has not caught it"),
        ("You/PRP can/MD see/VB it/PRP", "You cannot see it"),
        ("It/PRP must/MD run/VB", "It must not run"),
        ("There/EX is/VBZ a/DT dog/NN", "There is no dog"),
        ("There/EX are/VBP two/CD dogs/NNS", "There are no dogs"),
        ("There/EX is/VBZ water/NN", "There is not water"),
        ("Two/CD dogs/NNS in/IN grass/NN", "No dogs in grass"),
        ("A/DT dog/NN running/VBG", "No dog running"),
        ("The/DT dog/NN", "No dog"),
        ("Dogs/NNS in/IN grass/NN", "No dogs in grass"),
        ("Dog/NNP playing/VBG", "No dog playing"),
        ("London/NNP Bridge/NNP", "No London Bridge"),
        ("his/PRP$ dog/NN with/IN a/DT ball/NN", "his dog with no ball"),
    ],
)
def test_what_is_said_is_denied(tagged: str, after: str) -> None:
    assert perturbed(tagged).texts == [after]


@pytest.mark.parametrize(
    "tagged", ["No/DT dog/NN", "A/DT dog/NN isn't/VBZ red/JJ", "a/DT man/NN without/IN hat/NN"]
)
def test_what_is_denied_already_stays(tagged: str) -> None:
    assert perturbed(tagged).reasons == {"it is negated already": 1}


@pytest.mark.parametrize("tagged", ["", "running/VBG", "his/PRP$ dog/NN", "near/IN Paris/NNP"])
def test_nothing_to_deny(tagged: str) -> None:
    assert perturbed(tagged).reasons == {"neither a verb nor a noun that can be negated": 1}
