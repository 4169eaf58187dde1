"""What was measured of one head on one split: recalls beside the dense ones, cost, meaning, faithfulness."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from diptych.core.errors import StorageError
from diptych.core.files import atomic_path, write_json
from diptych.core.fingerprint import fingerprint_arrays
from diptych.core.reading import opening, read_arrays, read_json
from diptych.evaluation import Result
from diptych.metrics import DIRECTIONS, measure
from diptych.sparse.deviation import Deviation
from diptych.sparse.measures import Faithfulness

_FORMAT = 1
_KIND = "sparse measures"


class KeptRow(NamedTuple):
    """A measure of both kinds of rows; shares in per cent, ``kept`` of the dense value, ``p`` corrected."""

    measure: str
    dense: str
    sparse: str
    kept: str
    p: str


@dataclass(frozen=True, eq=False)
class SparseMeasures:
    """What :func:`~diptych.sparse.evaluate.measure_sparsified` returns.

    Attributes:
        about: dataset, split, sizes, fingerprints of dense encoder, head and vocabulary, expansion in training
            and in use, and how terms are counted.
        dense: retrieval by the dense rows.
        sparse: retrieval by the sparse rows.
        flops: mean number of common terms of a caption and a picture (Eq. 3.1).
        nonzeros: mean number of terms, of ``images`` and of ``texts``.
        empty: share of rows without a term, likewise.
        deviation: what captions' terms mean.
        faithful: per direction, how much the sparse rankings are the dense ones.
        p: ``"t2i R@1"`` … → p-value of sparse against dense, paired t-test over pictures with Bonferroni's
            correction; None where it says nothing.
        values: per caption ``exact`` and ``semantic``, and per query ``overlap t2i`` and ``overlap i2t``.
    """

    about: dict[str, Any]
    dense: Result
    sparse: Result
    flops: float
    nonzeros: dict[str, float]
    empty: dict[str, float]
    deviation: Deviation
    faithful: dict[str, Faithfulness]
    p: dict[str, float | None]
    values: dict[str, np.ndarray] = field(default_factory=dict)

    def kept(self, name: str, direction: str) -> float:
        """The sparse value as a share of the dense one; NaN where the dense one is 0."""
        dense = self.dense.value(name, direction)
        return self.sparse.value(name, direction) / dense if dense else math.nan

    def recalls(self) -> list[KeptRow]:
        """Rows for printing: every measure of both directions, dense, sparse, what was kept."""
        rows = []
        for direction in self.dense.scores:
            for name in self.dense.scores[direction]:
                label = f"{direction} {name}" if direction in DIRECTIONS else name
                show, kept, p = measure(name).show, self.kept(name, direction), self.p.get(label)
                rows.append(
                    KeptRow(
                        label,
                        show(self.dense.value(name, direction)),
                        show(self.sparse.value(name, direction)),
                        "–" if math.isnan(kept) else f"{100 * kept:.1f} %",
                        "–" if p is None else "< 0.001" if p < 0.001 else f"{p:.3f}",
                    )
                )
        return rows

    def table(self) -> list[tuple[str, str]]:
        """Names and values of everything but recalls, for printing."""
        deviation = self.deviation
        rows = [
            ("FLOPs", f"{self.flops:.2f}"),
            ("terms per picture", f"{self.nonzeros['images']:.1f}"),
            ("terms per caption", f"{self.nonzeros['texts']:.1f}"),
            ("pictures without a term", _percent(self.empty["images"])),
            ("captions without a term", _percent(self.empty["texts"])),
            (f"Exact@{deviation.k}", _percent(deviation.exact)),
        ]
        if deviation.semantic is not None:
            rows += [
                (f"Semantic@{deviation.k}", _percent(deviation.semantic)),
                ("leading terms without a vector", _percent(deviation.unknown_terms)),
                ("words without a vector", _percent(deviation.unknown_words)),
            ]
        for direction, one in self.faithful.items():
            rows += [(f"{direction} Pearson {name}", _percent(value)) for name, value in one.pearson.items()]
            rows += [
                (f"{direction} overlap of the top {one.k}", _percent(one.overlap)),
                (f"{direction} Kendall τ of the common", f"{one.kendall:.3f}".replace("nan", "–")),
            ]
        return rows

    def line(self) -> str:
        """One line, to be printed with the numbers."""
        return "; ".join(f"{key} {value}" for key, value in self.about.items() if value is not None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; NaN is None there, the arrays are left out (see :meth:`save`)."""
        return {
            "format": _FORMAT,
            "kind": _KIND,
            "about": self.about,
            "dense": self.dense.to_dict(),
            "sparse": self.sparse.to_dict(),
            "flops": self.flops,
            "nonzeros": self.nonzeros,
            "empty": self.empty,
            "deviation": asdict(self.deviation),
            "faithful": {name: _without_nan(asdict(one)) for name, one in self.faithful.items()},
            "p": self.p,
            "values": fingerprint_arrays(self.values) if self.values else None,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SparseMeasures:
        """The inverse of :meth:`to_dict`, also after a way through JSON; without arrays."""
        if given.get("kind") != _KIND or given.get("format") != _FORMAT:
            raise StorageError(
                f"expected {_KIND} of format {_FORMAT}, got {given.get('kind')} of format {given.get('format')}",
                "measure again with this version: diptych sparsify",
            )
        same = {name: given[name] for name in ("about", "flops", "nonzeros", "empty", "p")}
        return cls(
            **same,
            dense=Result.from_dict(given["dense"]),
            sparse=Result.from_dict(given["sparse"]),
            deviation=Deviation(**given["deviation"]),
            faithful={name: Faithfulness(**_with_nan(one)) for name, one in given["faithful"].items()},
        )

    def save(self, path: Path | str) -> Path:
        """Write ``NAME.json``, and ``NAME.npz`` with the arrays, each whole or not at all."""
        path = Path(path)
        if self.values:
            with atomic_path(path.with_suffix(".npz")) as temporary, open(temporary, "wb") as handle:
                np.savez_compressed(handle, allow_pickle=False, **self.values)
        write_json(path, self.to_dict())
        return path

    @classmethod
    @opening("measure again: diptych sparsify")
    def open(cls, path: Path | str) -> SparseMeasures:
        """Read what :meth:`save` wrote."""
        path = Path(path)
        given = read_json(path)
        if not isinstance(given, dict):
            raise StorageError(f"{path} holds no {_KIND}", "measure again: diptych sparsify")
        found = cls.from_dict(given)
        if given["values"] is None:
            return found
        arrays = path.with_suffix(".npz")
        found.values.update(read_arrays(arrays, fix="measure again: diptych sparsify"))
        if fingerprint_arrays(found.values) != given["values"]:
            raise StorageError(f"{arrays} is not of {path.name}", "measure again: diptych sparsify")
        return found


def _percent(share: float | None) -> str:
    return "–" if share is None or math.isnan(share) else f"{100 * share:.1f} %"


def _without_nan(given: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN: what could not be computed is null."""
    return {
        key: _without_nan(value)
        if isinstance(value, Mapping)
        else None
        if isinstance(value, float) and math.isnan(value)
        else value
        for key, value in given.items()
    }


def _with_nan(given: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _with_nan(value) if isinstance(value, Mapping) else math.nan if value is None else value
        for key, value in given.items()
    }
