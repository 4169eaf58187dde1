from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

E = TypeVar("E", bound=Exception)


def refused(kind: type[E], message: str, call: Callable[..., Any], *given: Any, **options: Any) -> E:
    """The error of one call, whose message holds a fragment."""
    with pytest.raises(kind, match=message) as caught:
        call(*given, **options)
    return caught.value
