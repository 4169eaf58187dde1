"""Targets of a dual encoder's text side."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import UsageError
from diptych.encoders import DualEncoder
from diptych.encoders.targets.contract import TargetOptions, make_target_model
from diptych.encoders.targets.kinds.dual import DualTexts

CAPTIONS = ["a red dog", "two dogs", "a red dog", "the cat"]


@pytest.fixture(scope="module")
def clip(sources: Callable[[str], Path]) -> Path:
    return sources("clip")


def options(source: Path | str, **more: object) -> TargetOptions:
    return TargetOptions.model_validate({"kind": "dual", "model": str(source), **more})


def test_rows_are_the_encoders_own(clip: Path) -> None:
    model = make_target_model(options(clip), [])
    encoder = DualEncoder.load(clip)
    np.testing.assert_allclose(model.encode(CAPTIONS), encoder.encode_texts(CAPTIONS), atol=1e-6)
    assert (model.width, model.fingerprint) == (encoder.width, encoder.fingerprint)
    assert model.describe()["encoder"] == encoder.describe()


def test_what_cannot_be(clip: Path) -> None:
    class Order:
        similarity = "order"

    with pytest.raises(UsageError, match="compares its rows by order"):
        DualTexts(Order(), "orders")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="precision bfloat16 with a dual encoder"):
        make_target_model(options(clip, precision="bfloat16"), [])
    refused(UsageError, "neither a folder", make_target_model, options("nowhere"), [])
