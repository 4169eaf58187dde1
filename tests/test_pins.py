"""The fast pins: what a user runs still gives the stored numbers, bit for bit on the stored platform.

A pin that changes for a reason is stored anew by ``python -m pins --update NAME``, in a commit of its own.
"""

from __future__ import annotations

from typing import Any

import pytest

from pins.environment import run_pins
from pins.registry import pins
from pins.stored import compare

_FAST = [name for name, one in pins().items() if one.fast]


@pytest.fixture(scope="module")
def measured() -> dict[str, dict[str, Any]]:
    """All fast pins, from one process."""
    return dict(run_pins(_FAST))


@pytest.mark.parametrize("name", _FAST)
def test_pin(name: str, measured: dict[str, dict[str, Any]]) -> None:
    assert "error" not in measured[name], measured[name]["error"]
    differences, note = compare(name, measured[name]["values"])
    assert not differences, "\n".join([f"{name} {note}", *differences])
