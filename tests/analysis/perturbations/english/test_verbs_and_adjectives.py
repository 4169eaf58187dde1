from __future__ import annotations

from typing import Literal

import pytest

from diptych.analysis.perturbations.english import compared, for_many, for_one

VERBS = {
    "runs": "run",
    "is": "are",
    "was": "were",
    "has": "have",
    "does": "do",
    "goes": "go",
    "watches": "watch",
    "pushes": "push",
    "passes": "pass",
    "fixes": "fix",
    "buzzes": "buzz",
    "carries": "carry",
    "plays": "play",
    "poses": "pose",
    "uses": "use",
    "lies": "lie",
    "reaches": "reach",
    "boos": "boo",
}


@pytest.mark.parametrize(("one", "many"), VERBS.items())
def test_agreement_there_and_back(one: str, many: str) -> None:
    assert for_many(one) == many
    assert for_one(many) == one


@pytest.mark.parametrize("verb", ["toes", "shoes", "caches", "canoes"])
def test_verbs_on_e_keep_it(verb: str) -> None:
    assert for_many(verb) == verb[:-1]


@pytest.mark.parametrize(
    ("adjective", "degree", "form"),
    [
        ("large", "comparative", "larger"),
        ("big", "superlative", "biggest"),
        ("tiny", "comparative", "tinier"),
        ("grey", "comparative", "greyer"),
        ("narrow", "comparative", "narrower"),
        ("simple", "superlative", "simplest"),
        ("great", "superlative", "greatest"),
        ("wooden", "comparative", "more wooden"),
        ("dark red", "superlative", "most dark red"),
        ("good", "comparative", "better"),
        ("aged", "comparative", "more aged"),
    ],
)
def test_comparison(adjective: str, degree: Literal["comparative", "superlative"], form: str) -> None:
    assert compared(adjective, degree) == form
