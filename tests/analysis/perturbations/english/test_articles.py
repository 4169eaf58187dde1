from __future__ import annotations

import pytest

from diptych.analysis.perturbations.english import article_before

A = (
    "dog university unicorn uniform union European euro ewe one one-way once useful used usual utensil ukulele urine "
    "Ugandan Ouija U-turn T-shirt UFO USB TV hotel history year yellow 7 10 quilt y-axis 1000"
)
AN = (
    "apple egg igloo orange umbrella unusual uninteresting unidentified unmade unhappy usher urban urn uncle utter "
    "hour honest honour heir SUV MRI X-ray F-16 HDTV 8 18 11 80 x élan onion ounce air"
)


@pytest.mark.parametrize("word", A.split())
def test_a(word: str) -> None:
    assert article_before(word) == "a"


@pytest.mark.parametrize("word", AN.split())
def test_an(word: str) -> None:
    assert article_before(word) == "an"


@pytest.mark.parametrize("word", ["", "🎉", "!", "кот", "1800s"])
def test_anything_has_an_article(word: str) -> None:
    assert article_before(word) in ("a", "an")
