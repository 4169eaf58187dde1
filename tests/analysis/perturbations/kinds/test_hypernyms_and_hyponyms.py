from __future__ import annotations

from typing import Any

import pytest
from everyday_language import everyday

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)

LANGUAGE = everyday()


def perturbed(name: str, *captions: str, **options: Any) -> PerturbedCaptions:
    kind = PERTURBATIONS.get(name)
    assert isinstance(kind, TextPerturbation)
    ids = [str(row) for row in range(len(captions))]
    return perturb_captions(kind, captions, ids, options=options, language=LANGUAGE)


def test_a_thing_becomes_what_it_is_a_kind_of() -> None:
    # entity 0, organism 1, animal 2, vertebrate 3, mammal 4, carnivore 5, canine and pet 6, dog 7
    assert {*perturbed("hypernym-noun", *["Two dogs"] * 40).texts} == {
        "Two canines",
        "Two domestic animals",
    }
    assert perturbed("hypernym-noun", "a poodle", depth=7).texts == ["a dog"]
    assert perturbed("hypernym-noun", "tennis players", depth=2).texts == ["players"]


def test_what_is_too_general_is_left_alone_and_counted() -> None:
    outcome = perturbed("hypernym-noun", "a person", "a dog", "a ball", "zorgl", depth=7)
    assert outcome.texts == ["a person", "a dog", "a ball", "zorgl"]
    assert outcome.reasons == {"no noun with a hypernym that is deep enough": 3, "no noun that is known": 1}
    assert perturbed("hypernym-noun", "a person", depth=1).texts == ["an organism"]


def test_a_thing_becomes_a_kind_of_it() -> None:
    assert perturbed("hyponym-noun", "Two balls and a street").texts == ["Two spheres and a street"]
    # Airedale is written with a capital
    assert {*perturbed("hyponym-noun", *["a dog"] * 20).texts} == {"a poodle"}


def test_people_are_left_alone_unless_asked_for() -> None:
    outcome = perturbed("hyponym-noun", "a man", "players")
    assert outcome.texts == ["a man", "players"]
    assert outcome.reasons == {"no noun with a hyponym": 2}
    assert perturbed("hyponym-noun", "a man", "players", people=True).texts == [
        "a bachelor",
        "tennis players",
    ]


@pytest.mark.parametrize(("name", "keeps"), [("hypernym-noun", True), ("hyponym-noun", False)])
def test_who_keeps_the_meaning(name: str, keeps: bool) -> None:
    assert PERTURBATIONS.get(name).keeps_meaning is keeps
