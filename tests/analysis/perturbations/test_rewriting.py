from __future__ import annotations

import pytest

from diptych.analysis.perturbations import Caption
from diptych.analysis.perturbations.rewriting import Span, cased_like, rewritten

CASES: list[tuple[str, dict[Span, str], str]] = [
    ("A dog runs.", {(1, 1): "animal"}, "An animal runs."),
    ("An orange cat", {(1, 1): "black"}, "A black cat"),
    ("an  owl, a dog", {(1, 1): "bird", (3, 3): "ape"}, "a  bird, an ape"),
    # an article that is not directly before it, or that the caption has wrong elsewhere, stays
    ("a, owl", {(1, 1): "bird"}, "a, bird"),
    ("an dog and a cat", {(4, 4): "owl"}, "an dog and an owl"),
    ("the owl", {(1, 1): "bird"}, "the bird"),
    ("Dogs run", {(0, 0): "a dog", (1, 1): "runs"}, "A dog runs"),
    ("a hot dog, please", {(1, 2): "ice cream"}, "an ice cream, please"),
    ("several dogs run", {(0, 0): "a", (1, 1): "dog"}, "a dog run"),
    ("a very big dog", {(1, 1): ""}, "a big dog"),
    ("dog, big", {(0, 0): ""}, ", big"),
    ("a DOG", {(1, 1): "ape"}, "an APE"),
    ("a 🎉 dog", {(1, 1): "ape"}, "a 🎉 ape"),
]


@pytest.mark.parametrize(("text", "changes", "after"), CASES)
def test_words_are_replaced_and_articles_follow(text: str, changes: dict[Span, str], after: str) -> None:
    assert rewritten(Caption(text), changes) == after


def test_an_article_that_is_replaced_itself_is_not_touched_again() -> None:
    assert rewritten(Caption("a dog"), {(0, 0): "no", (1, 1): "ape"}) == "no ape"


@pytest.mark.parametrize(
    ("model", "text", "after"),
    [
        ("I", "ape", "Ape"),
        ("NASA", "ape", "APE"),
        ("x", "Ape", "Ape"),
        ("2", "ape", "ape"),
        ("", "ape", "ape"),
    ],
)
def test_capitals(model: str, text: str, after: str) -> None:
    assert cased_like(model, text) == after
