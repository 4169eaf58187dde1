"""Options are checked where they are read, and the defaults are fine."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.commerce.logs import Cleaning
from diptych.commerce.purchase_intent.options import (
    EvaluateOptions,
    FeatureOptions,
    SessionOptions,
    TrainOptions,
)
from diptych.core.errors import UsageError
from diptych.core.options import Options

WRONG: list[tuple[type[Options], dict[str, Any], str]] = [
    (Cleaning, {"countries": ["NL", " Holland"]}, "'HOLLAND' is no name"),
    (Cleaning, {"devices": [" ,"]}, "devices: '' is no name"),
    (EvaluateOptions, {"sample": 9}, "did you mean 'samples'"),
    (FeatureOptions, {"also": ("hour",)}, "unknown feature 'hour'"),
    (SessionOptions, {"by": "household"}, "'client', 'visitor' or 'given'"),
    (SessionOptions, {"gap_minutes": float("nan")}, "gap_minutes"),
    (TrainOptions, {"missed_cost": 0}, "greater than 0"),
]


@pytest.mark.parametrize(("kind", "values", "message"), WRONG)
def test_what_cannot_be_is_refused(kind: type[Options], values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        kind.read(values, kind.__name__)
    assert kind.read({}, kind.__name__) == kind()


def test_texts_with_commas_and_no_limit() -> None:
    found = Cleaning(countries=("nl,BE", "de"), devices=("PC, tv",), most_events=0)
    assert (found.countries, found.devices, found.most_events) == (("BE", "DE", "NL"), ("pc", "tv"), 0)
    models = EvaluateOptions(models=["svm,k-nearest", "random-forest"]).models
    assert models == ["svm", "k-nearest", "random-forest"]
