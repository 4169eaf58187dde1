"""Any letter instead of another."""

from __future__ import annotations

import pytest
from edit_distance import edit_distance

from diptych.analysis.perturbations import PERTURBATIONS, TextPerturbation, perturb_captions

KIND = PERTURBATIONS.get("letter-change")
assert isinstance(KIND, TextPerturbation)


def test_about_one_word_of_ten_gets_another_letter() -> None:
    text = "Big dogs run over green grass"
    done = perturb_captions(KIND, [text] * 500, [str(row) for row in range(500)])
    hit = 0
    for after in done.texts:
        for before, word in zip(text.split(), after.split(), strict=True):
            assert edit_distance(before, word) <= 1
            assert len(word) == len(before)
            assert [letter.isupper() for letter in word] == [letter.isupper() for letter in before]
            hit += before != word
    assert 0.07 < hit / 3000 < 0.13
    assert done.reasons == {"no word was drawn": 500 - done.n_changed}


@pytest.mark.parametrize("text", ["", "кот 12 🎉"])
def test_no_letter(text: str) -> None:
    done = perturb_captions(KIND, [text], ["x"], options={"rate": 1.0})
    assert done.reasons == {"no letter a–z": 1}


def test_every_word() -> None:
    text = "a dog's café"
    done = perturb_captions(KIND, [text], ["x"], options={"rate": 1})
    assert all(one != other for one, other in zip(text.split(), done.texts[0].split(), strict=True))
