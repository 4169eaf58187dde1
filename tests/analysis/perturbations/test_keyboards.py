"""Keyboards: what touches what."""

from __future__ import annotations

import pytest

from diptych.analysis.perturbations.letters import KEYBOARDS, KeyboardName, key_of, neighbours


def test_neighbours_seen_on_the_keyboards() -> None:
    qwerty, azerty, qwertz = (neighbours(name) for name in KEYBOARDS)
    assert set(qwerty["g"]) == set("ftyhvb")
    assert set(qwerty["s"]) == set("awedzx")
    assert set(qwerty["q"]) == set("wa")
    assert set(qwerty["p"]) == set("ol")
    assert set(qwerty["5"]) == set("46")
    assert set(azerty["a"]) == set("zqé")
    assert set(azerty["m"]) == set("lpù")
    assert set(qwertz["z"]) == set("tugh")
    assert set(qwertz["ö"]) == set("lpüä")
    assert "ж" not in qwerty
    assert "é" not in qwerty


@pytest.mark.parametrize("name", list(KEYBOARDS))
def test_touching_is_mutual_and_of_one_kind(name: KeyboardName) -> None:
    near = neighbours(name)
    assert set("abcdefghijklmnopqrstuvwxyz0123456789") <= set(near)
    for character, others in near.items():
        assert others
        assert character not in others
        assert len(set(others)) == len(others)
        for other in others:
            assert character in near[other]
            assert other.isalpha() == character.isalpha()


def test_an_accent_of_its_own_is_a_key_of_azerty() -> None:
    assert key_of("E\u0301") == "é"
    assert key_of("E\u0301") in neighbours("azerty")
