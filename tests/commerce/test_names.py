"""The names that a user needs are in one place, and loading none of them costs nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from diptych.commerce import category_to_image, purchase_intent

HEAVY = "{'numpy', 'torch', 'scipy', 'PIL', 'pyarrow', 'pydantic'}"


def test_every_name_is_there_even_beside_a_module_of_that_name() -> None:
    found = {name: getattr(category_to_image, name) for name in category_to_image.__all__}
    assert set(found) <= set(dir(category_to_image))
    assert set(found) == set(category_to_image._HOMES)
    for name, value in found.items():
        if name != "RANKERS":
            assert value.__name__ == name
        assert (value.__module__ if name != "RANKERS" else type(value).__module__).startswith("diptych.")
    with pytest.raises(AttributeError, match="no attribute 'profit'"):
        _ = category_to_image.profit


def test_a_name_is_itself_after_all_modules_were_loaded() -> None:
    said = (
        "import importlib, pkgutil, types, diptych.commerce.category_to_image as here;"
        "[importlib.import_module(one.name) for one in pkgutil.iter_modules(here.__path__, here.__name__ + '.')];"
        "print([name for name in here.__all__ if isinstance(getattr(here, name), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nothing_is_loaded_before_it_is_used() -> None:
    said = f"import sys, diptych.commerce.category_to_image; print({HEAVY} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_every_name_is_there_even_beside_a_module_of_that_name_names() -> None:
    found = {name: getattr(purchase_intent, name) for name in purchase_intent.__all__}
    assert set(found) <= set(dir(purchase_intent))
    for name, value in found.items():
        assert value.__name__ == name
        assert value.__module__.startswith("diptych.")
    with pytest.raises(AttributeError, match="no attribute 'profit'"):
        _ = purchase_intent.profit


def test_nothing_is_loaded_before_it_is_used_names() -> None:
    said = (
        "import sys, diptych.commerce.purchase_intent; print({'numpy', 'ibis', 'sklearn'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
