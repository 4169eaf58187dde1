"""Models of two stages: rows of the two encoders, and a head that reads a text's tokens with an image's; BLIP.

As in BLIP's published evaluation captions are cleaned and cut to 35 tokens, [ENC] is the first token where image and
text are read together (transformers issue 25629), and the final score is the head's output plus the cosine.

Source: Li et al., BLIP, ICML 2022, and its published code (``train_retrieval.py``, ``evaluation``).
"""

import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from diptych.core.errors import MismatchError, UsageError
from diptych.data.loading import batched
from diptych.encoders.family import model_type
from diptych.encoders.huggingface import HuggingFaceEncoder, TextRule
from diptych.encoders.inputs import check_texts
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.rerank import MatchingEncoder, PairInputs, finite_scores
from diptych.encoders.tower import pad_tokens


@dataclass(frozen=True)
class Cleaning:
    """The rule of one model."""

    name: str  # whose it is
    marks: str  # the characters that are taken out of a text
    substitute: str  # what stands in the place of each
    replaced: tuple[tuple[str, str], ...] = ()  # texts that are replaced after that, in order
    words: int = 30  # how many words are kept; more are cut

    def _words(self, text: str) -> list[str]:
        text = re.sub(f"[{re.escape(self.marks)}]", self.substitute, text.lower())
        for old, new in self.replaced:
            text = text.replace(old, new)
        return re.sub(r"\s{2,}", " ", text).rstrip("\n").strip(" ").split(" ")

    def __call__(self, text: str) -> str:
        """Return ``text`` cleaned and cut.

        >>> ALBEF_CLEANING("A man's well-lit dog, Rex, runs!")
        'a mans well lit dog rex runs'
        >>> BLIP_CLEANING("A man's well-lit dog, Rex, runs!")
        "a man's well-lit dog, rex, runs"
        """
        return " ".join(self._words(text)[: self.words])

    def counts(self, texts: Sequence[str], tokens: Sequence[int], limit: int) -> list[int]:
        """Return how many of ``tokens`` each cut text has; above ``limit`` where words were lost."""
        cut = [len(self._words(text)) > self.words for text in texts]
        return [limit + 1 if lost else count for lost, count in zip(cut, tokens, strict=True)]

    def describe(self) -> dict[str, Any]:
        return {"like": self.name, "words": self.words}


_HYPHENS = (("-", " "), ("/", " "), ("<person>", "person"))

ALBEF_CLEANING = Cleaning("ALBEF", ",.'!?\"()*#:;~", "", _HYPHENS)  # and X-VLM's
BLIP_CLEANING = Cleaning("BLIP", '.!"()*#:;~', " ")

_ENCODE_TOKEN = "[ENC]"


def encode_token(tokenizer: Any, vocabulary: int, name: str) -> int:
    """Return the id of [ENC], first where BLIP reads text with image: the tokenizer's, else the model's last row."""
    known = tokenizer.get_vocab()
    if _ENCODE_TOKEN in known:
        return int(known[_ENCODE_TOKEN])
    if max(known.values()) >= vocabulary - 1:
        raise MismatchError(
            f"the tokenizer of {name} has {max(known.values()) + 1:,} tokens without {_ENCODE_TOKEN}, the model "
            f"{vocabulary:,}: none is left for it",
            "the tokenizer files are another model's: use its own",
        )
    return vocabulary - 1


class TwoStageEncoder(PretrainedEncoder, MatchingEncoder):
    """A pretrained dual encoder with a matching head on ``model.itm_head``."""

    cleaning: Cleaning
    text_parts: ClassVar[frozenset[str]]  # the names of what the head reads of texts, ``mask`` among them

    @abstractmethod
    def pixel_states(self, pixels: Tensor) -> Tensor:
        """Map (n, 3, size, size) prepared images → (n, tokens, width) states of the image encoder."""

    @property
    @abstractmethod
    def state_shape(self) -> tuple[int, int]:
        """Return (tokens, width) of an image's states."""

    @abstractmethod
    def read_together(self, states: Tensor, texts: dict[str, Tensor]) -> Tensor:
        """States of n images, or of one image for all texts, and inputs of n texts → (n, t, width)."""

    def sides(self) -> tuple[list[str], list[str]]:
        raise UsageError(
            f"{self.name} cannot be fine-tuned as two towers: its matching head reads what they compute",
            "train a CLIP-like encoder, or use this one as it is",
        )

    @torch.inference_mode()
    def pixel_inputs(self, pixels: Tensor | np.ndarray) -> PairInputs:
        """Return what :meth:`match` reads of (n, 3, size, size) prepared images: ``states``, float32."""
        self.model.eval()
        states = self.pixel_states(torch.as_tensor(pixels).to(self.device))
        return {"states": states.float().cpu().numpy()}

    def image_inputs(self, images: Iterable[Any], batch_size: int = 32) -> PairInputs:
        found = [np.empty((0, *self.state_shape), dtype=np.float32)]
        done = 0
        for batch in batched(images, batch_size):
            pixels = np.stack([self.prepare(item, place) for place, item in enumerate(batch, done)])
            found.append(self.pixel_inputs(pixels)["states"])
            done += len(batch)
        return {"states": np.concatenate(found)}

    @torch.inference_mode()
    def fused(self, images: PairInputs, texts: PairInputs, rows: np.ndarray | None = None) -> Tensor:
        """Return (n, width), the first state of text i read with image ``rows[i]``, which ascend, or with image i."""
        if images.keys() != {"states"} or texts.keys() != self.text_parts:
            raise MismatchError(
                f"inputs {', '.join(sorted(images)) or 'none'} of images and "
                f"{', '.join(sorted(texts)) or 'none'} of texts",
                f"this head reads states of images with {' and '.join(sorted(self.text_parts))} of texts",
            )
        states = images["states"]
        count = len(states if rows is None else rows)
        if any(len(values) != count for values in texts.values()):
            raise MismatchError(
                f"{count} images and {len(texts['mask'])} texts are no pairs",
                "item i of the images is scored with item i of the texts: repeat the shorter one",
            )
        self.model.eval()
        if not count:
            return torch.empty(0, next(self.model.itm_head.parameters()).shape[1], device=self.device)
        if rows is None:
            return self._first_states(states, texts)
        # An image's keys and values are computed once for all its texts.
        ends = [0, *(1 + np.flatnonzero(np.diff(rows))).tolist(), count]
        parts = []
        for begin, end in pairwise(ends):
            mine = {name: values[begin:end] for name, values in texts.items()}
            parts.append(self._first_states(states[rows[begin]][None], mine))
        return torch.cat(parts)

    def _first_states(self, states: np.ndarray, texts: PairInputs) -> Tensor:
        # Nothing is read beyond the longest text.
        length = max(1, int(np.flatnonzero(texts["mask"].any(axis=0)).max(initial=0)) + 1)
        read = {name: torch.tensor(values[:, :length], device=self.device) for name, values in texts.items()}
        return self.read_together(torch.tensor(states, device=self.device), read)[:, 0]

    @torch.inference_mode()
    def matching_logits(
        self, images: PairInputs, texts: PairInputs, rows: np.ndarray | None = None
    ) -> np.ndarray:
        """Return (n, 2) float32: the head's raw outputs for "they do not belong together" and "they do"."""
        return np.asarray(self.model.itm_head(self.fused(images, texts, rows)).float().cpu().numpy())

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        return finite_scores(self.matching_logits(images, texts)[:, 1])

    def match_rows(self, images: PairInputs, rows: np.ndarray, texts: PairInputs) -> np.ndarray:
        return finite_scores(self.matching_logits(images, texts, rows)[:, 1])


_ARCHITECTURE = "BlipForImageTextRetrieval"


class BlipEncoder(HuggingFaceEncoder, TwoStageEncoder):
    """A ``BlipForImageTextRetrieval``; ``stage`` is that of its checkpoint, where known."""

    family: ClassVar[str] = "blip"
    rules: ClassVar[Mapping[str, TextRule]] = {"blip": TextRule("max_length", limit=35)}
    what: ClassVar[str] = "BLIP"
    library_class: ClassVar[str] = _ARCHITECTURE
    adds_contrastive: ClassVar[bool] = True
    cleaning = BLIP_CLEANING
    text_parts: ClassVar[frozenset[str]] = frozenset(("ids", "mask"))

    def __init__(self, *parts: Any, stage: str | None = None, **options: Any) -> None:
        self.stage = stage
        super().__init__(*parts, **options)
        self._encode_token = encode_token(self.tokenizer, self._vocabulary_size, self.name)

    @classmethod
    def open(cls, source: str, *, device: str | None = None) -> Self:
        """Load a folder or name of transformers, or else a checkpoint of BLIP's authors."""
        path = Path(source).expanduser()
        names_checkpoint = source.startswith("pretraining:") or path.is_file()
        if names_checkpoint or (path.is_dir() and model_type(path) != "blip"):
            return cls.load_published(source, device=device)
        return super().open(source, device=device)

    @classmethod
    def load_published(cls, path: str | Path, **options: Any) -> Self:
        """Load a checkpoint of BLIP's authors: a file, a folder with one, or ``pretraining:FILE``.

        Layout: timm's ViT under ``visual_encoder.``, BERT with cross-attention in every layer under ``text_encoder.``,
        ``vision_proj``, ``text_proj`` and ``itm_head``; by themselves or under ``model``, read with
        ``weights_only=True``. Momentum copies and queues are left out. ``tokenizer`` and ``device`` are options.

        Source: the checkpoints that github.com/salesforce/BLIP links to.
        """
        from diptych.encoders.official.encoder import open_official_blip

        return open_official_blip(path, **options)  # type: ignore[return-value]

    @classmethod
    def _check_config(cls, config: Any) -> None:
        found = list(config.architectures or [])
        if found and _ARCHITECTURE not in found:
            raise UsageError(
                f"a BLIP for another task: its config.json says {', '.join(found)}, not {_ARCHITECTURE}",
                "use one that was made for retrieval, such as Salesforce/blip-itm-base-coco",
            )
        if not config.text_config.is_decoder:
            raise UsageError(
                "the text_config of this BLIP says is_decoder false: transformers then leaves out the layers "
                "that read images",
                'write "is_decoder": true into the text_config of its config.json',
            )

    def _picture_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        return self.model.vision_proj(self.pixel_states(inputs["pixel_values"])[:, 0])  # type: ignore[no-any-return]

    def pixel_states(self, pixels: torch.Tensor) -> torch.Tensor:
        return self.model.vision_model(pixel_values=pixels).last_hidden_state  # type: ignore[no-any-return]

    def _token_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.model.text_proj(self.model.text_encoder(**inputs).last_hidden_state[:, 0])
        return rows

    @property
    def state_shape(self) -> tuple[int, int]:
        _, tokens, width = self.model.vision_model.embeddings.position_embedding.shape
        return tokens, width

    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        tokens, lengths = pad_tokens(self.token_ids(check_texts(texts)), *self.padding)
        tokens[:, 0] = self._encode_token
        mask = torch.arange(self.text_limit) < lengths[:, None]
        return {"ids": tokens.numpy(), "mask": mask.numpy()}

    def read_together(self, states: torch.Tensor, texts: dict[str, torch.Tensor]) -> torch.Tensor:
        found: torch.Tensor = self.model.text_encoder(
            input_ids=texts["ids"],
            attention_mask=texts["mask"].long(),
            encoder_hidden_states=states,
            encoder_attention_mask=torch.ones(states.shape[:2], dtype=torch.int64, device=self.device),
        ).last_hidden_state
        return found

    @property
    def learned_options(self) -> dict[str, float]:
        return {}

    def _content(self) -> list[Any]:
        return [*super()._content(), self.cleaning.describe(), self._encode_token]

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | ({} if self.stage is None else {"stage": self.stage})

    def _about_model(self) -> dict[str, Any]:
        about = super()._about_model() | ({} if self.stage is None else {"stage": self.stage})
        about["text"] |= {"cleaning": self.cleaning.describe()}
        about["matching"] = {"first_token": self._encode_token, "adds_contrastive": self.adds_contrastive}
        return about
