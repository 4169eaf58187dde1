"""What a measurement keeps beside its figures: values per query, for tests that pair them, and examples.

::

    RUN/KEPT/
      per_query.npz     column → one value per query; ``cluster``: queries that are no two independent ones
      examples.json     what a report shows of single queries
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, read_json, write_json
from diptych.studies.evidence import Evidence

if TYPE_CHECKING:
    import numpy as np

_VALUES, _EXAMPLES, _CLUSTER = "per_query.npz", "examples.json", "cluster"


def keep(
    folder: Path,
    values: Mapping[str, np.ndarray],
    cluster: np.ndarray,
    shown: list[dict[str, Any]] | None = None,
) -> None:
    """Write what a measurement keeps.

    Args:
        values: column → (n,) one value per query.
        cluster: (n,) the number of each query's cluster: captions of one picture are asked together.
    """
    import numpy as np

    with atomic_path(folder / _VALUES) as temporary, open(temporary, "wb") as handle:
        np.savez_compressed(handle, allow_pickle=False, **{_CLUSTER: cluster}, **values)
    if shown is not None:
        write_json(folder / _EXAMPLES, shown)


def is_kept(folder: Path) -> bool:
    """Whether a measurement's values are there."""
    return (folder / _VALUES).is_file()


def per_query(folder: Path, column: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(n,) values of a column and (n,) clusters; None where the column is not kept."""
    import numpy as np

    try:
        with np.load(folder / _VALUES, allow_pickle=False) as stored:
            return (stored[column], stored[_CLUSTER]) if column in stored.files else None
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(
            f"{folder / _VALUES} cannot be opened: {error}",
            "run the study again: it measures what is missing",
        ) from None


def per_query_of(evidence: Evidence, row: str, column: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Values per query and clusters of a row's first seed; None where there are none."""
    folders = evidence.kept.get(row, ())
    return per_query(folders[0], column) if folders else None


def examples(evidence: Evidence, row: str) -> list[dict[str, Any]]:
    """What a row's first seed shows of single queries; empty where it shows none."""
    folders = evidence.kept.get(row, ())
    if not folders or not (folders[0] / _EXAMPLES).is_file():
        return []
    found: list[dict[str, Any]] = read_json(folders[0] / _EXAMPLES)
    return found
