"""Statements that say nothing, before the last full stop."""

from __future__ import annotations

import pytest

from diptych.analysis.perturbations import PERTURBATIONS, TextPerturbation, perturb_caption, perturb_captions


def distracted(text: str, truth: str = "true") -> tuple[str, dict[str, int]]:
    kind = PERTURBATIONS.get(f"distraction-{truth}")
    assert isinstance(kind, TextPerturbation)
    done = perturb_captions(kind, [text], ["x"])
    return done.texts[0], done.reasons


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A dog runs.", "A dog runs and true is true."),
        ("A dog runs", "A dog runs and true is true"),
        ("A dog runs .", "A dog runs and true is true ."),
        ("Dogs?! \n", "Dogs and true is true?! \n"),
        ("U.S. flag...", "U.S. flag and true is true..."),
        ('He says "hi."', 'He says "hi." and true is true'),
        ("一只狗。", "一只狗 and true is true。"),
        ("🎉", "🎉 and true is true"),
    ],
)
def test_the_caption_ends_as_it_did(text: str, expected: str) -> None:
    assert distracted(text) == (expected, {})


def test_false_is_false() -> None:
    assert distracted("cat!", "false")[0] == "cat and false is false!"


@pytest.mark.parametrize("text", ["", "  ", "...", " ?! ", "\u2003.", "\u2003"])
def test_nothing_to_add_to(text: str) -> None:
    assert distracted(text) == (text, {"nothing is said": 1})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("...A dog.", "A dog and true it true."),  # full stops go at both ends
        ("A dog. ", "A dog.  and true it true."),  # but not before a blank
        ("A dog!", "A dog! and true it true."),
        ("", " and true it true."),
    ],
)
def test_as_published(text: str, expected: str) -> None:
    assert perturb_caption(text, "distraction-true", compat="published") == expected
