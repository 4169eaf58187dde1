"""The names that a user needs are in one place, and loading none of them costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from diptych.commerce import purchase_intent


def test_every_name_is_there_even_beside_a_module_of_that_name() -> None:
    found = {name: getattr(purchase_intent, name) for name in purchase_intent.__all__}
    assert set(found) <= set(dir(purchase_intent))
    for name, value in found.items():
        assert value.__name__ == name
        assert value.__module__.startswith("diptych.")
    with pytest.raises(AttributeError, match="no attribute 'profit'"):
        _ = purchase_intent.profit


def test_nothing_is_loaded_before_it_is_used() -> None:
    said = (
        "import sys, diptych.commerce.purchase_intent; print({'numpy', 'ibis', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
