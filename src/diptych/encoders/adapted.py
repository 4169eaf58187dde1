"""An encoder and a linear map per side on its rows, learned from a few pairs; its matching head is not used."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.core.reading import opening
from diptych.encoders.dual_encoder import DualEncoder, EncoderHeader, Positions, unit_rows
from diptych.encoders.given_rows import GivenRows


@dataclass(frozen=True, eq=False)
class LinearMap:
    """x ↦ (x − mean) · matrix."""

    matrix: np.ndarray  # (d, k) float32
    mean: np.ndarray  # (d,) float32

    @classmethod
    def of(cls, matrix: np.ndarray, mean: np.ndarray) -> Self:
        if not (np.isfinite(matrix).all() and np.isfinite(mean).all()):
            raise NumericalError(
                "a map with NaN or infinity", "adapt again with a larger strength, or method gaussian"
            )
        return cls(np.array(matrix, np.float32, order="C"), np.array(mean, np.float32, order="C"))

    @cached_property
    def is_identity(self) -> bool:
        rows, columns = self.matrix.shape
        return rows == columns and not self.mean.any() and bool(np.array_equal(self.matrix, np.eye(rows)))

    def __call__(self, rows: np.ndarray, kind: str, positions: Positions | np.ndarray) -> np.ndarray:
        """Map (n, d) rows → (n, k) float32 unit rows; the identity gives the bits it was given."""
        if self.is_identity:
            return rows
        return unit_rows((rows - self.mean) @ self.matrix, kind, positions)


@dataclass(frozen=True, eq=False)
class LinearMaps(Artifact, kind="linear_maps", recreate="diptych adapt"):
    """The maps of both sides, into one space."""

    image: LinearMap
    text: LinearMap

    def __post_init__(self) -> None:
        (first, mean), second = ((one.matrix.shape, one.mean.shape) for one in (self.image, self.text))
        if second != (first, mean) or mean != first[:1]:
            raise MismatchError(
                f"maps of images {first}, less {mean}, of texts {second[0]}, less {second[1]}"
            )

    @classmethod
    def identity(cls, width: int) -> Self:
        return cls(*(LinearMap.of(np.eye(width), np.zeros(width)) for _ in range(2)))

    @property
    def width(self) -> int:
        return int(self.image.matrix.shape[1])

    @property
    def is_identity(self) -> bool:
        return self.image.is_identity and self.text.is_identity

    @cached_property
    def fingerprint(self) -> str:
        sides = (("image", self.image), ("text", self.text))
        return fingerprint_arrays(
            {f"{name}.{part}": getattr(side, part) for name, side in sides for part in ("matrix", "mean")}
        )


_BASE, _MAPS = "base", "maps.npz"


def check_adaptable(base: DualEncoder) -> None:
    if base.similarity != "cosine":
        raise UsageError(
            f"the encoder's rows are compared by {base.similarity}, which a linear map does not respect",
            "adapt an encoder whose rows are compared by the cosine",
        )
    if isinstance(base, GivenRows):
        raise UsageError(
            f"{base.folder} holds rows, no encoder that could be adapted",
            "adapt the rows themselves: diptych.training.adaptation.fit_linear",
        )


class LinearlyAdapted(DualEncoder):
    """A dual encoder whose rows go through a map of their side; with identities it is the encoder itself."""

    family: ClassVar[str] = "adapted"

    def __init__(self, base: DualEncoder, maps: LinearMaps, about: dict[str, Any]) -> None:
        check_adaptable(base)
        self.base: DualEncoder = base
        self.maps: LinearMaps = maps
        self.about: dict[str, Any] = about
        self.name: str = f"{getattr(base, 'name', base.family)} + {about.get('pairs', '?')} pairs"

    @property
    def width(self) -> int:
        return self.maps.width

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        return self.base.takes

    @property
    def prepares(self) -> bool:
        return self.base.prepares

    def prepared(self, item: Any, position: int | str) -> Any:
        return self.base.prepared(item, position)

    def encode_prepared(self, prepared: Sequence[Any], positions: Positions) -> np.ndarray:
        return self.maps.image(self.base.encode_prepared(prepared, positions), "image", positions)

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        rows = self.base.encode_texts(texts, batch_size)
        return self.maps.text(rows, "text", range(len(rows)))

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        return self.base.with_endings(texts, endings)

    @property
    def fingerprint(self) -> str:
        base = self.base.fingerprint
        return base if self.maps.is_identity else fingerprint(self.family, base, self.maps.fingerprint)

    def describe(self) -> dict[str, Any]:
        base = self.base.describe()
        about = {"adapted": self.about, "base": {name: base[name] for name in ("family", "fingerprint")}}
        return {**base, **super().describe(), **about}

    def lines(self) -> list[str]:
        """Return a summary: what it was adapted on, and how the strength of the pull was chosen."""
        about = self.about
        which = f"{about['pairs']:,} pairs of {about['dataset']} {about['split']} (seed {about['seed']})"
        tried = ", ".join(f"{strength} {loss:.3f}" for strength, loss in about["held_out_losses"].items())
        lines = [f"held-out InfoNCE by strength of the pull: {tried}"] if tried else []
        if self.maps.is_identity:
            return [*lines, f"{which} change nothing: the encoder stays as it is"]
        return [*lines, f"adapted on {which}, {about['method']}, strength {about['strength']:g}"]

    def _settings(self) -> dict[str, Any]:
        return {"about": self.about}

    def _write(self, folder: Path) -> None:
        self.base.save(folder / _BASE)
        self.maps.save(folder / _MAPS)

    @classmethod
    @opening("adapt again: diptych adapt")
    def open(cls, folder: Path | str, device: str | None = None) -> Self:
        folder = Path(folder).expanduser()
        if not (folder / _BASE).is_dir():
            raise StorageError(
                f"{folder} has no encoder in {_BASE}/", "copy the whole folder, or adapt again"
            )
        header = EncoderHeader.open(folder)
        maps = LinearMaps.open(folder / _MAPS)
        base = DualEncoder.load(folder / _BASE, device=device)
        adapted = cls(base, maps, header.settings.get("about", {}))
        if adapted.fingerprint != header.fingerprint:
            raise MismatchError(
                f"{folder} was saved as {header.fingerprint} and is {adapted.fingerprint} now",
                f"{_BASE}/ or {_MAPS} is of another encoder: copy the whole folder, or adapt again",
            )
        return adapted
