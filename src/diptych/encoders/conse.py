"""ConSE: a dual encoder without any training on pairs: the sentence encoder's rows of the T most probable class names::

    f(x) = Σ_{t ≤ T} p(ŷ_t | x) s(ŷ_t) / Σ_{t ≤ T} p(ŷ_t | x),    p = softmax(logits / τ)

Source: Norouzi et al., Zero-Shot Learning by Convex Combination of Semantic Embeddings, ICLR 2014. There
τ = 1, T = 10 did best, and s are word vectors of the names; the defaults here were chosen on validation splits.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from pydantic import Field

from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from diptych.core.files import write_json, write_text
from diptych.core.fingerprint import fingerprint
from diptych.core.options import Options
from diptych.core.reading import read_json, read_text
from diptych.encoders.dual_encoder import DualEncoder, Positions, unit_rows
from diptych.encoders.hub import saved_settings
from diptych.encoders.image_tower import timm_network
from diptych.encoders.inputs import (
    check_texts,
    load_fitting,
    pick_device,
    save_tensors,
    split_picture,
    weights_fingerprint,
)
from diptych.encoders.preprocessing import Preprocessing
from diptych.encoders.targets.contract import TargetHeader, TargetModel, TargetOptions, open_target_model
from diptych.encoders.targets.kinds.sentence import SentenceEncoder

CONSE_FILE = "conse.json"
DEFINITIONS = "-definitions"  # behind the name of a set of classes: WordNet's definition after each name


class ConseConfig(Options):
    """Content of ``conse.json``; paths are from its folder."""

    network: str  # a timm model name (timm.list_models())
    network_options: dict[str, Any] = Field(default_factory=dict)  # for timm.create_model
    weights: str | None = None  # a safetensors file of the state dict, classifier included; None: timm's
    preprocessing: Preprocessing | None = None  # None: as timm describes the network
    names: str = f"imagenet-1k{DEFINITIONS}"  # see :func:`class_texts`
    template: str = "{name}"  # what is made of a name before the sentence encoder reads it
    sentences: str = TargetOptions().model  # a sentence-transformers folder or name
    top: int = Field(10, ge=1)  # T, classes per image
    temperature: float = Field(1.5, gt=0, allow_inf_nan=False)  # τ of the soft-max


def _network(config: ConseConfig, folder: Path) -> torch.nn.Module:
    weights, options = config.weights, config.network_options
    network: torch.nn.Module = timm_network(config.network, options, weights is None, "weights in conse.json")
    if weights is not None:
        fix = "check weights, network and network_options; the weights have to include the classifier"
        load_fitting(network, folder / Path(weights).expanduser(), "the network", fix)
    return network


def _preprocessing_of_timm(network: torch.nn.Module, name: str) -> Preprocessing:
    from timm.data import resolve_data_config

    config = resolve_data_config({}, model=network)
    _, height, width = config["input_size"]
    interpolation, crop = config["interpolation"], config["crop_mode"]
    if height != width or crop != "center" or interpolation not in ("bilinear", "bicubic"):
        raise UsageError(
            f"timm prepares images for {name} by {interpolation} interpolation and a "
            f"{crop} crop of {height} × {width} pixels",
            "set preprocessing with size, resize, interpolation, mean and std",
        )
    resize = math.floor(height / config["crop_pct"])
    return Preprocessing(
        size=height, resize=resize, interpolation=interpolation, mean=config["mean"], std=config["std"]
    )


_PLACE = "{name}"


def class_texts(names: str, folder: Path, template: str = _PLACE) -> list[str]:
    """Return one text per class, in the order of the network's outputs: of a file with one per line, or timm's."""
    if _PLACE not in template:
        raise UsageError(f"template {template!r} has no place for a name", f"e.g. 'a photo of a {_PLACE}'")
    file = folder / names
    if not file.is_file():
        found = _of_timm(names, file)
    else:
        found = [
            line.strip() for line in read_text(file, fix="give one name per line, in UTF-8").splitlines()
        ]
        if not found or "" in found:
            where = f"has nothing in line {1 + found.index('')}" if found else "is empty"
            raise StorageError(f"{file} {where}", "one name per line, in the order of the network's outputs")
    return [template.replace(_PLACE, name).strip() for name in found]


def _of_timm(names: str, file: Path) -> list[str]:
    from timm.data import ImageNetInfo

    chosen = names.removesuffix(DEFINITIONS)
    try:
        classes = ImageNetInfo(chosen)
    except (AssertionError, KeyError):
        raise UsageError(
            f"names {names!r} are neither a set of classes that timm knows nor a file ({file})",
            f"imagenet-1k{DEFINITIONS}, imagenet-1k, imagenet-21k, or a file with one name per line",
        ) from None
    detailed = names != chosen
    return [classes.index_to_description(row, detailed=detailed) for row in range(classes.num_classes())]


def convex_combination(logits: np.ndarray, rows: np.ndarray, top: int, temperature: float) -> np.ndarray:
    """Map (n, classes) logits and (classes, d) rows → (n, d), of any length; of equally probable classes the first."""
    exact = np.asarray(logits, dtype=np.float64) / temperature
    chosen = np.argsort(-exact, axis=1, kind="stable")[:, :top]
    values = np.take_along_axis(exact, chosen, axis=1)
    weights = np.exp(values - values[:, :1])
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(np.einsum("nt,ntd->nd", weights, rows[chosen].astype(np.float64)))


class ConseEncoder(DualEncoder):
    family: ClassVar[str] = "conse"

    def __init__(
        self,
        network: torch.nn.Module,
        config: ConseConfig,
        texts: Sequence[str],
        sentences: TargetModel,
        name: str = "conse",
    ) -> None:
        self.network = network.eval().requires_grad_(False).to(memory_format=torch.channels_last)
        self.config = config
        self.preprocessing = config.preprocessing or _preprocessing_of_timm(network, config.network)
        size = self.preprocessing.size
        classes = self._logits(np.zeros((1, 3, size, size), dtype=np.float32)).shape[1]
        if len(texts) != classes:
            raise MismatchError(
                f"{config.network} has {classes:,} outputs, there are {len(texts):,} names",
                "give one name per output, in their order (a background class has one too)",
            )
        if config.top > classes:
            raise UsageError(f"top {config.top} of {classes} classes", "take at most as many as there are")
        self.texts: list[str] = list(texts)
        self.sentences = sentences
        self.name = name

    @torch.inference_mode()
    def _logits(self, pictures: np.ndarray) -> np.ndarray:
        device = next(self.network.parameters()).device
        inputs = torch.from_numpy(pictures).to(device, memory_format=torch.channels_last)
        return np.asarray(self.network(inputs).float().cpu().numpy())

    @cached_property
    def class_rows(self) -> np.ndarray:
        """Return (classes, d) float32 unit rows of the class names."""
        return self.sentences.encode(self.texts)

    @property
    def width(self) -> int:
        return self.sentences.width

    @property
    def prepares(self) -> bool:
        return True

    def prepared(self, item: Any, position: int | str) -> np.ndarray:
        return self.preprocessing(*split_picture(item, position))

    def encode_prepared(self, prepared: Sequence[Any], positions: Positions) -> np.ndarray:
        logits = self._logits(np.stack(prepared))
        bad = np.flatnonzero(~np.isfinite(logits).all(axis=1))
        if len(bad):
            raise NumericalError(
                f"the classifier's outputs for image {positions[int(bad[0])]} are not finite",
                "its weights are corrupt, or made for another network or preprocessing",
            )
        rows = convex_combination(logits, self.class_rows, self.config.top, self.config.temperature)
        return unit_rows(rows, "image", positions)

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        return self.sentences.encode(check_texts(texts), batch_size)

    @cached_property
    def _network_fingerprint(self) -> str:
        return fingerprint(
            [self.config.network, self.config.network_options],
            self.preprocessing.model_dump(mode="json"),
            weights_fingerprint(self.network.state_dict()),
        )

    @cached_property
    def fingerprint(self) -> str:
        sentences, options = self.sentences.fingerprint, (self.config.top, self.config.temperature)
        return fingerprint(self.family, self._network_fingerprint, self.texts, sentences, *options)

    def _about(self) -> dict[str, Any]:
        return {
            "image": {
                **self.config.model_dump(include={"network", "network_options", "top"}),
                "network_fingerprint": self._network_fingerprint,
                **self.preprocessing.model_dump(mode="json"),
                "classes": len(self.texts),
                "names": f"{self.texts[0]!r}, …",
                "names_fingerprint": fingerprint(self.texts),
                "softmax_temperature": self.config.temperature,
            },
            "text": self.sentences.describe(),
            "activation": "soft-max over the classes, then the mean of their names' rows",
            "normalisation": "unit length, eps 1e-12",
            "temperature": None,
        }

    def _settings(self) -> dict[str, Any]:
        return {"name": self.name}

    def _write(self, folder: Path) -> None:
        save_tensors(self.network.state_dict(), folder / "model.safetensors")
        write_text(folder / "names.txt", "\n".join(self.texts) + "\n")
        self.sentences.save(folder / "sentences")
        files = {"weights": "model.safetensors", "names": "names.txt", "sentences": "sentences"}
        effective = {"template": _PLACE, "preprocessing": self.preprocessing}
        config = self.config.model_copy(update={**files, **effective})
        write_json(folder / CONSE_FILE, config.model_dump(mode="json"))

    @classmethod
    def open(cls, folder: Path | str, device: str | None = None) -> Self:
        """Load a folder with a ``conse.json``, written by hand or by ``save``."""
        folder = Path(folder).expanduser()
        file = Path(folder) / CONSE_FILE
        config = ConseConfig.read(read_json(file), str(file), StorageError)
        texts = class_texts(config.names, folder, config.template)
        inside = folder / Path(config.sentences).expanduser()
        if TargetHeader.is_at(inside):
            sentences = open_target_model(inside)
        else:
            source = str(inside) if inside.is_dir() else config.sentences
            sentences = SentenceEncoder.load(source, device=device)
        name = saved_settings(folder)["name"]
        return cls(_network(config, folder).to(pick_device(device)), config, texts, sentences, name)
