"""Slips: letters and keyboards, one slip of a finger, typing errors, any letter, characters misread."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from edit_distance import edit_distance
from hypothesis import given
from hypothesis import strategies as st
from perturbing import perturbed
from refusals import refused

from diptych.analysis.perturbations.kinds.typos import CONFUSIONS, KEYBOARDS, letters_of, neighbours
from diptych.core.errors import UsageError
from diptych.data.language import words_of

SLIPS = ("character-swap", "missing-character", "extra-character", "nearby-character")
TO_KEYS = ("extra-character", "nearby-character")

texts = st.text(
    st.one_of(st.sampled_from("abcXYZ 019.,'-éжשßİǅ\u0301🎉"), st.characters(exclude_categories=["Cs"])),
    max_size=30,
)
NO_KIND = {"substitution": 0, "omission": 0, "insertion": 0, "transposition": 0}
TEXT = "several brown horses graze beside wooden fences"  # 41 letters, 7 first ones
changed_letters = partial(perturbed, "letter-change")


def letters(text):
    return [letter.text for word in words_of(text) for letter in letters_of(word)]


SEEN = {"qwerty": "gftyhvb sawedzx qwa pol 546", "azerty": "azqé mlpù", "qwertz": "ztugh ölpüä"}


def test_neighbours_seen_on_the_keyboards():
    for name, seen in SEEN.items():
        for key, *others in seen.split():
            assert set(neighbours(name)[key]) == set(others)
    assert not {"ж", "é"} & neighbours("qwerty").keys()


@pytest.mark.parametrize("name", list(KEYBOARDS))
def test_touching_is_mutual_and_of_one_kind(name):
    near = neighbours(name)
    assert set("abcdefghijklmnopqrstuvwxyz0123456789") <= set(near)
    for character, others in near.items():
        assert len({*others, character}) == len(others) + 1 > 1
        for other in others:
            assert character in near[other]
            assert other.isalpha() == character.isalpha()


@pytest.mark.parametrize("name", SLIPS)
@given(text=texts)
def test_a_changed_caption_is_one_edit_away(name, text):
    done = perturbed(name, text)
    if not done.changed[0]:
        assert done.texts == [text]
        assert sum(done.reasons.values()) == 1
        return
    after = done.texts[0]
    if text.isascii():
        # Case is of the place: letters in each other's place are an exchange but for case.
        assert edit_distance(text.lower(), after.lower()) == 1
    assert len(after.split()) == len(text.split())


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("character-swap", "aab", {"aba"}),
        ("character-swap", "Ab a1", {"Ba a1", "Ab 1a"}),
        ("character-swap", "cafe\u0301", {"acfe\u0301", "cfae\u0301", "cae\u0301f"}),
        ("character-swap", "жу", {"уж"}),
        ("missing-character", "a dog", {"a og", "a dg", "a do"}),
        ("missing-character", "e\u0301a.", {"a.", "e\u0301."}),
        ("missing-character", "हिन्दी", {"न्दी", "हिदी", "हिन्"}),
        ("extra-character", "é M!", {"é NM!", "é MN!", "é JM!", "é MJ!", "é KM!", "é MK!"}),
        ("nearby-character", "é q", {"é w", "é a"}),
        ("nearby-character", "5", {"4", "6"}),
    ],
)
def test_every_place_is_reached_evenly(name, text, expected):
    n = 600
    done = perturbed(name, *[text] * n)
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
def test_what_cannot_slip_is_counted(name, text, reason):
    done = perturbed(name, text)
    assert done.texts == [text]
    assert done.reasons == {reason: 1}


@pytest.mark.parametrize("keyboard", list(KEYBOARDS))
@pytest.mark.parametrize("name", TO_KEYS)
def test_the_keyboard_that_is_asked_for(name, keyboard):
    near = neighbours(keyboard)
    done = perturbed(name, *["z"] * 200, options={"keyboard": keyboard})
    got = {text.replace("z", "", 1) if name == "extra-character" else text for text in done.texts}
    assert got == set(near["z"])

    refused(UsageError, "keyboard", perturbed, name, "a", options={"keyboard": "dvorak"})


def test_about_one_word_of_ten_gets_another_letter():
    text = "Big dogs run over green grass"
    done = changed_letters(*[text] * 500)
    hit = 0
    for after in done.texts:
        for before, word in zip(text.split(), after.split(), strict=True):
            assert edit_distance(before, word) <= 1
            assert len(word) == len(before)
            assert [letter.isupper() for letter in word] == [letter.isupper() for letter in before]
            hit += before != word
    assert 0.07 < hit / 3000 < 0.13
    assert done.reasons == {"no word was drawn": 500 - done.n_changed}
    for text in ("", "кот 12 🎉"):
        assert changed_letters(text, options={"rate": 1.0}).reasons == {"no letter a–z": 1}
    text = "a dog's café"
    done = changed_letters(text, options={"rate": 1})
    assert all(one != other for one, other in zip(text.split(), done.texts[0].split(), strict=True))


def mistyped(captions, **options):
    return perturbed("typing-errors", *captions, options=options)


def test_as_many_errors_per_letter_as_the_rate_says():
    n = 2000
    done = mistyped([TEXT] * n)
    errors = sum(edit_distance(TEXT, after) for after in done.texts if after != TEXT)
    assert errors / (41 * n) == pytest.approx(0.0117, rel=0.08)
    assert done.reasons["no error was drawn"] > n / 3


def test_the_kinds_have_their_shares():
    done = mistyped([TEXT] * 4000, rate=0.005)
    one = [after for after in done.texts if after != TEXT and edit_distance(TEXT, after) == 1]
    shorter = sum(len(after) < len(TEXT) for after in one)
    longer = sum(len(after) > len(TEXT) for after in one)
    exchanged = sum(sorted(after) == sorted(TEXT) for after in one)
    total = 1.65 + 0.80 + 0.67 + 0.165
    for count, weight in ((shorter, 0.80), (longer, 0.67), (exchanged, 0.165)):
        assert count / len(one) == pytest.approx(weight / total, abs=0.03)


def test_first_letters_are_hit_as_seldom_as_asked():
    weights = NO_KIND | {"substitution": 1.0}
    for share in (0.0, 0.25, 1.0):
        done = mistyped([TEXT] * 1500, rate=0.05, first_letter=share, **weights)
        first = other = 0
        for after in done.texts:
            for place, (old, new) in enumerate(zip(TEXT, after, strict=True)):
                if old != new:
                    if place == 0 or TEXT[place - 1] == " ":
                        first += 1
                    else:
                        other += 1
        assert first / 7 / (other / 34) == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(
    ("text", "options", "reason"),
    [
        ("", {}, "no letter"),
        ("🎉 ... !", {}, "no letter"),
        ("a b c", {"first_letter": 0, "rate": 0.5}, "no error was drawn"),
        ("ж", {"insertion": 0, "rate": 0.5, "first_letter": 1}, "no error was drawn"),
        (TEXT, NO_KIND, "no error was drawn"),
    ],
)
def test_why_a_caption_stays(text, options, reason):
    done = mistyped([text] * 20, **options)
    assert done.texts == [text] * 20
    assert done.reasons == {reason: 20}


def test_a_word_keeps_a_letter_however_many_are_hit():
    options = NO_KIND | {"omission": 1.0, "first_letter": 1.0, "rate": 0.5}
    after = {text for text in mistyped(["ab,cd"] * 200, **options).texts}
    assert after == {"ab,cd", "a,cd", "b,cd", "ab,c", "ab,d", "a,c", "a,d", "b,c", "b,d"}


def misread(captions, **options):
    return perturbed("recognition-errors", *captions, options=options)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("m", {"rn", "nn"}),
        ("rn", {"m"}),
        ("0", {"O", "o"}),
        ("5", {"S"}),
        ("vv", {"w", "yy", "yw", "wy", "ww"}),
    ],
)
def test_what_shapes_are_read_for(text, expected):
    assert set(misread([text] * 300, rate=1.0).texts) == expected


@given(st.text(max_size=40))
def test_blanks_and_what_is_not_in_the_table_stay(text):
    after = misread([text], rate=0.5).texts[0]
    table = set("".join(CONFUSIONS).replace(" ", ""))
    assert [one for one in after if one not in table] == [one for one in text if one not in table]
