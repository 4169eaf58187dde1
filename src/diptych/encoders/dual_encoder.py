"""DualEncoder: the noun behind every model that turns images and texts into rows of one space.

Nothing heavy is imported here: a family's library is imported when one of its encoders is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np

from diptych.core.artifact import Artifact
from diptych.core.context import track
from diptych.core.errors import MismatchError, NumericalError, UsageError
from diptych.core.files import atomic_folder, write_text
from diptych.data.loading import batched
from diptych.metrics import products

if TYPE_CHECKING:
    import torch

    from diptych.encoders.caption_tower import BagTower, CaptionTower, TargetTower
    from diptych.encoders.image_tower import ImageTower, RegionTower
    from diptych.encoders.pretrained import PretrainedImages, PretrainedTexts
    from diptych.encoders.wrapped import WrappedEncoder, WrappedImages, WrappedTexts

    ImageSide: TypeAlias = ImageTower | RegionTower | PretrainedImages | WrappedImages
    TextSide: TypeAlias = CaptionTower | TargetTower | BagTower | PretrainedTexts | WrappedTexts


Positions: TypeAlias = Sequence[int] | Sequence[str]  # what errors call items: places, or ids

# The file that marks a folder as a saved encoder and names its family.
CONFIG_FILE = "diptych.json"


@dataclass(frozen=True)
class EncoderHeader(Artifact, kind="diptych", version=2, recreate="save the encoder again"):
    family: str
    fingerprint: str
    settings: dict[str, Any]  # what its other files do not hold


class DualEncoder(ABC):
    """Two encoders with one output space: ``encode_images`` and ``encode_texts``.

    Rows are (n, d) float32 of unit length, so that a matrix product of them is the cosine. A row
    whose length is below 1e-12 stays (nearly) zero instead of becoming NaN.
    """

    family: ClassVar[str]  # in diptych.encoders.family.FAMILIES
    name: str  # what reports call it
    loaded_from: str = ""  # the name or folder that it was loaded from, from any working directory
    texts_only: bool = False  # whether what only images need was left out

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        """Encode images to (n, d) float32 unit rows, a batch in memory at a time.

        Args:
            images: paths, Pillow images or (height, width, 3) uint8 arrays, or one of them; (regions, features)
                matrices where it takes those. One that cannot be encoded is an ImageError or NumericalError that
                names its position.
        """
        if batch_size < 1:
            raise UsageError(f"batch_size must be 1 or more, got {batch_size}")
        if _is_one(images):
            images = [images]
        rows: list[np.ndarray] = []
        done = 0
        for batch in batched(track(images, "encoding images", unit="images"), batch_size):
            positions = range(done, done + len(batch))
            prepared = [self.prepared(item, place) for place, item in zip(positions, batch, strict=True)]
            rows.append(self.encode_prepared(prepared, positions))
            done += len(batch)
        return np.concatenate(rows) if rows else np.empty((0, self.width), dtype=np.float32)

    @abstractmethod
    def encode_texts(self, texts: Sequence[str] | str, batch_size: int = 256) -> np.ndarray:
        """Encode texts, or one, to (n, d) float32 unit rows; those longer than the encoder's limit are cut and logged.

        Raises:
            CaptionError, NumericalError: a text cannot be encoded; the message names its position.
        """

    @property
    def prepares(self) -> bool:
        """Return whether :meth:`prepared` gives the small arrays that the network takes, all of one shape."""
        return False

    def prepared(self, item: Any, position: int | str) -> Any:
        """Return what the network takes of one item; called from several threads, errors call it ``position``."""
        return item

    def encode_prepared(self, prepared: Sequence[Any], positions: Positions) -> np.ndarray:
        """Encode one batch of what :meth:`prepared` gave, as :meth:`encode_images` does."""
        return self.encode_images(prepared, batch_size=max(1, len(prepared)))

    def with_endings(self, texts: Sequence[str], endings: Sequence[str]) -> list[str]:
        """Return ``text + " " + ending`` for each pair, the text shortened where an ending would be cut."""
        return [f"{text} {ending}" if ending else text for text, ending in zip(texts, endings, strict=True)]

    @property
    @abstractmethod
    def width(self) -> int:
        """Return d, the length of one row."""

    @property
    def takes(self) -> Literal["pictures", "regions"]:
        """Return the input type of :meth:`encode_images`: ``"pictures"``, or ``"regions"``, matrices of features."""
        return "pictures"

    @property
    def similarity(self) -> Literal["cosine", "order"]:
        """Return the similarity of embeddings: ``"cosine"``, or ``"order"``, a violation of rows without signs."""
        return "cosine"

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """Return a name by content: weights, image preprocessing, tokenizer, text cut, all that changes a row."""

    def describe(self) -> dict[str, Any]:
        """Return the metadata that goes with every number of this encoder, JSON-able.

        Keys: ``family``, ``name``, ``width``, ``image`` (preprocessing), ``text`` (limit and cut), ``activation``,
        ``normalisation``, ``temperature``, ``fingerprint``; ``similarity`` where it need not be the cosine.
        """
        known = {"family": self.family, "name": self.name, "width": self.width}
        return {**known, **self._about(), "fingerprint": self.fingerprint}

    def _about(self) -> dict[str, Any]:
        return {}

    @abstractmethod
    def _write(self, folder: Path) -> None:
        """Write weights (safetensors) and configuration (JSON) into the empty ``folder``."""

    def _settings(self) -> dict[str, Any]:
        return {}

    def save(self, folder: Path | str) -> Path:
        """Write a folder that :meth:`load` reads, all or nothing; :meth:`push_to_hub` uploads one."""
        from diptych.encoders.hub import encoder_card

        folder = Path(folder)
        with atomic_folder(folder, CONFIG_FILE) as temporary:
            self._write(temporary)
            EncoderHeader(self.family, self.fingerprint, self._settings()).write_header(temporary)
            write_text(temporary / "README.md", encoder_card(self))
        return folder

    def push_to_hub(self, name: str, *, private: bool = False, message: str = "Add encoder") -> str:
        """Upload what :meth:`save` writes to the Hugging Face hub, as ``OWNER/NAME``; return the commit's address.

        ``DualEncoder.load("diptych:OWNER/NAME")`` loads it; ``private`` is of a repository that is new. The card
        is that of the folder which the encoder was loaded from, where there is one.
        """
        from diptych.encoders.hub import push

        return push(self, name, private=private, message=message)

    @classmethod
    def wrap(
        cls,
        image: Callable[[Any], Any],
        text: Callable[[Any], Any],
        preprocess: Callable[[Any], torch.Tensor] | None = None,
        tokenize: Callable[[list[str]], torch.Tensor] | None = None,
        *,
        name: str = "wrapped",
        device: str | None = None,
    ) -> WrappedEncoder:
        """Make an encoder of two functions or modules; with two modules and both of the others it can be trained.

        Args:
            image: from a batch of images to (n, d) rows, an array or a tensor. It gets a list of Pillow images, or
                with ``preprocess`` a tensor of what that returns.
            text: from a list of texts, or with ``tokenize`` from a tensor of tokens, to (n, d) rows.
            preprocess: from a Pillow image to a tensor.
            tokenize: from texts to an (n, t) tensor.
            device: of the inputs and of the modules; where the modules are, when not given.

        ::

            model, _, preprocess = open_clip.create_model_and_transforms("ViT-B-32")
            tokenize = open_clip.get_tokenizer("ViT-B-32")
            encoder = DualEncoder.wrap(model.encode_image, model.encode_text, preprocess, tokenize)
        """
        from diptych.encoders.wrapped import WrappedEncoder

        return WrappedEncoder(image, text, preprocess, tokenize, name=name, device=device)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self.width} dimensions, {self.fingerprint}>"

    @classmethod
    def load(
        cls,
        name_or_folder: str | Path,
        *,
        device: str | None = None,
        texts_only: bool = False,
    ) -> DualEncoder:
        """Load an encoder from a folder, or from a hub where its family's library knows one.

        Args:
            name_or_folder: a folder (ours, or of a library), a name such as ``hf:NAME``, ours on the hub as
                ``diptych:OWNER/NAME``, or a checkpoint of its authors such as ``albef:FILE``; ``diptych info``
                lists the forms.
            device: a torch device; the GPU where there is one, else the CPU, when not given.
            texts_only: leave out what only images need, where the family can; ``encode_images`` must not be used.

        Raises:
            UsageError: no such folder or name, or a hub that cannot be reached; says what to do.
            StorageError: the folder's files are missing, corrupt or of another version.
            MissingExtraError: the family's library is not installed.
        """
        from diptych.encoders.family import resolve, rooted

        declared, source = resolve(name_or_folder)
        load = declared.load_texts if texts_only and declared.load_texts else declared.load
        encoder = load(source, device)
        if not isinstance(encoder, cls):
            raise MismatchError(
                f"{name_or_folder} holds a {type(encoder).__name__}, not a {cls.__name__}",
                "load it with DualEncoder.load",
            )
        encoder.loaded_from = rooted(str(name_or_folder))
        encoder.texts_only = load is not declared.load
        return encoder


def _is_one(images: Any) -> bool:
    if isinstance(images, np.ndarray):
        return images.ndim == 2 or (images.ndim == 3 and images.dtype == np.uint8 and images.shape[2] == 3)
    return isinstance(images, str | Path) or hasattr(images, "convert")


def unit_rows(rows: np.ndarray, kind: str, positions: Positions | np.ndarray) -> np.ndarray:
    """Divide each of (n, d) rows by its length; one that is not finite is refused by its name in ``positions``."""
    exact = np.asarray(rows, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(exact).all(axis=1))
    if len(bad):
        raise NumericalError(
            f"the embedding of {kind} {positions[int(bad[0])]} is not finite",
            "the weights are corrupt or diverged: load or train them again",
        )
    return products.unit_rows(exact)


class Towers(NamedTuple):
    """The two sides of an encoder, as they are trained."""

    image: ImageSide
    text: TextSide


class TrainableEncoder(DualEncoder):
    """A dual encoder whose weights can be trained in place."""

    @abstractmethod
    def to(self, device: torch.device) -> None: ...

    @property
    @abstractmethod
    def towers(self) -> Towers:
        """Return its two sides, which share its weights."""

    @property
    def scoring(self) -> Literal["cosine", "order", "order-root"]:
        """Return the similarity that training scores with; see :func:`diptych.objectives.similarity_of`."""
        return "cosine"

    @property
    @abstractmethod
    def learned_options(self) -> dict[str, float]:
        """Return the parameters that the objective learned in training: ``temperature``, ``bias``."""

    @abstractmethod
    def as_trained(self, name: str, temperature: float | None, bias: float | None = None) -> DualEncoder:
        """Return an encoder with the weights of the moment, shared, and the objective's temperature and bias."""
