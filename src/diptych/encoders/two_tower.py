"""The dual encoder this package trains: an image tower and a caption tower with one output space."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import nn

from diptych.core.errors import StorageError
from diptych.core.files import read_json, write_json
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.data.loading import batched
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.caption_tower import CaptionTower, CaptionTowerConfig, pad_tokens
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.image_tower import ImageTower, ImageTowerConfig
from diptych.encoders.inputs import as_picture, check_texts
from diptych.encoders.pretrained import pick_device
from diptych.encoders.rows import unit_rows
from diptych.encoders.tensors import load_tensors, save_tensors

__all__ = ["ModelConfig", "TwoTowerEncoder", "TwoTowerModel"]

logger = logging.getLogger(__name__)


class ModelConfig(BaseModel):
    """What a two-tower model is made of.

    Attributes:
        width: d, the length of a row in the shared space.
        image: the image tower.
        text: the caption tower.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    width: int = Field(1024, ge=2)
    image: ImageTowerConfig = ImageTowerConfig()
    text: CaptionTowerConfig = CaptionTowerConfig()


class TwoTowerModel(nn.Module):
    """Both towers as one module: ``image`` and ``text``.

    Args:
        config: what it is made of.
        vocabulary: of the caption tower.
        load_weights: read backbone weights and word vectors that the config names.
    """

    def __init__(self, config: ModelConfig, vocabulary: Vocabulary, load_weights: bool = True) -> None:
        super().__init__()
        self.config = config
        self.image = ImageTower(config.image, config.width, load_weights)
        self.text = CaptionTower(config.text, config.width, vocabulary, load_weights)


class TwoTowerEncoder(DualEncoder):
    """A trained two-tower model with its vocabulary and preprocessing.

    Args:
        model: the towers.
        vocabulary: whose ids the caption tower takes.
        name: what reports call it.
        temperature: the one it was trained with, where there was one.
    """

    family: ClassVar[str] = "two_tower"

    def __init__(
        self,
        model: TwoTowerModel,
        vocabulary: Vocabulary,
        name: str = "two_tower",
        temperature: float | None = None,
    ) -> None:
        self.model = model
        self.vocabulary = vocabulary
        self.name = name
        self.temperature = temperature

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.model.parameters()).device

    @property
    def width(self) -> int:
        """d, the length of one row."""
        return self.model.config.width

    @torch.inference_mode()
    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        """(n, d) float32 unit rows of Pillow pictures or (height, width, 3) uint8 arrays."""
        self.model.eval()
        blocks = []
        done = 0
        preprocessing = self.model.config.image.preprocessing
        for batch in batched(images, batch_size):
            arrays = [preprocessing(as_picture(item, done + place)) for place, item in enumerate(batch)]
            pixels = torch.from_numpy(np.stack(arrays)).to(self.device, memory_format=torch.channels_last)
            rows = self.model.image(pixels).float().cpu().numpy()
            blocks.append(unit_rows(rows, "image", np.arange(done, done + len(batch))))
            done += len(batch)
        return np.concatenate(blocks) if blocks else np.empty((0, self.width), dtype=np.float32)

    @torch.inference_mode()
    def project_features(self, features: np.ndarray, batch_size: int = 4096) -> np.ndarray:
        """(n, feature_width) cached backbone features to (n, d) float32 unit rows."""
        self.model.eval()
        blocks = []
        for start in range(0, len(features), batch_size):
            part = torch.from_numpy(np.array(features[start : start + batch_size], dtype=np.float32))
            rows = self.model.image.project(part.to(self.device)).float().cpu().numpy()
            blocks.append(unit_rows(rows, "image", np.arange(start, start + len(part))))
        return np.concatenate(blocks) if blocks else np.empty((0, self.width), dtype=np.float32)

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        """(n, d) float32 unit rows; captions are read in order of length and put back in place."""
        self.model.eval()
        texts = check_texts(texts)
        limit = self.model.config.text.max_tokens
        flat, starts = self.vocabulary.encode_all(texts, limit)
        lengths = np.diff(starts)
        cut = int(np.count_nonzero(lengths == limit))
        if cut:
            logger.info("%d of %d texts reach or exceed %d tokens", cut, len(texts), limit)
        rows = np.empty((len(texts), self.width), dtype=np.float32)
        order = np.argsort(lengths, kind="stable")
        for start in range(0, len(order), batch_size):
            part = order[start : start + batch_size]
            tokens, sizes = pad_tokens(flat, starts, part)
            encoded = self.model.text(tokens.to(self.device), sizes).float().cpu().numpy()
            rows[part] = unit_rows(encoded, "text", part)
        return rows

    @property
    def fingerprint(self) -> str:
        """Name by content: weights, preprocessing, vocabulary and text cut.

        Computed anew each time, for weights in training change.
        """
        state = {key: value.detach().cpu().numpy() for key, value in self.model.state_dict().items()}
        config = self.model.config.model_dump(
            mode="json",
            exclude={"image": {"weights", "pretrained", "dropout"}, "text": {"word_vectors", "dropout"}},
        )
        return fingerprint(fingerprint_arrays(state), config, list(self.vocabulary.entries))

    def describe(self) -> dict[str, Any]:
        """What has to be printed beside every number this encoder produced."""
        config = self.model.config
        return {
            "family": self.family,
            "name": self.name,
            "width": self.width,
            "image": {
                "backbone": config.image.backbone,
                **config.image.preprocessing.model_dump(mode="json"),
            },
            "text": {"limit": config.text.max_tokens, "words": len(self.vocabulary), "cut": "end"},
            "activation": "none",
            "normalisation": "unit length, eps 1e-12",
            "temperature": self.temperature,
            "fingerprint": self.fingerprint,
        }

    def _settings(self) -> dict[str, Any]:
        return {"name": self.name, "temperature": self.temperature}

    def _write(self, folder: Path) -> None:
        save_tensors(self.model.state_dict(), folder / "model.safetensors")
        write_json(folder / "model.json", self.model.config.model_dump(mode="json"))
        self.vocabulary.save(folder / "vocabulary.json")

    @classmethod
    def open(cls, folder: Path | str, device: str | None = None) -> TwoTowerEncoder:
        """Load what ``save`` wrote.

        Raises:
            StorageError: a file is missing, damaged or of another version.
        """
        folder = Path(folder)
        settings = read_json(folder / "diptych.json").get("settings", {})
        try:
            config = ModelConfig.model_validate(read_json(folder / "model.json"))
            vocabulary = Vocabulary.load(folder / "vocabulary.json")
            model = TwoTowerModel(config, vocabulary, load_weights=False)
            model.load_state_dict(load_tensors(folder / "model.safetensors", "train it again"))
        except (ValidationError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise StorageError(
                f"{folder} is damaged or of another version: {reason}", "train it again"
            ) from None
        model.to(pick_device(device))
        model.to(memory_format=torch.channels_last)
        model.eval()
        return cls(model, vocabulary, **settings)
