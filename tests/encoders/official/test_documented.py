"""The Python of docs/pretrained.md runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from .tiny_official import VIT, albef_state

PAGE = Path(__file__).parents[3] / "docs" / "pretrained.md"


def test_prepared_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = (
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
        if "from_checkpoint" in block
    )
    (tmp_path / "albef").mkdir()
    torch.save({"model": albef_state()}, tmp_path / "albef" / "tiny.pth")
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(code, found)
    assert found["encoder"].config.vision.heads == VIT["num_heads"]
    itm, similarities = found["itm"], found["similarities"]
    assert itm.shape == (3, 2, 2)
    for scores, matching, first in (
        (found["score_i2t"], itm[..., 1], similarities),
        (found["score_t2i"], itm[..., 1].T, similarities.T),
    ):
        expected = np.full(first.shape, -100.0)
        best = np.arange(len(first)), first.argmax(axis=1)
        expected[best] = matching[best]
        np.testing.assert_allclose(scores, expected, atol=1e-5)


def test_every_family_is_named() -> None:
    from diptych.encoders.family import FAMILIES

    page = PAGE.read_text(encoding="utf-8")
    for family in FAMILIES:
        if family.name != "two_tower":  # trained here, not pretrained
            assert f"| `{family.name}` |" in page
            assert family.prefix is None or f"`{family.prefix}:" in page
    assert all(len(line) <= 170 for line in page.splitlines())
