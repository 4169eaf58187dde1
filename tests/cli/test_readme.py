"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import diptych

README = Path(__file__).parents[2] / "README.md"
ENCODER, LOSSES = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


def test_the_python_of_the_readme_runs(
    run_folder: Path, scenes_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = ENCODER.replace("runs/flickr8k/best", str(run_folder / "best"))
    names: dict[str, object] = {}
    exec(code.replace('"flickr8k"', f'"{scenes_folder}"'), names)
    assert "16 images, 80 texts" in capsys.readouterr().out
    assert 0 < float(names["result"].value("rsum")) <= 600  # type: ignore[attr-defined]


def test_the_losses_of_the_readme_run() -> None:
    images, texts = (torch.nn.functional.normalize(torch.randn(n, 4)) for n in (3, 6))
    positives = torch.eye(3, dtype=torch.bool).repeat_interleave(2, dim=1)
    names: dict[str, Any] = {"images": images, "texts": texts, "positives": positives, "diptych": diptych}
    exec(LOSSES, names)
    assert 0 < float(names["loss"]) < 1
    assert names["weights"].values.shape == (3, 6)
