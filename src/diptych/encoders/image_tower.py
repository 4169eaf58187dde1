"""Image towers: any timm backbone, frozen or fine-tuned, with VSE++'s projection; VSRN's over regions; stored features.

    backbone → pooled features f → [f / ‖f‖] → head → [projection] → unit length

    regions → fc → [unit length] → graph convolutions → unit length → GRU's last state → [batch norm]
            → [projection] → unit length

VSRN's caption generator, a second training signal, is not part of the region tower.

Sources: Faghri et al., VSE++: Improving Visual-Semantic Embeddings with Hard Negatives, BMVC 2018; Li et al., Visual
Semantic Reasoning for Image-Text Matching, ICCV 2019.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from diptych.core.errors import RecipeError, UnknownNameError
from diptych.core.options import Options
from diptych.core.reading import file_errors
from diptych.encoders.hub import hub_within_reach, loading
from diptych.encoders.inputs import as_regions, load_fitting, split_picture
from diptych.encoders.official.checkpoint import read_checkpoint
from diptych.encoders.preprocessing import Augmentation, Preprocessing
from diptych.encoders.tower import Tower, make_head, start_uniform, unit_rows


class ImageTowerConfig(Options):
    """Options of an image tower."""

    kind: Literal["pictures"] = "pictures"  # a timm backbone over pixels
    backbone: str = "resnet50"  # a timm model name (timm.list_models())
    # for timm.create_model, {pad_type = "same"}
    backbone_options: dict[str, Any] = Field(default_factory=dict)
    pretrained: bool = False  # let timm fetch its pretrained weights from the hub
    weights: str | None = None  # a safetensors file of the backbone's own state dict, instead of the hub
    grid: tuple[int, int] | None = None  # cells of the last map whose means, end to end, replace the pooling
    preprocessing: Preprocessing = Preprocessing()  # what the backbone sees
    normalise_features: bool = True  # divide the pooled features by their length before the head (VSE++)
    hidden: int | None = None  # width of the MLP head's hidden layer; a linear head when not given
    dropout: float = Field(0.0, ge=0, lt=1)  # before each linear layer of the head
    bias: bool = True  # whether the head's layers have one
    batch_norm: bool = False  # normalise the head's output over the batch, before unit length
    freeze_batch_norm: bool = False  # keep the backbone's statistics even when it is trained
    # batch-statistics: a frozen backbone in training mode, as in VSE++'s code, so that its running statistics drift
    compat: Literal["none", "batch-statistics"] = "none"


class ImageTower(Tower):
    takes: ClassVar[Literal["pictures", "regions"]] = "pictures"

    @classmethod
    def load_published(
        cls, path: Path | str | Mapping[str, Any], backbone: str = "resnet152", **options: Any
    ) -> Self:
        """Load the image encoder of a checkpoint of VSE++ that was trained on images.

        Layout: a ResNet of torchvision under ``cnn.module.`` (or ``cnn.``) and the projection ``fc``; in a file of both
        encoders the first of ``model``, read with ``weights_only=True``. ``backbone`` is timm's name of the network.
        One that was trained on features is a :class:`RegionTower`.

        Source: github.com/fartashf/vsepp.
        """
        weights = read_checkpoint(path, 0)
        config = {"bias": "fc.bias" in weights, "preprocessing": Preprocessing(interpolation="bilinear")}
        config |= {"backbone": backbone, **options}
        made = ImageTowerConfig.read(config, "ImageTower.load_published")
        tower = cls(made, weights.shape("fc.weight", 2)[0], load_weights=False)
        names = {"cnn.module.": "backbone.", "cnn.": "backbone.", "fc.": "head.1.", "": ""}
        return tower.take_published(weights, names)

    def __init__(self, config: ImageTowerConfig, width: int, load_weights: bool = True, **ends: Any) -> None:
        super().__init__(width, **ends)
        self.config = config
        pretrained = config.pretrained and config.weights is None and load_weights
        fix = "model.image.weights, as an image option weights=FILE"
        self.backbone: nn.Module = timm_network(
            config.backbone, config.backbone_options, pretrained, fix, num_classes=0
        )
        if config.weights is not None and load_weights:
            load_fitting(
                self.backbone,
                Path(config.weights),
                "the backbone",
                "check model.image.weights, backbone and backbone_options in the recipe",
                ignore=("classifier.", "fc.", "head."),
            )
        hidden = getattr(self.backbone, "head_hidden_size", None)
        self.feature_width: int = int(hidden or self.backbone.num_features)
        if config.grid is not None:
            self.feature_width = _map_channels(self.backbone, config) * config.grid[0] * config.grid[1]
        self.head: nn.Sequential = make_head(
            self.feature_width, self.base, config.hidden, config.dropout, config.bias, config.batch_norm
        )

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        return self.config.preprocessing(*split_picture(item, position))

    def augmented(
        self, item: Any, position: int, augmentation: Augmentation, random: np.random.Generator
    ) -> np.ndarray:
        """Return a random view, an overlay pasted last, whole."""
        picture, overlay = split_picture(item, position)
        return self.config.preprocessing.augmented(picture, augmentation, random, overlay)

    def describe(self) -> dict[str, Any]:
        return {"backbone": self.config.backbone, **self.config.preprocessing.model_dump(mode="json")}

    def features(self, pictures: Tensor) -> Tensor:
        """Map (n, 3, size, size) → (n, feature_width) pooled features, before normalisation."""
        if self.config.grid is None:
            return self.backbone(pictures)  # type: ignore[no-any-return]
        backbone: Any = self.backbone
        cells = nn.functional.adaptive_avg_pool2d(backbone.forward_features(pictures), self.config.grid)
        return cells.flatten(1)

    def project(self, features: Tensor) -> Tensor:
        """Map (n, feature_width) → (n, width) unit rows."""
        if self.config.normalise_features:
            features = unit_rows(features)
        return self.finish(self.head(features))

    def forward(self, pictures: Tensor) -> Tensor:
        return self.project(self.features(pictures))

    def train(self, mode: bool = True) -> Self:
        """Set the mode of what is trained; a frozen backbone stays in evaluation mode."""
        super().train(mode)
        frozen = not any(parameter.requires_grad for parameter in self.backbone.parameters())
        if mode and frozen and self.config.compat == "none":
            self.backbone.eval()
        elif mode and self.config.freeze_batch_norm:
            for module in self.backbone.modules():
                if isinstance(module, nn.modules.batchnorm._BatchNorm):
                    module.eval()
        return self


def timm_network(name: str, options: dict[str, Any], pretrained: bool, weights: str, **fixed: Any) -> Any:
    """Make a network of timm; ``weights``: the option by which a file of its weights is given."""
    import timm

    if not timm.is_model(name):
        raise UnknownNameError("timm network", name, timm.list_models(f"{name[:4]}*"))
    fix = f"give options that timm's {name} has"
    with file_errors(f"{name} with the options {options}", RecipeError, fix, noun="possible"):
        if not pretrained:
            return timm.create_model(name, **fixed, **options)
        fix = f"give a safetensors file of its weights ({weights}), or run this once where there is network"
        with loading(f"the network {name}", None, fix), hub_within_reach():
            return timm.create_model(name, pretrained=True, **fixed, **options)


def _map_channels(backbone: Any, config: ImageTowerConfig) -> int:
    side = config.preprocessing.size
    with torch.no_grad():
        shape = tuple(backbone.eval().forward_features(torch.zeros(1, 3, side, side)).shape)
    if len(shape) != 4:
        raise RecipeError(
            f"model.image.grid: {config.backbone} gives features of shape {shape}, not a map",
            "leave grid out, or choose a convolutional backbone",
        )
    return int(shape[1])


class RegionTowerConfig(Options):
    """Options of a region tower; VSE++ on one vector per image: ``regions = 1``, ``layers = 0``, ``fusion = "mean"``.

    The published model for COCO is the default with ``compat = "region-axis"``, the one for Flickr30k
    has also ``normalise_input = false`` and ``batch_norm = true``.
    """

    kind: Literal["regions"] = "regions"  # VSRN over precomputed region features
    regions: int = Field(36, ge=1)  # how many each image has
    feature_width: int = Field(2048, ge=1)  # length of a region's features
    layers: int = Field(4, ge=0)  # graph convolutions
    fusion: Literal["gru", "mean"] = "gru"  # last state of a GRU over the regions in order, or mean
    normalise_input: bool = True  # unit length before the graph convolutions
    batch_norm: bool = False  # normalise the fused row over the batch
    compat: Literal["none", "region-axis"] = "none"  # region-axis: unit length over the regions, as published


class GraphConvolution(nn.Module):
    """Each region takes from the others as much as it is related to them: v + BN(W R g(v)).

    R = θ(v)ᵀ φ(v) / N, without a soft-max. A new layer is the identity: its batch norm begins with scale 0.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.g: nn.Conv1d = nn.Conv1d(width, width, 1)
        norm = nn.BatchNorm1d(width)
        nn.init.zeros_(norm.weight)
        nn.init.zeros_(norm.bias)
        self.W = nn.Sequential(nn.Conv1d(width, width, 1), norm)
        self.theta: nn.Conv1d = nn.Conv1d(width, width, 1)
        self.phi: nn.Conv1d = nn.Conv1d(width, width, 1)

    def forward(self, regions: Tensor) -> Tensor:
        related = self.theta(regions).transpose(1, 2) @ self.phi(regions) / regions.shape[2]
        gathered = self.g(regions) @ related.transpose(1, 2)
        mixed: Tensor = self.W(gathered)
        return mixed + regions


class RegionHead(nn.Module):
    """Region features to one row, under the names of the published weights."""

    def __init__(self, config: RegionTowerConfig, width: int) -> None:
        super().__init__()
        self.config = config
        self.fc: nn.Linear = nn.Linear(config.feature_width, width)
        start_uniform(self.fc)
        for number in range(1, config.layers + 1):
            self.add_module(f"Rs_GCN_{number}", GraphConvolution(width))
        if config.fusion == "gru":
            self.img_rnn: nn.GRU = nn.GRU(width, width, batch_first=True)
        self.bn: nn.Module = nn.BatchNorm1d(width) if config.batch_norm else nn.Identity()

    def related(self, regions: Tensor) -> Tensor:
        """Map (n, N, feature_width) → (n, N, width) related regions of unit length."""
        axis = 1 if self.config.compat == "region-axis" else 2
        values = self.fc(regions)
        if self.config.normalise_input:
            values = nn.functional.normalize(values, dim=axis, eps=1e-12)
        values = values.transpose(1, 2)
        for number in range(1, self.config.layers + 1):
            values = self.get_submodule(f"Rs_GCN_{number}")(values)
        return nn.functional.normalize(values.transpose(1, 2), dim=axis, eps=1e-12)

    def forward(self, regions: Tensor) -> Tensor:
        """Map (n, N, feature_width) → (n, width)."""
        values = self.related(regions)
        fused = self.img_rnn(values)[1][0] if self.config.fusion == "gru" else values.mean(dim=1)
        rows: Tensor = self.bn(fused)
        return rows


class RegionTower(Tower):
    """Region features to unit rows; ``backbone`` is empty: the detector is not part of the model."""

    takes: ClassVar[Literal["pictures", "regions"]] = "regions"

    @classmethod
    def load_published(cls, path: Path | str | Mapping[str, Any], **options: Any) -> Self:
        """Load the image encoder of a checkpoint of VSRN, or of VSE++ that was trained on features.

        Layout: the projection ``fc``, of VSRN graph convolutions ``Rs_GCN_1`` to ``Rs_GCN_4``, a GRU ``img_rnn`` and,
        for Flickr30k, ``bn``; in a file of both encoders the first of ``model``, read with ``weights_only=True``.
        ``options`` are those that no shape determines, such as ``regions``.

        Source: github.com/KunpengLi1994/VSRN, github.com/fartashf/vsepp.
        """
        weights = read_checkpoint(path, 0)
        width, feature_width = weights.shape("fc.weight", 2)
        relates, norm = "img_rnn.weight_hh_l0" in weights, "bn.weight" in weights
        config = {
            "regions": 36 if relates else 1,
            "feature_width": feature_width,
            "layers": len({name.split(".")[0] for name in weights.state if name.startswith("Rs_GCN_")}),
            "fusion": "gru" if relates else "mean",
            "normalise_input": not norm,
            "batch_norm": norm,
            "compat": "region-axis" if relates else "none",
        }
        made = RegionTowerConfig.read(config | options, "RegionTower.load_published")
        return cls(made, width).take_published(weights, {"": "head."})

    def __init__(self, config: RegionTowerConfig, width: int, load_weights: bool = True, **ends: Any) -> None:
        super().__init__(width, **ends)
        self.config = config
        self.backbone: nn.Module = nn.Module()
        self.feature_width: int = config.feature_width
        self.head: RegionHead = RegionHead(config, self.base)

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        return as_regions(item, position, self.config.regions, self.config.feature_width)

    def describe(self) -> dict[str, Any]:
        return {"takes": self.takes} | self.config.model_dump(include={"regions", "feature_width", "compat"})

    def features(self, regions: Tensor) -> Tensor:
        """Return the regions as they are: what the detector computed is what is frozen."""
        return regions

    def project(self, features: Tensor) -> Tensor:
        """Map (n, regions, feature_width) → (n, width) unit rows."""
        return self.finish(self.head(features))

    forward = project
