"""From an evaluation of models to numbers of rows, and back from rows to the evaluation that they were read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.studies.cti_rows import of_row
from diptych.studies.evidence import Evidence

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation

_FLIPS = 10_000


def evaluation_of(evidence: Evidence) -> ModelsEvaluation | None:
    """The evaluation that rows were read from; None where it is gone, or where numbers are printed ones."""
    folder = next((one for folders in evidence.kept.values() for one in folders if one.is_dir()), None)
    return None if folder is None else _opened(str(folder.resolve()), _written(folder))


def _written(folder: Path) -> int:
    """When its numbers were written: an evaluation that has grown is another one."""
    from diptych.commerce.category_to_image.evaluation.protocol import RESULTS

    file = folder / RESULTS
    return file.stat().st_mtime_ns if file.is_file() else 0


@lru_cache(maxsize=2)
def _opened(folder: str, written: int) -> ModelsEvaluation | None:
    from diptych.commerce.category_to_image.evaluation import ModelsEvaluation
    from diptych.core.errors import DataError, StorageError

    if not written:
        return None
    try:
        return ModelsEvaluation.open(folder)
    except (DataError, StorageError):
        return None  # begun anew, or moved: numbers are kept with the rows


def tested(evidence: Evidence, first: str, second: str, columns: Sequence[str]) -> Mapping[str, str]:
    """Column → what a test over categories says of two models in one setting, to stand behind their difference.

    Paired random swaps per category of the means over seeds, with Holm's correction over the columns. Empty where
    there are no values per category, as of printed numbers.
    """
    (one, setting), (other, same) = of_row(first), of_row(second)
    found = evaluation_of(evidence)
    if (
        found is None
        or setting != same
        or setting not in found.settings
        or not {one, other} <= set(found.models)
    ):
        return {}
    return _compared(str(found.folder), _written(found.folder), setting, one, other, tuple(columns))


@lru_cache(maxsize=512)
def _compared(
    folder: str, written: int, setting: str, one: str, other: str, columns: tuple[str, ...]
) -> dict[str, str]:
    from diptych.commerce.category_to_image.evaluation.rows import compare_models
    from diptych.metrics.bootstrap import Bootstrap

    found = _opened(folder, written)
    assert found is not None
    values = {
        model: {
            name: [cell.result.per_query["t2i"][name] for cell in found.cells(setting, model)]
            for name in columns
        }
        for model in (one, other)
    }
    differences = compare_models(values, other, columns, flips=_FLIPS, bootstrap=Bootstrap(samples=0))
    return {difference.measure: f"; {_said(difference.p)}" for difference in differences}


def _said(p: float | None) -> str:
    if p is None:
        return "no test"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
