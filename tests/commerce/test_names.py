"""The names that a user needs are in one place, and loading none of them costs nothing."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from diptych.commerce import category_to_image, purchase_intent


@pytest.mark.parametrize("package", [category_to_image, purchase_intent])
def test_every_name_is_there_even_beside_a_module_of_that_name(package: ModuleType) -> None:
    found = {name: getattr(package, name) for name in package.__all__}
    assert set(found) <= set(dir(package))
    for name, value in found.items():
        assert getattr(value, "__module__", "diptych.").startswith("diptych.")
        assert not isinstance(value, ModuleType), name
    with pytest.raises(AttributeError, match="no attribute 'profit'"):
        _ = package.profit


def test_nothing_is_loaded_before_it_is_used_and_names_outlive_modules_of_that_name() -> None:
    said = (
        "import importlib, pkgutil, sys, types, diptych.commerce.purchase_intent;"
        "import diptych.commerce.category_to_image as p;"
        "print({'numpy', 'torch', 'scipy', 'PIL', 'pyarrow', 'pydantic', 'ibis', 'sklearn'} & set(sys.modules));"
        "[importlib.import_module(one.name) for one in pkgutil.iter_modules(p.__path__, p.__name__ + '.')];"
        "print([name for name in p.__all__ if isinstance(getattr(p, name), types.ModuleType)])"
    )
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["set()", "[]"]
