"""Region tower (VSRN): features of a detector's regions, related to each other, read one after another.

    regions → fc → [unit length] → graph convolutions → unit length → GRU's last state → [batch norm]
            → [projection] → unit length

Its caption generator, a second training signal, is not part of this tower.

Source: Li et al., Visual Semantic Reasoning for Image-Text Matching, ICCV 2019.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from diptych.core.options import Options
from diptych.encoders.inputs import as_regions
from diptych.encoders.tower import Tower, start_uniform


class RegionTowerConfig(Options):
    """Options of a region tower; VSE++ on one vector per image: ``regions = 1``, ``layers = 0``, ``fusion = "mean"``.

    The published model for COCO is the default with ``compat = "region-axis"``, the one for Flickr30k
    has also ``normalise_input = false`` and ``batch_norm = true``.
    """

    kind: Literal["regions"] = "regions"
    regions: int = Field(36, ge=1)  # how many each picture has
    feature_width: int = Field(2048, ge=1)  # length of a region's features
    layers: int = Field(4, ge=0)  # graph convolutions
    fusion: Literal["gru", "mean"] = "gru"  # last state of a GRU over the regions in order, or mean
    normalise_input: bool = True  # unit length before the graph convolutions
    batch_norm: bool = False  # normalise the fused row over the batch
    compat: Literal["none", "region-axis"] = "none"  # region-axis: unit length over the regions, as published

    @property
    def summary(self) -> str:
        return f"{self.regions} × {self.feature_width} region features, {self.layers} graph convolutions"


class GraphConvolution(nn.Module):
    """Each region takes from the others as much as it is related to them: v + BN(W R g(v)).

    R = θ(v)ᵀ φ(v) / N, without a soft-max. A new layer is the identity: its batch norm begins with scale 0.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.g = nn.Conv1d(width, width, 1)
        norm = nn.BatchNorm1d(width)
        nn.init.zeros_(norm.weight)
        nn.init.zeros_(norm.bias)
        self.W = nn.Sequential(nn.Conv1d(width, width, 1), norm)
        self.theta = nn.Conv1d(width, width, 1)
        self.phi = nn.Conv1d(width, width, 1)

    def forward(self, regions: Tensor) -> Tensor:
        """(n, width, N) → (n, width, N)."""
        related = self.theta(regions).transpose(1, 2) @ self.phi(regions) / regions.shape[2]
        gathered = self.g(regions) @ related.transpose(1, 2)
        mixed: Tensor = self.W(gathered)
        return mixed + regions


class RegionHead(nn.Module):
    """Region features to one row, under the names of the published weights."""

    def __init__(self, config: RegionTowerConfig, width: int) -> None:
        super().__init__()
        self.config = config
        self.fc = nn.Linear(config.feature_width, width)
        start_uniform(self.fc)
        for number in range(1, config.layers + 1):
            self.add_module(f"Rs_GCN_{number}", GraphConvolution(width))
        if config.fusion == "gru":
            self.img_rnn = nn.GRU(width, width, batch_first=True)
        self.bn: nn.Module = nn.BatchNorm1d(width) if config.batch_norm else nn.Identity()

    def related(self, regions: Tensor) -> Tensor:
        """(n, N, feature_width) → (n, N, width) related regions of unit length."""
        axis = 1 if self.config.compat == "region-axis" else 2
        values = self.fc(regions)
        if self.config.normalise_input:
            values = nn.functional.normalize(values, dim=axis, eps=1e-12)
        values = values.transpose(1, 2)
        for number in range(1, self.config.layers + 1):
            values = self.get_submodule(f"Rs_GCN_{number}")(values)
        return nn.functional.normalize(values.transpose(1, 2), dim=axis, eps=1e-12)

    def forward(self, regions: Tensor) -> Tensor:
        """(n, N, feature_width) → (n, width)."""
        values = self.related(regions)
        rows: Tensor = self.bn(
            self.img_rnn(values)[1][0] if self.config.fusion == "gru" else values.mean(dim=1)
        )
        return rows


class RegionTower(Tower):
    """Region features to unit rows; ``backbone`` is empty: the detector is not part of the model."""

    takes: ClassVar[Literal["pictures", "regions"]] = "regions"

    def __init__(self, config: RegionTowerConfig, width: int, load_weights: bool = True, **ends: Any) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.backbone = nn.Module()
        self.feature_width = config.feature_width
        self.head = RegionHead(config, self.base)

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        return as_regions(item, position, self.config.regions, self.config.feature_width)

    def describe(self) -> dict[str, Any]:
        return {
            "takes": self.takes,
            "regions": self.config.regions,
            "feature_width": self.config.feature_width,
            "compat": self.config.compat,
        }

    def features(self, regions: Tensor) -> Tensor:
        """Return the regions as they are: what the detector computed is what is frozen."""
        return regions

    def project(self, features: Tensor) -> Tensor:
        """(n, regions, feature_width) → (n, width) unit rows."""
        return self.finish(self.head(features))

    def forward(self, regions: Tensor) -> Tensor:
        return self.project(regions)
