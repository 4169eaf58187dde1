from __future__ import annotations

import pytest

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)
from diptych.analysis.perturbations.caption import Caption

NO_WAY = "no number that can surely be changed"


def perturbed(tagged: str, times: int = 1) -> PerturbedCaptions:
    """Of ``word/TAG word/TAG``."""
    kind = PERTURBATIONS.get("number-change")
    assert isinstance(kind, TextPerturbation)
    pairs = [token.rsplit("/", 1) for token in tagged.split()]
    text = " ".join(word for word, _ in pairs)
    assert len(Caption(text).words) == len(pairs)
    tags = [[tag for _, tag in pairs]] * times
    return perturb_captions(kind, [text] * times, [str(row) for row in range(times)], tags=tags)


@pytest.mark.parametrize(
    ("tagged", "after"),
    [
        ("Two/CD dogs/NNS run/VBP", {"Three dogs run"}),
        ("the/DT five/CD dogs/NNS", {"the four dogs", "the six dogs"}),
        ("five/CD dogs/NNS", {"four dogs", "six dogs"}),
        ("Twelve/CD men/NNS", {"Eleven men"}),
        ("3/CD dogs/NNS", {"2 dogs", "4 dogs"}),
        ("a/DT dog/NN", {"two dogs"}),
        ("One/CD old/JJ woman/NN", {"Two old women"}),
        ("A/DT dog/NN is/VBZ running/VBG", {"Two dogs are running"}),
        ("A/DT dog/NN was/VBD seen/VBN", {"Two dogs were seen"}),
        ("A/DT dog/NN catches/VBZ the/DT ball/NN", {"Two dogs catch the ball"}),
        ("A/DT dog/NN can/MD run/VB", {"Two dogs can run"}),
        ("A/DT group/NN of/IN people/NNS sit/VBP", {"Two groups of people sit"}),
        ("There/EX is/VBZ a/DT dog/NN", {"There are two dogs"}),
        ("Dogs/NNS are/VBP running/VBG", {"A dog is running"}),
        ("Brown/JJ owls/NNS watch/VBP", {"A brown owl watches"}),
        ("several/JJ apples/NNS", {"an apple"}),
        ("the/DT man/NN with/IN apples/NNS", {"the man with an apple"}),
        ("the/DT man/NN is/VBZ holding/VBG an/DT apple/NN", {"the man is holding two apples"}),
        (
            "a/DT dog/NN with/IN a/DT ball/NN is/VBZ red/JJ",
            {"two dogs with a ball are red", "a dog with two balls is red"},
        ),
        (
            "a/DT man/NN and/CC a/DT boy/NN are/VBP red/JJ",
            {"two men and a boy are red", "a man and two boys are red"},
        ),
    ],
)
def test_another_number_and_what_agrees_with_it(tagged: str, after: set[str]) -> None:
    assert {*perturbed(tagged, 60).texts} == after


@pytest.mark.parametrize(
    "tagged",
    [
        "the/DT dog/NN",
        "his/PRP$ dogs/NNS",
        "a/DT lot/NN",
        "in/IN shorts/NNS",
        "A/DT dog/NN wags/VBZ its/PRP$ tail/NN",
        "A/DT dog/NN who/WP is/VBZ red/JJ",
        "A/DT dog/NN runs/VBZ and/CC jumps/VBZ",
        "this/DT is/VBZ a/DT dog/NN",
        "Water/NN is/VBZ seen/VBN while/IN a/DT dog/NN runs/VBZ",
        "Racing/VBG greyhounds/NNS",
        "pool/NN of/IN balls/NNS",
        "the/DT boy/NN runs/NNS",
        "1000/CD dogs/NNS",
        "02/CD dogs/NNS",
        "two/CD",
        "",
    ],
)
def test_what_is_not_sure_is_left_alone(tagged: str) -> None:
    assert perturbed(tagged).reasons == {NO_WAY: 1}


def test_an_apostrophe_in_tokens() -> None:
    kind = PERTURBATIONS.get("number-change")
    assert isinstance(kind, TextPerturbation)
    outcome = perturb_captions(kind, ["a man 's"], ["0"], tags=[["DT", "NN", "POS"]])
    assert outcome.reasons == {NO_WAY: 1}
