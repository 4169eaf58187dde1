"""Changes of word order as published, against ARO's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from diptych.analysis.perturbations import aro_shuffles
from diptych.core.errors import UsageError

CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "aro_shuffles.json").read_text(encoding="utf-8")
)["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['tokens'])}-{case['seed']}")
def test_what_the_published_functions_gave(case: dict[str, Any]) -> None:
    tokens, tags, seed = case["tokens"], case["tags"], case["seed"]
    assert aro_shuffles.shuffle_nouns_and_adjectives(tokens, tags, seed) == case["shuffle_nouns_and_adj"]
    assert (
        aro_shuffles.shuffle_allbut_nouns_and_adjectives(tokens, tags, seed)
        == case["shuffle_allbut_nouns_and_adj"]
    )
    assert aro_shuffles.shuffle_all_words(tokens, seed) == case["shuffle_all_words"]
    assert aro_shuffles.shuffle_within_trigrams(tokens, seed) == case["shuffle_within_trigrams"]
    assert aro_shuffles.shuffle_trigrams(tokens, seed) == case["shuffle_trigrams"]


def test_nothing_to_shuffle() -> None:
    assert aro_shuffles.shuffle_all_words([], 0) == ""
    assert aro_shuffles.shuffle_trigrams(["a"], 0) == "a"
    assert aro_shuffles.shuffle_nouns_and_adjectives(["in", "."], ["IN", "."], 0) == "in ."


def test_a_seed_that_numpy_s_old_generator_cannot_take() -> None:
    with pytest.raises(UsageError, match="seed 4294967296"):
        aro_shuffles.shuffle_all_words(["a"], 2**32)
