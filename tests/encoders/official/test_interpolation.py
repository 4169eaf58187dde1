from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused

from diptych.core.errors import StorageError
from diptych.encoders.official.vision import position_table, relative_bias_table

from .tiny_official import VIT, albef_state

GOLDEN = np.load(Path(__file__).parents[2] / "golden" / "posembed_interp.npz", allow_pickle=False)


def test_golden() -> None:
    """Outputs of the published code."""
    biases = relative_bias_table(torch.from_numpy(GOLDEN["relpos_src_13x13_h4"]), 12)
    np.testing.assert_allclose(biases, GOLDEN["relpos_dst_23x23_h4"], atol=1e-5)
    positions = position_table(torch.from_numpy(GOLDEN["vit_src_1_17_12"]), 6)
    np.testing.assert_allclose(positions, GOLDEN["vit_dst_1_37_12"], atol=1e-6)


def test_tables_of_no_square() -> None:
    refused(StorageError, r"position table of shape \(1, 12, 3\)", position_table, torch.zeros(1, 12, 3), 4)
    with pytest.raises(StorageError, match=r"relative position biases of shape \(48, 2\)"):
        relative_bias_table(torch.zeros(48, 2), 4)
    refused(StorageError, "of 1 row holds no distances", relative_bias_table, torch.zeros(1, 2), 4)


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
