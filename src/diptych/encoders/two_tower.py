"""The dual encoder this package trains: an image tower and a caption tower with one output space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from pydantic import BeforeValidator, Field
from torch import nn

from diptych.core.errors import MismatchError, StorageError
from diptych.core.files import write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.core.reading import opening, read_json
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_tower import (
    BagTower,
    BagTowerConfig,
    CaptionTower,
    CaptionTowerConfig,
    TargetTower,
    TargetTowerConfig,
)
from diptych.encoders.dual_encoder import EncoderHeader, Positions, Towers, TrainableEncoder, unit_rows
from diptych.encoders.image_tower import ImageTower, ImageTowerConfig, RegionTower, RegionTowerConfig
from diptych.encoders.inputs import (
    check_texts,
    load_tensors,
    pick_device,
    save_tensors,
    take_weights,
    weights_fingerprint,
)
from diptych.encoders.official.checkpoint import read_checkpoint
from diptych.encoders.targets.contract import TargetModel, open_target_model
from diptych.encoders.tower import ProjectionConfig, choose_kind

# What turns a caption into numbers: the words a GRU or bag tower knows, or a target tower's model.
CaptionSource: TypeAlias = Vocabulary | TargetModel


class ModelConfig(Options):
    """Options of a two-tower model.

    ``similarity = "order"``: rows without signs, scored by order violation (Vendrov et al., Order-Embeddings of Images
    and Language, ICLR 2016); ``order-root`` trains on its root, as VSE++'s published code does, and ranks alike.
    """

    width: int = Field(1024, ge=2)  # d, the length of a row in the shared space
    image: Annotated[
        ImageTowerConfig | RegionTowerConfig,
        BeforeValidator(choose_kind(ImageTowerConfig, RegionTowerConfig)),
    ] = ImageTowerConfig()
    text: Annotated[
        CaptionTowerConfig | TargetTowerConfig | BagTowerConfig,
        BeforeValidator(choose_kind(CaptionTowerConfig, TargetTowerConfig, BagTowerConfig)),
    ] = CaptionTowerConfig()
    projection: ProjectionConfig | None = None  # a non-linear projection on both towers; none when not given
    similarity: Literal["cosine", "order", "order-root"] = "cosine"  # how two rows make a score


class TwoTowerModel(nn.Module):
    """Both towers as one module; without ``images`` only the caption tower."""

    def __init__(
        self, config: ModelConfig, source: CaptionSource, load_weights: bool = True, images: bool = True
    ) -> None:
        super().__init__()
        self.config = config
        if isinstance(source, Vocabulary) == isinstance(config.text, TargetTowerConfig):
            raise MismatchError(
                f"a text tower of kind {config.text.kind} got a {type(source).__name__}",
                "a tower of targets takes what make_target_model makes, the others a Vocabulary",
            )
        ends: Any = {"projection": config.projection, "absolute": config.similarity != "cosine"}
        kinds: Any = {"pictures": ImageTower, "regions": RegionTower}
        texts: Any = {"gru": CaptionTower, "bag": BagTower, "targets": TargetTower}
        if images:
            self.image: ImageTower | RegionTower = kinds[config.image.kind](
                config.image, config.width, load_weights, **ends
            )
        self.text: CaptionTower | TargetTower | BagTower = texts[config.text.kind](
            config.text, config.width, source, load_weights, **ends
        )


# Keys that change no row, or whose effect the fingerprint takes from elsewhere.
_NO_EFFECT: Any = {
    "image": {"kind", "weights", "pretrained", "dropout", "bias", "batch_norm"},
    "text": {"kind", "word_vectors", "word_vector_scale", "dropout", "bias", "batch_norm", "targets"},
    "projection": True,
    "similarity": True,
}
_AGAIN = "copy it again, or train it again"
_FEATURES = 4096  # that are projected together


class TwoTowerEncoder(TrainableEncoder):
    """A trained two-tower model with its preprocessing and what makes numbers of captions."""

    family: ClassVar[str] = "two_tower"

    def __init__(
        self,
        model: TwoTowerModel,
        source: CaptionSource,
        name: str = "two_tower",
        temperature: float | None = None,
    ) -> None:
        self.model, self.source = model, source
        self.name, self.temperature = name, temperature
        self._stored_fingerprint = ""  # of one whose image tower was not loaded

    @classmethod
    def load_published(
        cls, path: Path | str | Mapping[str, Any], vocabulary: Vocabulary | None = None, **options: Any
    ) -> TwoTowerEncoder:
        """Load both encoders of a checkpoint of VSE++ or VSRN: ``model`` is a list of image and caption encoder.

        Layout, source, ``vocabulary`` and ``options`` are those of the towers' ``load_published``; without a
        vocabulary captions are refused. An option that both towers have is the image tower's.
        """
        weights = read_checkpoint(path, 0)
        images = any(name.startswith("cnn.") for name in weights.state)
        tower, known = (ImageTower, ImageTowerConfig) if images else (RegionTower, RegionTowerConfig)
        of_text = (options.keys() & CaptionTowerConfig.model_fields.keys()) - known.model_fields.keys()
        text = CaptionTower.load_published(path, vocabulary, **{key: options.pop(key) for key in of_text})
        image: Any = tower.load_published(path, **options)
        if image.base != text.base:
            raise MismatchError(
                f"{weights.name}: images have rows of width {image.base}, captions of width {text.base}",
                "give the file of one model that holds both",
            )
        config = ModelConfig(width=text.base, image=image.config, text=text.config)
        model = TwoTowerModel(config, text.vocabulary, load_weights=False, images=False)
        model.image, model.text = image, text
        return cls(model.float().eval(), text.vocabulary)

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    @property
    def width(self) -> int:
        return self.model.config.width

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        return self.model.image.takes

    @property
    def similarity(self) -> Literal["cosine", "order"]:
        # The root of a violation ranks as the violation itself: only training tells them apart.
        return "cosine" if self.model.config.similarity == "cosine" else "order"

    def to(self, device: torch.device) -> None:
        self.model.to(memory_format=torch.channels_last)
        self.model.to(device)

    @property
    def towers(self) -> Towers:
        return Towers(self.model.image, self.model.text)

    @property
    def scoring(self) -> Literal["cosine", "order", "order-root"]:
        return self.model.config.similarity

    @property
    def learned_options(self) -> dict[str, float]:
        return {} if self.temperature is None else {"temperature": self.temperature}

    def as_trained(self, name: str, temperature: float | None, bias: float | None = None) -> TwoTowerEncoder:
        return TwoTowerEncoder(self.model, self.source, name, temperature)

    @property
    def prepares(self) -> bool:
        return True

    def prepared(self, item: Any, position: int | str) -> np.ndarray:
        return self.model.image.prepare(item, position)

    @torch.inference_mode()
    def encode_prepared(self, prepared: Sequence[Any], positions: Positions) -> np.ndarray:
        self.model.eval()
        arrays = np.stack(prepared)
        layout = torch.channels_last if arrays.ndim == 4 else torch.contiguous_format
        inputs = torch.from_numpy(arrays).to(self.device, memory_format=layout)
        return unit_rows(self.model.image(inputs).float().cpu().numpy(), "image", positions)

    @torch.inference_mode()
    def project_features(self, features: np.ndarray) -> np.ndarray:
        """Map (n, feature_width) cached backbone features → (n, d) float32 unit rows."""
        self.model.eval()
        blocks = []
        for start in range(0, len(features), _FEATURES):
            part = torch.from_numpy(np.array(features[start : start + _FEATURES], dtype=np.float32))
            rows = self.model.image.project(part.to(self.device)).float().cpu().numpy()
            blocks.append(unit_rows(rows, "image", np.arange(start, start + len(part))))
        return np.concatenate(blocks) if blocks else np.empty((0, self.width), dtype=np.float32)

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        self.model.eval()
        texts = check_texts(texts)
        inputs = self.model.text.inputs(texts)
        rows = np.empty((len(texts), self.width), dtype=np.float32)
        order = np.argsort(inputs.lengths, kind="stable")
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            first, second = inputs.batch(part)
            encoded = self.model.text(first.to(self.device), second).float().cpu().numpy()
            rows[part] = unit_rows(encoded, "text", part)
        return rows

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        if isinstance(self.model.text, CaptionTower):
            return self.model.text.with_endings(texts, endings)
        return super().with_endings(texts, endings)

    @property
    def fingerprint(self) -> str:
        """Return the name by content, computed anew each time, for weights in training change."""
        return self._stored_fingerprint or self._fingerprint_of(self.model.state_dict())

    def _fingerprint_of(self, weights: dict[str, torch.Tensor]) -> str:
        config = self.model.config.model_dump(mode="json", exclude=_NO_EFFECT)
        if config["image"].get("grid", ...) is None:
            del config["image"]["grid"]  # encoders from before there were grids keep their names
        source = self.source
        content = list(source.entries) if isinstance(source, Vocabulary) else source.fingerprint
        more = [self.similarity] if self.similarity != "cosine" else []
        return fingerprint(weights_fingerprint(weights), config, content, *more)

    def _about(self) -> dict[str, Any]:
        return {
            "image": self.model.image.describe(),
            "text": self.model.text.describe(),
            "activation": "none",
            "normalisation": "unit length, eps 1e-12",
            "similarity": self.similarity,
            "temperature": self.temperature,
        }

    def _settings(self) -> dict[str, Any]:
        return {"name": self.name, "temperature": self.temperature}

    def _write(self, folder: Path) -> None:
        save_tensors(self.model.state_dict(), folder / "model.safetensors")
        write_json(folder / "model.json", self.model.config.model_dump(mode="json"))
        if isinstance(self.source, Vocabulary):
            self.source.save(folder / "vocabulary.json")
        else:
            self.source.save(folder / "targets")

    @classmethod
    @opening(_AGAIN)
    def open(cls, folder: Path | str, device: str | None = None, images: bool = True) -> TwoTowerEncoder:
        """Load what ``save`` wrote; without ``images`` only what :meth:`encode_texts` needs."""
        folder = Path(folder)
        settings = EncoderHeader.open(folder).settings
        file = folder / "model.json"
        config = ModelConfig.read(read_json(file), str(file), StorageError, _AGAIN)
        source: CaptionSource
        if isinstance(config.text, TargetTowerConfig):
            source = open_target_model(folder / "targets")
        else:
            source = Vocabulary.load(folder / "vocabulary.json")
        model = TwoTowerModel(config, source, load_weights=False, images=images)
        weights = load_tensors(folder / "model.safetensors", _AGAIN)
        kept = weights if images else {key: weights[key] for key in model.state_dict() if key in weights}
        take_weights(model, kept, f"{folder} is corrupt or of another version", _AGAIN)
        encoder = cls(model.eval(), source, **settings)
        encoder.to(pick_device(device))
        if not images:
            encoder._stored_fingerprint = encoder._fingerprint_of(weights)
        return encoder
