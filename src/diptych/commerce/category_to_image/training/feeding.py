"""Batches out of rows that lie in memory or in memory-mapped files: what is asked for is copied, nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from diptych.commerce.category_to_image.features.rows import Modality, ProductFeatures
from diptych.commerce.category_to_image.model.pooling import Bags, mean_pooled
from diptych.commerce.category_to_image.model.product import Rows
from diptych.core.errors import MismatchError, NumericalError

_MOST = 1 << 25
"""Numbers of means that are held: 128 MiB."""

_BLOCK = 4096


def gathered(source: np.ndarray, rows: np.ndarray) -> Tensor:
    """``source[rows]`` as a float32 tensor.

    The memory is torch's own, which is aligned as its products of matrices like it: the same numbers at another
    alignment may be added in another order, and a resumed training would end with other bits.
    """
    made = torch.empty((len(rows), source.shape[1]), dtype=torch.float32)
    if source.dtype == np.float32:
        np.take(source, rows, axis=0, out=made.numpy(), mode="clip")  # "raise" would copy through a buffer
    else:
        made.numpy()[...] = source[rows]
    return made


@dataclass(frozen=True)
class Batch:
    """What a model takes of some products.

    Attributes:
        rows: per modality.
        present: (n,) booleans of the modalities that some of them lack.
    """

    rows: dict[Modality, Rows]
    present: dict[Modality, Tensor]


class ProductFeed:
    """Batches of products."""

    def __init__(
        self, features: ProductFeatures, modalities: Sequence[Modality], *, pool: bool = False
    ) -> None:
        if "image" in modalities and features.image is None:
            raise MismatchError(
                "the model looks at pictures, the features have none", "make them with an image encoder"
            )
        self._features = features
        self._modalities = tuple(modalities)
        self._present = {one: features.present(one) for one in self._modalities}
        self._pool = pool
        self._means: np.ndarray | None = None
        if pool and "attributes" in modalities and features.title.size <= _MOST:
            self._means = np.empty(features.title.shape, dtype=np.float32)
            for begin in range(0, len(features), _BLOCK):
                rows = np.arange(begin, min(begin + _BLOCK, len(features)))
                self._means[rows] = mean_pooled(self._bags(rows)).numpy()

    def batch(self, rows: np.ndarray, hidden: np.ndarray | None = None) -> Batch:
        """The products ``rows``.

        Args:
            rows: (n,) int64.
            hidden: (n,) number of the modality that is to be taken for missing, -1 for none; it stays where a
                product has no other one.
        """
        present = {one: self._present[one][rows] for one in self._modalities}
        if hidden is not None:
            spare = sum(there.astype(np.int64) for there in present.values()) > 1
            for number, one in enumerate(self._modalities):
                present[one] = present[one] & ~((hidden == number) & spare)
        made: dict[Modality, Rows] = {}
        for one in self._modalities:
            if one == "attributes" and self._means is not None:
                made[one] = gathered(self._means, rows)
            elif one == "attributes":
                bags = self._bags(rows)
                made[one] = mean_pooled(bags) if self._pool else bags
            else:
                source = self._features.image if one == "image" else self._features.title
                assert source is not None
                made[one] = gathered(source, rows)
        lacking = {one: torch.from_numpy(there) for one, there in present.items() if not there.all()}
        return Batch(made, lacking)

    def _bags(self, rows: np.ndarray) -> Bags:
        begin = self._features.attribute_start[rows]
        counts = self._features.attribute_start[rows + 1] - begin
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(counts, out=start[1:])
        places = np.arange(start[-1]) + np.repeat(begin - start[:-1], counts)
        items = np.asarray(self._features.attribute_items[places], dtype=np.int64)
        return Bags(gathered(self._features.attribute_rows, items), torch.from_numpy(start))

    def check(self, rows: np.ndarray) -> None:
        """See that what the features hold of the products ``rows`` is finite."""
        for one in self._modalities:
            there = rows[self._present[one][rows]]
            if one == "attributes":
                bags = self._bags(there)
                bad = bags.owner[~torch.isfinite(bags.rows).all(dim=1)].numpy()
            else:
                source = self._features.image if one == "image" else self._features.title
                assert source is not None
                bad = np.flatnonzero(~np.isfinite(source[there]).all(axis=1))
            if len(bad):
                raise NumericalError(
                    f"the {one} row of product {self._features.ids[int(there[bad[0]])]} is not finite",
                    "make the features again; if it stays, leave the product out",
                )
