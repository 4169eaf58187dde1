"""One slip of a finger: exactly one, evenly placed, on three keyboards."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from edit_distance import edit_distance
from hypothesis import given
from hypothesis import strategies as st

from diptych.analysis.perturbations import (
    PERTURBATIONS,
    PerturbedCaptions,
    TextPerturbation,
    perturb_captions,
)
from diptych.analysis.perturbations.letters import KEYBOARDS, neighbours
from diptych.core.errors import UsageError

SLIPS = ("character-swap", "missing-character", "extra-character", "nearby-character")
TO_KEYS = ("extra-character", "nearby-character")

texts = st.text(
    st.one_of(st.sampled_from("abcXYZ 019.,'-éжשßİǅ\u0301🎉"), st.characters(exclude_categories=["Cs"])),
    max_size=30,
)


def perturbed(name: str, captions: list[str], **given: Any) -> PerturbedCaptions:
    kind = PERTURBATIONS.get(name)
    assert isinstance(kind, TextPerturbation)
    ids = given.pop("ids", [str(row) for row in range(len(captions))])
    return perturb_captions(kind, captions, ids, **given)


def test_the_four_distances_by_hand() -> None:
    assert [edit_distance("dog", other) for other in ("dog", "dgo", "do", "doog", "dig")] == [0, 1, 1, 1, 1]
    assert edit_distance("kitten", "sitting") == 3


@pytest.mark.parametrize("name", SLIPS)
@given(text=texts)
def test_a_changed_caption_is_one_edit_away(name: str, text: str) -> None:
    done = perturbed(name, [text])
    if not done.changed[0]:
        assert done.texts == [text]
        assert sum(done.reasons.values()) == 1
        return
    after = done.texts[0]
    if text.isascii():
        # Case is of the place: letters in each other's place are an exchange but for case.
        assert edit_distance(text.lower(), after.lower()) == 1
    assert len(after.split()) == len(text.split())


@pytest.mark.parametrize("name", SLIPS)
@given(captions=st.lists(texts, min_size=2, max_size=4))
def test_a_caption_s_slip_depends_on_seed_and_id_alone(name: str, captions: list[str]) -> None:
    ids = [f"caption {row}" for row in range(len(captions))]
    done = perturbed(name, captions, ids=ids, seed=3)
    turned = perturbed(name, captions[::-1], ids=ids[::-1], seed=3)
    assert turned.texts == done.texts[::-1]
    assert perturbed(name, captions[:1], ids=ids[:1], seed=3).texts == done.texts[:1]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("character-swap", "aab", {"aba"}),
        ("character-swap", "Ab a1", {"Ba a1", "Ab 1a"}),
        ("character-swap", "cafe\u0301", {"acfe\u0301", "cfae\u0301", "cae\u0301f"}),
        ("character-swap", "жу", {"уж"}),
        ("missing-character", "a dog", {"a og", "a dg", "a do"}),
        ("missing-character", "e\u0301a.", {"a.", "e\u0301."}),
        ("extra-character", "é M!", {"é NM!", "é MN!", "é JM!", "é MJ!", "é KM!", "é MK!"}),
        ("nearby-character", "é q", {"é w", "é a"}),
        ("nearby-character", "5", {"4", "6"}),
    ],
)
def test_every_place_is_reached_evenly(name: str, text: str, expected: set[str]) -> None:
    n = 600
    done = perturbed(name, [text] * n)
    counts = Counter(done.texts)
    assert set(counts) == expected
    assert all(abs(count - n / len(expected)) < 5 * (n / len(expected)) ** 0.5 for count in counts.values())


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("character-swap", "aa A b-c d’e 🎉", "no two different letters side by side"),
        ("missing-character", "a b c", "no word of two letters"),
        ("extra-character", "кот שלום", "no letter of the qwerty keyboard"),
        ("nearby-character", "", "no letter of the qwerty keyboard"),
    ],
)
def test_what_cannot_slip_is_counted(name: str, text: str, reason: str) -> None:
    done = perturbed(name, [text])
    assert done.texts == [text]
    assert done.reasons == {reason: 1}


@pytest.mark.parametrize("name", SLIPS)
def test_several_slips_are_in_several_words(name: str) -> None:
    text = "some words stand here together"
    done = perturbed(name, [text] * 50, options={"edits": 3})
    for after in done.texts:
        pairs = zip(text.split(), after.split(), strict=True)
        assert sum(edit_distance(*pair) == 1 for pair in pairs) == 3
    all_of_them = perturbed(name, [text], options={"edits": 99}).texts[0]
    assert all(one != other for one, other in zip(text.split(), all_of_them.split(), strict=True))


@pytest.mark.parametrize("keyboard", list(KEYBOARDS))
@pytest.mark.parametrize("name", TO_KEYS)
def test_the_keyboard_that_is_asked_for(name: str, keyboard: Any) -> None:
    near = neighbours(keyboard)
    done = perturbed(name, ["z"] * 200, options={"keyboard": keyboard})
    got = {text.replace("z", "", 1) if name == "extra-character" else text for text in done.texts}
    assert got == set(near["z"])


def test_a_keyboard_nobody_has() -> None:
    with pytest.raises(UsageError, match="option 'keyboard'"):
        perturbed("nearby-character", ["a"], options={"keyboard": "dvorak"})
