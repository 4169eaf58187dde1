"""Models of two stages: rows of the two encoders, and a head that reads a text's tokens with an image's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from diptych.core.errors import MismatchError, UsageError
from diptych.data.loading import batched
from diptych.encoders.pretrained import PretrainedEncoder
from diptych.encoders.rerank import MatchingEncoder, PairInputs, finite_scores
from diptych.encoders.text_cleaning import Cleaning


class TwoStageEncoder(PretrainedEncoder, MatchingEncoder):
    """A pretrained dual encoder with a matching head on ``model.itm_head``."""

    cleaning: Cleaning
    text_parts: ClassVar[frozenset[str]]  # the names of what the head reads of texts, ``mask`` among them

    @abstractmethod
    def pixel_states(self, pixels: Tensor) -> Tensor:
        """(n, 3, size, size) prepared images → (n, tokens, width) states of the image encoder."""

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
                "item i of the images is scored with item i of the texts: repeat the one that is alone",
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
        logits: np.ndarray = self.model.itm_head(self.fused(images, texts, rows)).float().cpu().numpy()
        return logits

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        return finite_scores(self.matching_logits(images, texts)[:, 1])

    def match_rows(self, images: PairInputs, rows: np.ndarray, texts: PairInputs) -> np.ndarray:
        return finite_scores(self.matching_logits(images, texts, rows)[:, 1])
