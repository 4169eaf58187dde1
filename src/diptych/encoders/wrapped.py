"""Encoders made of functions or modules that were written in Python: evaluated, indexed and trained like any other."""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from diptych.core.errors import MismatchError, UsageError
from diptych.core.fingerprint import fingerprint, fingerprint_arrays
from diptych.encoders.dual_encoder import CONFIG_FILE, EncoderHeader, Towers, TrainableEncoder, unit_rows
from diptych.encoders.inputs import (
    as_picture,
    check_texts,
    load_tensors,
    pick_device,
    save_tensors,
    weights_fingerprint,
)
from diptych.encoders.tower import Batch, CaptionInputs, Endings
from diptych.encoders.tower import unit_rows as unit_tensors
from diptych.objectives.declaration import name_of

_SENTENCES = (
    "a red square",
    "Two dogs, one of them brown, play in the snow!",
    "un café à côté de l’église, 2 chiens; два пса; 雪の中の二匹の犬",
    " ".join(f"word{number}" for number in range(200)),
)
_SIZES = ((64, 64), (40, 96), (120, 48))  # pixels across and down of the images of a fingerprint


def _gradient(width: int, height: int) -> Image.Image:
    down, across = np.mgrid[0 : 255 : height * 1j, 0 : 255 : width * 1j]
    return Image.fromarray(np.stack([across, down, (across * down) % 251], axis=2).astype(np.uint8))


class _Captions(CaptionInputs):
    """Captions that are tokenised a batch at a time."""

    wordless: ClassVar[tuple[str, str]] = (
        "a tokenizer of your own knows no words",
        "leave caption_augmentation out",
    )

    def __init__(self, texts: Sequence[str], tokenize: Callable[[list[str]], Tensor]) -> None:
        self._texts, self._tokenize = check_texts(texts), tokenize
        self.lengths: np.ndarray = np.ones(len(texts), dtype=np.int64)

    def batch(self, rows: np.ndarray, endings: Endings = None) -> Batch:
        texts = [self._texts[row] for row in rows.tolist()]
        if endings is not None:
            texts = [f"{text} {ending}".strip() for text, ending in zip(texts, endings, strict=True)]
        tokens = self._tokenize(texts)
        return tokens, torch.ones(len(tokens), dtype=torch.int64)


class WrappedImages(nn.Module):
    """The image side as a tower; ``backbone`` is empty: nothing is frozen by default."""

    takes: ClassVar[Literal["pictures", "regions"]] = "pictures"

    def __init__(self, network: nn.Module, preprocess: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.network, self.backbone, self._preprocess = network, nn.Module(), preprocess

    def prepare(self, item: Any, position: int | str) -> np.ndarray:
        return np.asarray(self._preprocess(as_picture(item, position)))

    def describe(self) -> dict[str, Any]:
        return {"preprocessing": "given in Python"}

    def features(self, images: Tensor) -> Tensor:
        rows: Tensor = self.network(images)
        return rows

    def project(self, features: Tensor) -> Tensor:
        return unit_tensors(features)

    def forward(self, images: Tensor) -> Tensor:
        return self.project(self.features(images))


class WrappedTexts(nn.Module):
    """The caption side as a tower."""

    def __init__(self, network: nn.Module, tokenize: Callable[[list[str]], Tensor]) -> None:
        super().__init__()
        self.network, self._tokenize = network, tokenize

    def inputs(self, texts: Sequence[str]) -> _Captions:
        return _Captions(texts, self._tokenize)

    def describe(self) -> dict[str, Any]:
        return {"tokenizer": "given in Python"}

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        return unit_tensors(self.network(tokens))


class WrappedEncoder(TrainableEncoder):
    """See :meth:`diptych.encoders.dual_encoder.DualEncoder.wrap`."""

    family: ClassVar[str] = "wrapped"

    def __init__(
        self,
        image: Callable[[Any], Any],
        text: Callable[[Any], Any],
        preprocess: Callable[[Any], Tensor] | None = None,
        tokenize: Callable[[list[str]], Tensor] | None = None,
        *,
        name: str = "wrapped",
        device: str | None = None,
    ) -> None:
        self.name: str = name
        self._functions = image, text
        self._preprocess, self._tokenize = preprocess, tokenize
        self.temperature: float | None = None
        self.modules: list[nn.Module] = [part for part in self._functions if isinstance(part, nn.Module)]
        owners = [getattr(part, "__self__", part) for part in self._functions]  # of methods: the whole model
        self._owners: list[Any] = [part if isinstance(part, nn.Module) else None for part in owners]
        first = next((value for part in self._whole() for value in part.parameters()), None)
        self.to(pick_device(device) if device is not None or first is None else first.device)

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Refuse a folder of weights whose modules are not there."""
        raise UsageError(
            f"{source} holds the weights of modules that were given in Python, not the modules",
            f"DualEncoder.wrap(image_module, text_module, …).load_weights({source!r})",
        )

    def _whole(self) -> list[nn.Module]:
        """Return the modules that hold the weights, each once."""
        return list(dict.fromkeys(part for part in self._owners if part is not None))

    def to(self, device: torch.device) -> None:
        self.device: torch.device = device
        for part in self._whole():
            part.to(device)

    @property
    def prepares(self) -> bool:
        return self._preprocess is not None

    def prepared(self, item: Any, position: int | str) -> Any:
        image = as_picture(item, position)
        return image if self._preprocess is None else np.asarray(self._preprocess(image))

    @torch.inference_mode()
    def encode_prepared(
        self, prepared: Sequence[Any], positions: Sequence[int] | Sequence[str]
    ) -> np.ndarray:
        given: Any = list(prepared)
        if self.prepares:
            given = torch.from_numpy(np.stack(prepared)).to(self.device)
        return self._rows(0, given, len(prepared), positions)

    @torch.inference_mode()
    def encode_texts(self, texts: Sequence[str] | str, batch_size: int = 256) -> np.ndarray:
        if batch_size < 1:
            raise UsageError(f"batch_size must be 1 or more, got {batch_size}")
        given, rows = list(check_texts(texts)), []
        for start in range(0, len(given), batch_size):
            some = given[start : start + batch_size]
            tokens: Any = some if self._tokenize is None else self._tokenize(some).to(self.device)
            rows.append(self._rows(1, tokens, len(some), range(start, start + len(some))))
        return np.concatenate(rows) if rows else np.empty((0, self.width), dtype=np.float32)

    def _rows(self, side: int, given: Any, count: int, positions: Any) -> np.ndarray:
        for part in self._whole():
            part.eval()
        rows = self._functions[side](given)
        if isinstance(rows, Tensor):
            rows = rows.float().cpu().numpy()
        rows, kind = np.asarray(rows), ("image", "text")[side]
        if rows.ndim != 2 or len(rows) != count:
            raise MismatchError(
                f"the {kind} function gives shape {rows.shape} for {count} {kind}s", "return (n, d) rows"
            )
        return unit_rows(rows, kind, positions)

    @cached_property
    def width(self) -> int:
        return int(self.encode_texts(_SENTENCES[0]).shape[1])

    @property
    def fingerprint(self) -> str:
        """Name it by its weights and by what is made of some images and sentences before they are used.

        Of functions, whose weights are not at hand, it is what they give for these images and sentences.
        """
        images = [_gradient(*size) for size in _SIZES]
        whole = [weights_fingerprint(part.state_dict()) for part in self._whole()]
        sides = [*self._made(0, images, self._preprocess), *self._made(1, _SENTENCES, self._tokenize)]
        return fingerprint("wrapped", [name_of(part) for part in self._functions], whole, sides)

    def _made(self, side: int, probes: Sequence[Any], first: Callable[[Any], Any] | None) -> Iterator[str]:
        for probe in probes:
            try:
                if self._owners[side] is not None and first is not None:
                    made = np.asarray(first([probe] if side else probe))
                else:
                    made = self.encode_texts(probe) if side else self.encode_images([probe])
            except Exception as error:  # noqa: BLE001  # whatever a function raises is part of what it is
                yield type(error).__name__
            else:
                yield fingerprint_arrays({"made": made})

    def __repr__(self) -> str:
        images, texts = map(name_of, self._functions)
        return f"<{type(self).__name__} {self.name}: images by {images}, texts by {texts}>"

    def _about(self) -> dict[str, Any]:
        return {"normalisation": "unit length, eps 1e-12", "functions": "given in Python"}

    @property
    def towers(self) -> Towers:
        if len(self.modules) < 2 or self._preprocess is None or self._tokenize is None:
            raise UsageError(
                f"{self.name} cannot be trained: its functions are no modules with preprocess and tokenize",
                "DualEncoder.wrap(image_module, text_module, preprocess=…, tokenize=…)",
            )
        images = WrappedImages(self.modules[0], self._preprocess)
        return Towers(images, WrappedTexts(self.modules[1], self._tokenize))

    @property
    def learned_options(self) -> dict[str, float]:
        return {} if self.temperature is None else {"temperature": self.temperature}

    def as_trained(self, name: str, temperature: float | None, bias: float | None = None) -> Self:
        self.name, self.temperature = name, temperature
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        functions = copy.deepcopy(self._functions, memo)
        other = type(self)(*functions, self._preprocess, self._tokenize, name=self.name)
        other.temperature = self.temperature
        return other

    def _settings(self) -> dict[str, Any]:
        return self.learned_options

    def _write(self, folder: Path) -> None:
        if len(self.modules) < 2:
            raise UsageError(
                f"{self.name} is made of functions, which cannot be saved", "keep its embeddings"
            )
        sides = zip(("image", "text"), self.modules, strict=True)
        states = ((f"{side}.{key}", one) for side, part in sides for key, one in part.state_dict().items())
        save_tensors(dict(states), folder / "model.safetensors")

    def load_weights(self, folder: Path | str) -> Self:
        """Load the weights of both modules from a folder that :meth:`save` or a training wrote; return itself."""
        folder = Path(folder)
        folder = folder if (folder / CONFIG_FILE).is_file() else folder / "best"
        weights = load_tensors(folder / "model.safetensors", "give the folder of a run or of a saved encoder")
        for side, part in zip(("image.", "text."), self.modules, strict=True):
            part.load_state_dict(
                {key.removeprefix(side): value for key, value in weights.items() if key.startswith(side)}
            )
        self.temperature = EncoderHeader.open(folder).settings.get("temperature")
        return self
