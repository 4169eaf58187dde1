"""Where re-ranking keeps what it has: candidates, what the head reads of texts, scores block by block.

::

    .NAME.work/  work.json          what is being made, written once the candidates are there
                 i2t_items.npy …    candidates and contrastive scores of both directions
                 i2t_matching.npy … scores, filled as they come
                 text_NAME.npy …    what the head reads of texts; texts.json once they are whole
                 done.json          how many blocks of pictures are done
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from diptych.core.errors import MismatchError, StorageError, UsageError
from diptych.core.files import create_array, read_json, write_json
from diptych.encoders.encode import EncodedCollection
from diptych.encoders.matching import PairInputs
from diptych.encoders.rerank_pairs import PairBlock
from diptych.evaluation.candidates import Candidates
from diptych.evaluation.ground_truth import DIRECTIONS
from diptych.evaluation.reranked import MARKER, Reranked
from diptych.evaluation.similarities import similarity as similarity_of

__all__ = ["Workplace"]


class Workplace:
    """One re-ranking under way; make one with :meth:`at`.

    Args:
        folder: of the work.
        target: where the result goes; None to hold it in memory.
    """

    def __init__(self, folder: Path, target: Path | None) -> None:
        self.folder, self.target = folder, target
        self._matching: dict[str, np.ndarray] = {}

    @classmethod
    @contextmanager
    def at(cls, target: Path | str | None, key: str) -> Iterator[Self]:
        """The work for ``target`` that was begun under ``key``, or a new one.

        What was begun for something else is thrown away. A work without a target is gone afterwards; one
        with a target stays until :meth:`finished`, so that it can be taken up again.

        Raises:
            StorageError: nothing can be written there.
            UsageError: the target holds other things.
        """
        if target is None:
            with tempfile.TemporaryDirectory(prefix="diptych-rerank-") as temporary:
                yield cls(Path(temporary), None)
            return
        target = Path(target)
        strange = target.exists() and not (target / MARKER).is_file()
        if strange and (not target.is_dir() or any(target.iterdir())):  # seen before the work, not after it
            raise UsageError(f"{target} holds other things (no {MARKER})", "give a new or empty folder")
        folder = target.with_name(f".{target.name}.work")
        with _writing(folder):
            if folder.exists() and not _is_of(folder, key):
                shutil.rmtree(folder)
            folder.mkdir(parents=True, exist_ok=True)
            write_json(folder / "key.json", key)
        yield cls(folder, target)

    @property
    def done(self) -> int:
        """How many blocks of pictures are scored."""
        file = self.folder / "done.json"
        return int(read_json(file)) if file.is_file() else 0

    def candidates(self, encoded: EncodedCollection, k: int) -> dict[str, Candidates]:
        """Both directions: the ``k`` best of each query by the rows, with room for their scores."""
        if not (self.folder / "work.json").is_file():
            best = similarity_of(encoded.similarity).best
            for name in DIRECTIONS:
                items, scores = best(encoded.images.rows, encoded.texts.rows, name, k)
                with _writing(self.folder):
                    np.save(self.folder / f"{name}_items.npy", items)
                    np.save(self.folder / f"{name}_contrastive.npy", scores.astype(np.float32))
                    create_array(self.folder / f"{name}_matching.npy", "float32", items.shape)
            write_json(self.folder / "work.json", {"k": k})
        for name in DIRECTIONS:
            self._matching[name] = _mapped(self.folder / f"{name}_matching.npy", "r+")
        return {
            name: Candidates(
                _mapped(self.folder / f"{name}_items.npy"),
                _mapped(self.folder / f"{name}_contrastive.npy"),
                self._matching[name],
            )
            for name in DIRECTIONS
        }

    def texts(self, blocks: Iterable[PairInputs], count: int) -> PairInputs:
        """What the head reads of ``count`` texts, memory-mapped; ``blocks`` are asked for where it is not there.

        Raises:
            MismatchError: blocks whose parts differ in name, shape or type, or that are too few.
        """
        marker = self.folder / "texts.json"
        if not marker.is_file():
            write_json(marker, self._write_texts(blocks, count))
        return {name: _mapped(self.folder / file) for name, file in read_json(marker).items()}

    def _write_texts(self, blocks: Iterable[PairInputs], count: int) -> dict[str, str]:
        arrays: dict[str, np.ndarray] = {}
        said: dict[str, Any] = {}
        files: dict[str, str] = {}
        begin = 0
        for block in blocks:
            sizes = {len(values) for values in block.values()}
            shapes = {name: (values.shape[1:], values.dtype) for name, values in block.items()}
            if len(sizes) != 1 or (said and shapes != said):
                raise MismatchError(
                    f"the head's text inputs are {shapes} for {sorted(sizes)} texts, and were {said or 'unknown'}",
                    "text_inputs has to give arrays of one shape and type, one row per text",
                )
            if not said:
                said = shapes
                files = {name: f"text_{number}.npy" for number, name in enumerate(shapes)}
                with _writing(self.folder):
                    arrays = {
                        name: create_array(self.folder / files[name], kind.str, (count, *shape))
                        for name, (shape, kind) in shapes.items()
                    }
            end = begin + sizes.pop()
            if end > count:
                break
            for name, values in block.items():
                arrays[name][begin:end] = values
            begin = end
        if begin != count:
            raise MismatchError(
                f"the head read {begin:,} of {count:,} texts", "text_inputs: one row per text"
            )
        for array in arrays.values():
            array.flush()  # type: ignore[attr-defined]
        return files

    def keep(self, number: int, block: PairBlock, scores: np.ndarray) -> None:
        """Store the scores of block ``number``, the next one, in the candidates of both directions."""
        rows = slice(block.first, block.first + len(block.i2t))
        self._matching["i2t"][rows] = scores[block.i2t]
        flat = self._matching["t2i"].reshape(-1)
        flat[block.t2i_cells] = scores[block.t2i]
        for matching in self._matching.values():
            matching.flush()  # type: ignore[attr-defined]
        write_json(self.folder / "done.json", number + 1)

    def finished(self, result: Reranked) -> Reranked:
        """Store ``result`` where it was asked for, or copy it into memory; the work is over."""
        if self.target is None:
            i2t, t2i = (
                Candidates(*(np.array(part) for part in (one.items, one.contrastive, one.matching)))
                for one in (result.i2t, result.t2i)
            )
            return Reranked(i2t, t2i, result.adds_contrastive, result.about)
        result.save(self.target)
        shutil.rmtree(self.folder, ignore_errors=True)
        return Reranked.open(self.target)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {folder}: {error.strerror or error}",
            "free some space, or check the folder's permissions, and ask again: what was scored is kept",
        ) from error


def _is_of(folder: Path, key: str) -> bool:
    """Whether the work in ``folder`` was begun under ``key``."""
    file = folder / "key.json"
    return file.is_file() and read_json(file) == key


def _mapped(file: Path, mode: Literal["r", "r+"] = "r") -> np.ndarray:
    try:
        array: np.ndarray = np.load(file, mmap_mode=mode, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise StorageError(
            f"{file} cannot be opened: {error}", f"remove {file.parent} and ask again"
        ) from None
    return array
