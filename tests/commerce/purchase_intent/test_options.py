"""Options are checked where they are read, and the defaults are fine."""

from __future__ import annotations

from typing import Any

import pytest

from diptych.commerce.logs import Cleaning
from diptych.commerce.logs.ingest import ImportOptions
from diptych.commerce.purchase_intent.disclosure import DisclosureControl
from diptych.commerce.purchase_intent.options import (
    AuditOptions,
    DescribeOptions,
    EvaluateOptions,
    FeatureOptions,
    SessionOptions,
    TrainOptions,
)
from diptych.core.errors import UsageError
from diptych.core.options import Options

WRONG: list[tuple[type[Options], dict[str, Any], str]] = [
    (AuditOptions, {"highest": 0.4}, "highest: Input should be greater than 0.5"),
    (AuditOptions, {"repeats": 1}, "repeats"),
    (Cleaning, {"countries": ["NL", " Holland"]}, "'HOLLAND' is no name"),
    (Cleaning, {"devices": [" ,"]}, "devices: '' is no name"),
    (Cleaning, {"most_events": -1}, "most_events"),
    (DescribeOptions, {"confidence": 1.0}, "confidence"),
    (DescribeOptions, {"ddof": 2}, "ddof"),
    (DescribeOptions, {"journey": "trip"}, "'pair' or 'journey'"),
    (DescribeOptions, {"likely": 0.01, "near_zero": 0.02}, "likely is 0.01"),
    (DisclosureControl, {"least": 0}, "least"),
    (EvaluateOptions, {"folds": 0}, "folds"),
    (EvaluateOptions, {"sample": 9}, "did you mean 'samples'"),
    (FeatureOptions, {"also": ("channel",)}, "in the extended set anyway"),
    (FeatureOptions, {"also": ("hour",)}, "unknown feature 'hour'"),
    (FeatureOptions, {"compat": "publishd"}, "'none' or 'published'"),
    (FeatureOptions, {"types": 0}, "types"),
    (ImportOptions, {"buckets": 257}, "less than or equal to 256"),
    (SessionOptions, {"by": "household"}, "'client', 'visitor' or 'given'"),
    (SessionOptions, {"gap_minutes": 0.0}, "gap_minutes"),
    (SessionOptions, {"gap_minutes": float("nan")}, "gap_minutes"),
    (SessionOptions, {"pages": 0}, "pages"),
    (TrainOptions, {"background": 0}, "background"),
    (TrainOptions, {"calibrate": "plat"}, "'platt' or 'isotonic'"),
    (TrainOptions, {"missed_cost": 0}, "greater than 0"),
    (TrainOptions, {"holdout": float("nan")}, "holdout"),
    (TrainOptions, {"split": "random"}, "'time' or 'grouped'"),
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
