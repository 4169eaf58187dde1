"""The names that a user needs are in one place, and loading none of them costs nothing."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from diptych.commerce import category_to_image, purchase_intent


def test_every_name_is_there_and_nothing_is_loaded_before_it_is_used() -> None:
    for package in (category_to_image, purchase_intent):
        found = {name: getattr(package, name) for name in package.__all__}
        assert set(found) <= set(dir(package))
        assert not [name for name, value in found.items() if isinstance(value, ModuleType)]
        with pytest.raises(AttributeError, match="no attribute 'profit'"):
            _ = package.profit
    code = "import sys, diptych.commerce.purchase_intent, diptych.commerce.category_to_image as p; "
    code += (
        "print({'numpy', 'torch', 'scipy', 'PIL', 'pyarrow', 'pydantic', 'ibis', 'sklearn'} & {*sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
