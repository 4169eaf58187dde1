from __future__ import annotations

from typing import Any

import numpy as np


def is_mapped(array: Any) -> bool:
    """Whether an array lies in a file."""
    while array is not None and not isinstance(array, np.memmap):
        array = array.base
    return array is not None
