"""Reports are rendered as a reader has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from diptych.report import figures

_RENDERED = figures._to_svg


@pytest.fixture(scope="module", autouse=True)
def _rendered(_unrendered: None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "_to_svg", _RENDERED)
        yield
