"""A pair of affine maps of rows, one per side: what a few-shot adaptation learns and keeps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from diptych.core.errors import DataError, MismatchError, NumericalError, StorageError
from diptych.core.fingerprint import fingerprint_arrays
from diptych.encoders.rows import unit_rows
from diptych.encoders.tensors import load_tensors, save_tensors


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ (x − mean) · matrix.

    Attributes:
        matrix: (d, k) float32.
        mean: (d,) float32.
    """

    matrix: np.ndarray
    mean: np.ndarray

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.mean.shape != self.matrix.shape[:1]:
            raise DataError(f"a map of shape {self.matrix.shape} with a mean of shape {self.mean.shape}")
        if not (np.isfinite(self.matrix).all() and np.isfinite(self.mean).all()):
            raise NumericalError("a map with NaN or infinity", "adapt again with a stronger pull (strength)")

    @classmethod
    def of(cls, matrix: np.ndarray, mean: np.ndarray) -> LinearMap:
        """From numbers of any floating type."""
        return cls(np.array(matrix, np.float32, order="C"), np.array(mean, np.float32, order="C"))

    @cached_property
    def is_identity(self) -> bool:
        """Whether it leaves every row as it is."""
        rows, columns = self.matrix.shape
        return rows == columns and not self.mean.any() and bool(np.array_equal(self.matrix, np.eye(rows)))

    def __call__(
        self, rows: np.ndarray, kind: str, positions: Sequence[int] | Sequence[str] | np.ndarray
    ) -> np.ndarray:
        """(n, d) rows → (n, k) float32 unit rows; the identity gives the bits it was given."""
        if self.is_identity:
            return rows
        return unit_rows((rows - self.mean) @ self.matrix, kind, positions)


@dataclass(frozen=True, eq=False)
class LinearMaps:
    """The maps of both sides, into one space.

    Attributes:
        image, text: of each side.
    """

    image: LinearMap
    text: LinearMap

    def __post_init__(self) -> None:
        if self.image.matrix.shape != self.text.matrix.shape:
            raise MismatchError(
                f"a map of images of shape {self.image.matrix.shape}, of texts of {self.text.matrix.shape}",
                "both sides go from one width to one width",
            )

    @classmethod
    def identity(cls, width: int) -> LinearMaps:
        """Maps that change nothing."""
        sides = [LinearMap.of(np.eye(width), np.zeros(width)) for _ in range(2)]
        return cls(*sides)

    @property
    def takes(self) -> int:
        return int(self.image.matrix.shape[0])

    @property
    def width(self) -> int:
        return int(self.image.matrix.shape[1])

    @property
    def is_identity(self) -> bool:
        """Whether both leave every row as it is."""
        return self.image.is_identity and self.text.is_identity

    def _arrays(self) -> dict[str, np.ndarray]:
        sides = (("image", self.image), ("text", self.text))
        return {f"{name}.{part}": getattr(side, part) for name, side in sides for part in ("matrix", "mean")}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_arrays(self._arrays())

    def save(self, file: Path) -> None:
        """Write a safetensors file."""
        save_tensors({name: torch.from_numpy(array) for name, array in self._arrays().items()}, file)

    @classmethod
    def load(cls, file: Path) -> LinearMaps:
        """Read what :meth:`save` wrote."""
        fix = "adapt again"
        tensors = load_tensors(file, fix)
        wanted = {f"{name}.{part}" for name in ("image", "text") for part in ("matrix", "mean")}
        if set(tensors) != wanted:
            raise StorageError(f"{file} holds {', '.join(sorted(tensors)) or 'nothing'}, no maps", fix)
        try:
            sides = [
                LinearMap(*(tensors[f"{name}.{part}"].numpy() for part in ("matrix", "mean")))
                for name in ("image", "text")
            ]
            return cls(*sides)
        except (DataError, NumericalError, MismatchError) as error:
            raise StorageError(f"{file} is damaged: {error.message}", fix) from None
