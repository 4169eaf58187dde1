"""BLIP of transformers: rows for the first stage, and a matching head that reads each text again.

The library has the weights' places, not the published evaluation. That cleans captions, cuts them to 35
tokens, and puts [ENC] in the place of the first token where picture and text are read together; without
it, matching scores are another model's (transformers issue 25629). The final score is the head's output plus
the cosine.

Source: Li et al., BLIP, ICML 2022, and its published code (``train_retrieval.py``, ``evaluation``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from diptych.core.errors import MismatchError, UsageError
from diptych.data.loading import batched
from diptych.encoders.huggingface import HuggingFaceEncoder
from diptych.encoders.inputs import check_texts
from diptych.encoders.matching import MatchingEncoder, PairInputs, finite_scores, not_two_towers
from diptych.encoders.pretrained_towers import PretrainedTowers
from diptych.encoders.text_cleaning import BLIP_CLEANING, TextRule, encode_token

_ARCHITECTURE = "BlipForImageTextRetrieval"
_IMAGES, _TEXTS = {"states"}, {"ids", "mask"}


class BlipEncoder(HuggingFaceEncoder, MatchingEncoder):
    """A ``BlipForImageTextRetrieval``; make one with :meth:`open` or ``DualEncoder.load``.

    Attributes:
        cleaning: what a caption goes through before it is tokenised.
        stage: fine-tuned for retrieval or of pre-training, where its checkpoint said so.
    """

    family: ClassVar[str] = "blip"
    rules: ClassVar[Mapping[str, TextRule]] = {"blip": TextRule("max_length", limit=35)}
    what: ClassVar[str] = "BLIP"
    library_class: ClassVar[str] = _ARCHITECTURE
    adds_contrastive: ClassVar[bool] = True

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        image_processor: Any,
        name: str,
        *,
        device: str | None = None,
        characters: int | None = None,
        prefix: str = "",
        stage: str | None = None,
    ) -> None:
        self.cleaning, self.stage = BLIP_CLEANING, stage
        super().__init__(
            model, tokenizer, image_processor, name, device=device, characters=characters, prefix=prefix
        )
        self._encode_token = encode_token(tokenizer, self._vocabulary_size, name)

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
                "that read pictures",
                'write "is_decoder": true into the text_config of its config.json',
            )

    def _accepted(self) -> set[str]:
        return {"input_ids", "attention_mask"}

    def _wording(self, texts: list[str]) -> list[str]:
        return [self.cleaning(text) for text in texts]

    def _token_counts(self, texts: list[str]) -> list[int]:
        counts = super()._token_counts(texts) if texts else []
        return self.cleaning.counts(texts, counts, self.text_limit)

    def _picture_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.model.vision_proj(self._picture_states(**inputs)[:, 0])
        return rows

    def _picture_states(self, **inputs: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model.vision_model(**inputs).last_hidden_state
        return states

    def _token_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.model.text_proj(self.model.text_encoder(**inputs).last_hidden_state[:, 0])
        return rows

    @torch.inference_mode()
    def image_inputs(self, images: Iterable[Any], batch_size: int = 32) -> PairInputs:
        self.model.eval()
        found: list[np.ndarray] = []
        done = 0
        for batch in batched(images, batch_size):
            prepared = np.stack([self.prepare(item, place) for place, item in enumerate(batch, done)])
            pixels = torch.from_numpy(prepared).to(self.device)
            found.append(self._picture_states(pixel_values=pixels).float().cpu().numpy())
            done += len(batch)
        _, *shape = self.model.vision_model.embeddings.position_embedding.shape
        return {"states": np.concatenate([np.empty((0, *shape), dtype=np.float32), *found])}

    def text_inputs(self, texts: Sequence[str], batch_size: int = 256) -> PairInputs:
        check_texts(texts)
        ids = np.zeros((len(texts), self.text_limit), dtype=np.int64)
        mask = np.zeros((len(texts), self.text_limit), dtype=bool)
        for begin in range(0, len(texts), batch_size):
            here = slice(begin, begin + batch_size)
            with self._tokenizing:
                tokens = self._tokenized([self._read(text) for text in texts[here]], "max_length")
            ids[here], mask[here] = tokens["input_ids"].numpy(), tokens["attention_mask"].numpy() > 0
        ids[:, 0] = self._encode_token
        return {"ids": ids, "mask": mask}

    def match(self, images: PairInputs, texts: PairInputs) -> np.ndarray:
        _check_inputs(images, texts)
        if len(images["states"]) != len(texts["ids"]):
            raise MismatchError(
                f"{len(images['states'])} pictures and {len(texts['ids'])} texts are no pairs",
                "item i of the images is scored with item i of the texts",
            )
        return finite_scores(self._logits(images["states"], texts))

    def match_rows(self, images: PairInputs, rows: np.ndarray, texts: PairInputs) -> np.ndarray:
        _check_inputs(images, texts)
        if len(rows) != len(texts["ids"]):
            raise MismatchError(f"{len(rows)} rows of pictures and {len(texts['ids'])} texts are no pairs")
        scores = np.empty(len(rows), dtype=np.float32)
        ends = np.append(1 + np.flatnonzero(np.diff(rows)), len(rows)).tolist()
        begin = 0
        for end in ends if len(rows) else ():
            mine = {name: values[begin:end] for name, values in texts.items()}
            scores[begin:end] = self._logits(images["states"][rows[begin]][None], mine)
            begin = end
        return finite_scores(scores)

    @torch.inference_mode()
    def _logits(self, states: np.ndarray, texts: PairInputs) -> np.ndarray:
        """(n,) outputs for n texts with as many pictures, or with one picture, whose keys and values all share."""
        if not len(texts["ids"]):
            return np.empty(0, dtype=np.float32)
        self.model.eval()
        # Nobody looks beyond the longest text.
        length = max(1, int(np.flatnonzero(texts["mask"].any(axis=0)).max(initial=0)) + 1)
        tokens = torch.from_numpy(np.array(states)).to(self.device)
        output = self.model.text_encoder(
            input_ids=torch.from_numpy(np.array(texts["ids"][:, :length])).to(self.device),
            attention_mask=torch.from_numpy(texts["mask"][:, :length].astype(np.int64)).to(self.device),
            encoder_hidden_states=tokens,
            encoder_attention_mask=torch.ones(tokens.shape[:2], dtype=torch.int64, device=self.device),
        )
        logits: np.ndarray = self.model.itm_head(output.last_hidden_state[:, 0])[:, 1].float().cpu().numpy()
        return logits

    @property
    def learned_options(self) -> dict[str, float]:
        return {}

    @property
    def towers(self) -> PretrainedTowers:
        raise not_two_towers(self.name)

    def sides(self) -> tuple[list[str], list[str]]:
        return ["vision_model", "vision_proj"], ["text_encoder", "text_proj"]

    def _content(self) -> list[Any]:
        return [*super()._content(), self.cleaning.describe(), self._encode_token]

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | ({} if self.stage is None else {"stage": self.stage})

    def _about(self) -> dict[str, Any]:
        about = super()._about() | ({} if self.stage is None else {"stage": self.stage})
        about["text"] |= {"cleaning": self.cleaning.describe()}
        about["matching"] = {"first_token": self._encode_token, "adds_contrastive": self.adds_contrastive}
        return about


def _check_inputs(images: PairInputs, texts: PairInputs) -> None:
    if images.keys() != _IMAGES or texts.keys() != _TEXTS:
        raise MismatchError(
            f"inputs {', '.join(sorted(images)) or 'none'} of pictures and "
            f"{', '.join(sorted(texts)) or 'none'} of texts",
            "BLIP reads states of pictures with ids and mask of texts",
        )
