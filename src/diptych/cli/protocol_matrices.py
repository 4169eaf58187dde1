"""From files of score matrices to what ``diptych protocol`` explores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.core.errors import DataError, UsageError

if TYPE_CHECKING:
    import numpy as np

    from diptych.evaluation.variants import Scored

_ENDING = ".npy"
_WHOLE = ""  # one matrix of both directions
_FORM = "one FILE.npy of all pairs, or i2t=FILE.npy and t2i=FILE.npy"


def is_matrix(source: str | None) -> bool:
    """Whether a file of scores is named instead of a run."""
    return source is not None and source.endswith(_ENDING)


def matrices_of(
    source: str, matching: list[str] | None, caption_image: Path | None, out: Path | None
) -> tuple[dict[str, Scored], list[str], tuple[str, ...], Path]:
    """A test set by its label, what the numbers depend on, warnings, and where results go."""
    from diptych.core.fingerprint import fingerprint_file
    from diptych.evaluation.variants import MatrixScores, already_cut, as_ground_truth, as_matching

    files = _matching_files(matching or [])
    scores = _loaded(Path(source))
    home = None if caption_image is None else _loaded(caption_image)
    truth, assumed = as_ground_truth(home, scores.shape)
    sides = {side: _loaded(file) for side, file in files.items()}
    whole, reranked = as_matching(sides.get(_WHOLE, sides or None), scores, False)
    found: Scored = MatrixScores(scores, truth, matching=whole, reranked=reranked)
    marks = ", ".join(f"{file} ({fingerprint_file(file)})" for file in (Path(source), *files.values()))
    lines = [f"scores of {truth.n_images:,} images and {truth.n_texts:,} captions: {marks}"]
    if assumed:
        lines.append(f"captions: {assumed}")
    return {"given": found}, lines, already_cut(scores), out or Path(source).parent / "protocol"


def _matching_files(given: list[str]) -> dict[str, Path]:
    found = {}
    for text in given:
        side, equals, file = text.partition("=")
        is_side = bool(equals) and side in ("i2t", "t2i")
        found[side if is_side else _WHOLE] = Path(file if is_side else text)
    if len(found) != len(given) or (_WHOLE in found and len(found) > 1):
        raise UsageError(f"--matching is given {len(given)} times: {', '.join(given)}", _FORM)
    return found


def _loaded(file: Path) -> np.ndarray:
    import numpy as np

    try:
        found: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f"{file} does not exist", "give a file that numpy.save wrote") from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{file} is no array: {error}", "give a file that numpy.save wrote") from None
    return found
