"""The example of docs/protocols.md runs and prints what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "protocols.md"


def test_the_example_prints_what_stands_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    found = re.search(r"```python\n(.*?)```\n\n```\n(.*?) …\n```", text, re.DOTALL)
    assert found is not None
    exec(found[1], {})
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.startswith(" ".join(found[2].split()))


def test_the_axes_and_their_choices_are_those_that_there_are() -> None:
    from diptych.evaluation.variants import AXES

    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(AXES.names())
