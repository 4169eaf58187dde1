"""What the model computes of pictures and texts once they are prepared: states, rows, matching scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from diptych.core.errors import MismatchError
from diptych.data.loading import batched
from diptych.encoders.dual_encoder import unit_rows
from diptych.encoders.inputs import check_texts
from diptych.encoders.matching import MatchingEncoder, PairInputs, finite_scores
from diptych.encoders.pretrained import PretrainedEncoder

if TYPE_CHECKING:
    from diptych.encoders.official.model import MatchingConfig


_NAMES = {"images": {"states"}, "texts": {"states", "mask"}}


def distinct_pictures(states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pictures that ``states`` repeat one after the other, once each, and which of them each item is.

    Pairs come picture by picture; what a picture costs the head is paid once for all its texts.
    """
    if len(states) > 1 and states.strides[0] == 0:  # numpy.broadcast_to
        return states[:1], np.zeros(len(states), dtype=np.int64)
    new = np.ones(len(states), dtype=bool)
    for row in 1 + np.flatnonzero((states[1:, 0] == states[:-1, 0]).all(axis=1)):
        new[row] = not np.array_equal(states[row], states[row - 1])
    return (states if new.all() else states[new]), np.cumsum(new) - 1


def pair_tensors(
    images: PairInputs,
    rows: np.ndarray,
    texts: PairInputs,
    widths: Mapping[str, int],
    device: torch.device,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Image states, which of them each pair has, text states and text mask, on ``device``."""
    for side, inputs in (("images", images), ("texts", texts)):
        if inputs.keys() != _NAMES[side]:
            raise MismatchError(
                f"inputs of {side} hold {', '.join(sorted(inputs)) or 'nothing'}, not "
                f"{', '.join(sorted(_NAMES[side]))}",
                "they are another encoder's, or the two sides are swapped",
            )
        shape = inputs["states"].shape
        if len(shape) != 3 or shape[2] != widths[side]:
            raise MismatchError(
                f"states of {side} are of shape {shape}, not (n, states, {widths[side]})",
                "they are another encoder's",
            )
    counts = [len(rows), len(texts["states"]), len(texts["mask"])]
    if len(set(counts)) > 1:
        raise MismatchError(
            f"{counts[0]} images, {counts[1]} texts and {counts[2]} masks are no pairs",
            "item i of the images is scored with item i of the texts: repeat the one that is alone",
        )
    outside = np.flatnonzero((rows < 0) | (rows >= len(images["states"])))
    if len(outside):
        raise MismatchError(
            f"pair {outside[0]} has picture {rows[outside[0]]} of {len(images['states'])}",
            "rows count the pictures from 0",
        )
    return (
        _tensor(images["states"]).to(device),
        _tensor(np.asarray(rows, dtype=np.int64)).to(device),
        _tensor(texts["states"]).to(device),
        _tensor(texts["mask"]).to(device, torch.bool),
    )


def _tensor(array: np.ndarray) -> Tensor:
    # A tensor cannot say that its memory may not be written to.
    usable = array.flags.writeable and all(stride >= 0 for stride in array.strides)
    return torch.from_numpy(array if usable else array.copy())


def padded_states(states: Tensor, mask: Tensor, length: int) -> PairInputs:
    """States of texts filled up to ``length`` with zeros, which nothing reads, and their mask."""
    count, tokens, width = states.shape
    filled = np.zeros((count, length, width), dtype=np.float32)
    inside = np.zeros((count, length), dtype=bool)
    inside[:, :tokens] = mask.bool().cpu().numpy()
    filled[:, :tokens] = states.float().cpu().numpy()
    filled[~inside] = 0.0
    return {"states": filled, "mask": inside}


def checked_scores(logits: np.ndarray) -> np.ndarray:
    """(n,) float32 scores of "they belong together" out of (n, 2) logits."""
    return finite_scores(np.ascontiguousarray(logits[:, 1]))


class PreparedEncoder(PretrainedEncoder, MatchingEncoder):
    """The numbers' side of an :class:`~diptych.encoders.official.encoder.OfficialEncoder`.

    Everything takes NumPy arrays or tensors on any device.
    """

    adds_contrastive: ClassVar[bool] = False
    config: MatchingConfig

    def pixel_states(self, pixels: Tensor | np.ndarray) -> Tensor:
        """(n, 3, size, size) prepared pictures → (n, tokens, width) states of the image encoder."""
        pixels = torch.as_tensor(pixels).to(self.device, torch.float32)
        size = self.config.vision.image_size
        if pixels.ndim != 4 or pixels.shape[1:] != (3, size, size):
            raise MismatchError(
                f"prepared pictures of shape {tuple(pixels.shape)}, not (n, 3, {size}, {size})",
                f"prepare them at {size} pixels, or load the checkpoint with image_size={pixels.shape[-1]}",
            )
        states: Tensor = self.model.image(pixels)
        return states

    def token_states(self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray) -> Tensor:
        """Token ids → (n, t, width) states of the text half."""
        tokens, inside = self._checked(tokens, mask)
        states: Tensor = self.model.text(input_ids=tokens, attention_mask=inside.long()).last_hidden_state
        return states

    def _checked(self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray) -> tuple[Tensor, Tensor]:
        text = self.config.text
        tokens = torch.as_tensor(tokens).to(self.device, torch.int64)
        inside = torch.as_tensor(mask).to(self.device)
        if tokens.ndim == 2 and inside.ndim == 1:
            inside = torch.arange(tokens.shape[1], device=self.device) < inside[:, None]
        if tokens.ndim != 2 or inside.shape != tokens.shape or tokens.shape[1] > text.positions:
            raise MismatchError(
                f"token ids of shape {tuple(tokens.shape)} with a mask of shape {tuple(inside.shape)}",
                f"both are (n, t), with t of at most {text.positions}",
            )
        if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < text.vocabulary:
            raise MismatchError(
                f"token ids from {int(tokens.min())} to {int(tokens.max())}, {self.name} knows "
                f"{text.vocabulary}",
                "the tokenizer is another model's: use its own",
            )
        return tokens, inside.bool()

    def pixel_features(self, pixels: Tensor | np.ndarray) -> Tensor:
        rows: Tensor = self.model.vision_proj(self.pixel_states(pixels)[:, 0])
        return rows

    def token_features(self, tokens: Tensor | np.ndarray, lengths: Tensor | np.ndarray) -> Tensor:
        rows: Tensor = self.model.text_proj(self.token_states(tokens, lengths)[:, 0])
        return rows

    @torch.inference_mode()
    def pixel_rows(self, pixels: Tensor | np.ndarray) -> np.ndarray:
        """(n, 3, size, size) prepared pictures → (n, d) float32 unit rows."""
        return unit_rows(self.pixel_features(pixels).float().cpu().numpy(), "image", range(len(pixels)))

    @torch.inference_mode()
    def token_rows(self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray) -> np.ndarray:
        """(n, t) token ids with their mask → (n, d) float32 unit rows."""
        return unit_rows(self.token_features(tokens, mask).float().cpu().numpy(), "text", range(len(tokens)))

    @torch.inference_mode()
    def pixel_inputs(self, pixels: Tensor | np.ndarray) -> PairInputs:
        """What :meth:`match` reads of (n, 3, size, size) prepared pictures: ``states``, float32."""
        return {"states": self.pixel_states(pixels).float().cpu().numpy()}

    @torch.inference_mode()
    def token_inputs(
        self, tokens: Tensor | np.ndarray, mask: Tensor | np.ndarray, length: int | None = None
    ) -> PairInputs:
        """What :meth:`match` reads of (n, t) token ids with their mask, filled to ``length`` tokens."""
        tokens, inside = self._checked(tokens, mask)
        return padded_states(self.token_states(tokens, inside), inside, length or tokens.shape[1])

    def _padded(self, texts: list[str]) -> tuple[Tensor, Tensor]:
        """(n, t) token ids and (n,) lengths of texts as they are read."""
        ids = [torch.from_numpy(row) for row in self._ids(texts)]
        tokens = pad_sequence(ids, batch_first=True, padding_value=self.padding[0])
        return tokens, torch.tensor([len(row) for row in ids])

    def _text_features(self, texts: list[str]) -> Tensor:
        return self.token_features(*self._padded(texts))

    def image_inputs(self, images: Iterable[Any], batch_size: int = 32) -> PairInputs:
        self.model.eval()
        found = [np.empty((0, self.model.image.tokens, self.model.image.width), dtype=np.float32)]
        done = 0
        for batch in batched(images, batch_size):
            pixels = np.stack([self.prepare(item, place) for place, item in enumerate(batch, done)])
            found.append(self.pixel_inputs(pixels)["states"])
            done += len(batch)
        return {"states": np.concatenate(found)}

    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        """What :meth:`match` reads of texts: ``states``, (n, limit, width) float32 of the text half, and
        ``mask``, (n, limit) bool.
        """
        check_texts(texts)
        self.model.eval()
        states = np.zeros((len(texts), self.text_limit, self.config.text.width), dtype=np.float32)
        mask = np.zeros((len(texts), self.text_limit), dtype=bool)
        for start in range(0, len(texts), batch_size):
            here = slice(start, start + batch_size)
            with self._tokenizing:
                tokens, lengths = self._padded([self._read(text) for text in texts[here]])
            inputs = self.token_inputs(tokens, lengths, self.text_limit)
            states[here], mask[here] = inputs["states"], inputs["mask"]
        return {"states": states, "mask": mask}

    @torch.inference_mode()
    def fused(self, images: PairInputs, texts: PairInputs, rows: np.ndarray | None = None) -> Tensor:
        """(n, width): the first state of each pair's text after the fusion half; see :meth:`match_rows`."""
        self.model.eval()
        if rows is None and images.keys() == {"states"}:
            states, rows = distinct_pictures(images["states"])
            images = {"states": states}
        which = np.empty(0, dtype=np.int64) if rows is None else rows
        widths = {"images": self.config.text.image_width, "texts": self.config.text.width}
        seen, chosen, read, mask = pair_tensors(images, which, texts, widths, self.device)
        first: Tensor = self.model.fusion(read, mask, seen, chosen)[:, 0]
        return first

    @torch.inference_mode()
    def matching_logits(
        self, images: PairInputs, texts: PairInputs, rows: np.ndarray | None = None
    ) -> np.ndarray:
        """(n, 2) float32: the head's raw outputs for "they do not belong together" and "they do"."""
        logits: np.ndarray = self.model.itm_head(self.fused(images, texts, rows)).float().cpu().numpy()
        return logits

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        """Score pairs; see :class:`~diptych.encoders.matching.MatchingEncoder`.

        A picture that several pairs in a row have is worked on once.
        """
        return checked_scores(self.matching_logits(images, texts))

    def match_rows(self, images: PairInputs, rows: np.ndarray, texts: PairInputs) -> np.ndarray:
        """Score image ``rows[i]`` with text i, without repeating the pictures' tokens."""
        return checked_scores(self.matching_logits(images, texts, rows))
