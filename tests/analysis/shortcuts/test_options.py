from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from diptych.analysis.shortcuts import ShortcutOptions


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"setup": "bits"}, "setup 'bits' needs bits, 0 to 13"),
        ({"bits": 8}, "setup 'unique' needs no bits"),
        ({"setup": "bits", "bits": 14}, "less than or equal to 13"),
        ({"setup": "bits", "bits": -1}, "greater than or equal to 0"),
        ({"setup": "everything"}, "Input should be 'none', 'unique'"),
        ({"carries": "one"}, "carries = 'one' belongs to 'per-caption'"),
        ({"setup": "none", "shuffled": True}, "no unique numbers that could be shuffled"),
        ({"setup": "per-caption", "compat": "published"}, "never published"),
        ({"digit_size": 4}, "greater than or equal to 5"),
        ({"digist": "drawn"}, "Extra inputs"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ShortcutOptions.model_validate(values)


@pytest.mark.parametrize("bits", [0, 13])
def test_the_ends_of_the_range_of_bits(bits: int) -> None:
    assert ShortcutOptions(setup="bits", bits=bits).bits == bits


def test_sides() -> None:
    sides = {
        setup: (options.on_images, options.on_captions)
        for setup in ("none", "unique", "captions", "images", "per-caption")
        for options in [ShortcutOptions.model_validate({"setup": setup})]
    }
    assert sides == {
        "none": (False, False),
        "unique": (True, True),
        "captions": (False, True),
        "images": (True, False),
        "per-caption": (True, True),
    }
