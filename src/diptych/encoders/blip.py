"""BLIP of transformers: rows for the first stage, and a matching head that reads each text again.

As in the published evaluation captions are cleaned and cut to 35 tokens, [ENC] is the first token where image and text
are read together (transformers issue 25629), and the final score is the head's output plus the cosine.

Source: Li et al., BLIP, ICML 2022, and its published code (``train_retrieval.py``, ``evaluation``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch

from diptych.core.errors import UsageError
from diptych.encoders.huggingface import HuggingFaceEncoder
from diptych.encoders.inputs import check_texts
from diptych.encoders.rerank import PairInputs
from diptych.encoders.text_cleaning import BLIP_CLEANING, TextRule, encode_token
from diptych.encoders.tower import pad_tokens
from diptych.encoders.two_stage import TwoStageEncoder

_ARCHITECTURE = "BlipForImageTextRetrieval"


class BlipEncoder(HuggingFaceEncoder, TwoStageEncoder):
    """A ``BlipForImageTextRetrieval``; ``stage`` is that of its checkpoint, where that said so."""

    family: ClassVar[str] = "blip"
    rules: ClassVar[Mapping[str, TextRule]] = {"blip": TextRule("max_length", limit=35)}
    what: ClassVar[str] = "BLIP"
    library_class: ClassVar[str] = _ARCHITECTURE
    adds_contrastive: ClassVar[bool] = True
    cleaning = BLIP_CLEANING
    text_parts: ClassVar[frozenset[str]] = frozenset(("ids", "mask"))

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        image_processor: Any,
        name: str,
        *,
        stage: str | None = None,
        **options: Any,
    ) -> None:
        self.stage = stage
        super().__init__(model, tokenizer, image_processor, name, **options)
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

    def _picture_rows(self, **inputs: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = self.model.vision_proj(self.pixel_states(inputs["pixel_values"])[:, 0])
        return rows

    def pixel_states(self, pixels: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.model.vision_model(pixel_values=pixels).last_hidden_state
        return states

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

    def _about(self) -> dict[str, Any]:
        about = super()._about() | ({} if self.stage is None else {"stage": self.stage})
        about["text"] |= {"cleaning": self.cleaning.describe()}
        about["matching"] = {"first_token": self._encode_token, "adds_contrastive": self.adds_contrastive}
        return about
