"""The README's Python runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest


def test_the_python_of_the_readme_runs(
    run_folder: Path, scenes_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 2
    code = (
        blocks[0]
        .replace("runs/flickr8k/best", str(run_folder / "best"))
        .replace('"flickr8k"', f'"{scenes_folder}"')
    )
    names: dict[str, object] = {}
    exec(code, names)
    assert "16 images, 80 texts" in capsys.readouterr().out
    assert 0 < float(names["result"].value("rsum")) <= 600  # type: ignore[attr-defined]


def test_the_losses_of_the_readme_run() -> None:
    import torch

    import diptych

    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    code = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[1]
    images, texts = (torch.nn.functional.normalize(torch.randn(n, 4)) for n in (3, 6))
    positives = torch.eye(3, dtype=torch.bool).repeat_interleave(2, dim=1)
    names: dict[str, Any] = {"images": images, "texts": texts, "positives": positives, "diptych": diptych}
    exec(code, names)
    assert 0 < float(names["loss"]) < 1
    assert names["weights"].values.shape == (3, 6)
