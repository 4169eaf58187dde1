from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from diptych.core.errors import DiptychError, UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.family import FAMILIES
from diptych.encoders.huggingface import HuggingFaceEncoder
from diptych.encoders.rerank import MatchingEncoder
from diptych.encoders.two_stage import BlipEncoder

from .tiny_pretrained import CAPTIONS, pictures, transformers_model

CLEANED = [
    "a dog on the left of a red cube",
    "ball",
    "the cat sees a green ball and a blue cube on the right",
    "a red dog",
    "two dogs",
    "",
]
"""What the published cleaning leaves of ``CAPTIONS``: everything, for they are clean."""


@pytest.fixture(scope="module")
def folder(sources: Callable[[str], Path]) -> Path:
    return sources("blip")


@pytest.fixture(scope="module")
def blip(encoders: Callable[[str], Any]) -> BlipEncoder:
    return encoders("blip")  # type: ignore[no-any-return]


def ids_of(tokenizer: Any, texts: list[str]) -> dict[str, torch.Tensor]:
    """As the published evaluation tokenises: 35 tokens, always filled up."""
    tokens = tokenizer(texts, padding="max_length", truncation=True, max_length=35, return_tensors="pt")
    return {name: tokens[name] for name in ("input_ids", "attention_mask")}


def test_rows_are_those_of_the_library(blip: BlipEncoder) -> None:
    """transformers gives the cosine of the rows, from which the rows' products can be compared."""
    model, tokenizer, processor = transformers_model("blip")
    texts, images = blip.encode_texts(CAPTIONS, 4), blip.encode_images(pictures(), 2)
    with torch.no_grad():
        pixels = processor(images=pictures(), return_tensors="pt")["pixel_values"]
        tokens = ids_of(tokenizer, CLEANED)
        cosines = model(**tokens, pixel_values=pixels, use_itm_head=False).itm_score
        state = model.vision_model(pixel_values=pixels).last_hidden_state[:, 0]
        expected = torch.nn.functional.normalize(model.vision_proj(state), dim=-1)
        state = model.text_encoder(**tokens).last_hidden_state[:, 0]
        also = torch.nn.functional.normalize(model.text_proj(state), dim=-1)
    np.testing.assert_allclose(images @ texts.T, cosines, atol=1e-5)
    np.testing.assert_allclose(images, expected, atol=1e-5)
    np.testing.assert_allclose(texts, also, atol=1e-5)
    assert blip.width == 20
    assert blip.text_limit == 35
    for rows in (images, texts):  # different inputs have different rows, or nothing was compared
        assert (rows @ rows.T - np.eye(len(rows))).max() < 0.999


def test_matching_scores_are_those_of_the_library_with_the_published_first_token(blip: BlipEncoder) -> None:
    model, tokenizer, processor = transformers_model("blip")
    tokens = ids_of(tokenizer, CLEANED[:5])
    plain = tokens["input_ids"].clone()
    tokens["input_ids"][:, 0] = len(tokenizer) + 1  # [ENC]; [DEC] is before it
    with torch.no_grad():
        pixels = processor(images=pictures(), return_tensors="pt")["pixel_values"]
        expected = model(**tokens, pixel_values=pixels).itm_score[:, 1]
        wrong = model(**{**tokens, "input_ids": plain}, pixel_values=pixels).itm_score[:, 1]
    images, texts = blip.image_inputs(pictures(), 2), blip.text_inputs(CAPTIONS[:5], 3)
    assert {name: values.shape for name, values in images.items()} == {"states": (5, 17, 24)}
    assert {name: values.shape for name, values in texts.items()} == {"ids": (5, 35), "mask": (5, 35)}
    got = blip.match(images, texts)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, expected, atol=1e-5)
    assert np.abs(got - wrong.numpy()).max() > 1e-3  # [CLS] instead of [ENC] is another model


def test_a_clip_is_no_blip_and_the_other_way_round(folder: Path, sources: Callable[[str], Path]) -> None:
    clip = sources("clip")
    assert [one.name for one in FAMILIES if one.recognises(folder)] == ["blip"]
    assert [one.name for one in FAMILIES if one.recognises(clip)] == ["huggingface"]
    assert isinstance(DualEncoder.load(clip, device="cpu"), HuggingFaceEncoder)
    assert not isinstance(DualEncoder.load(clip, device="cpu"), MatchingEncoder)
    assert isinstance(DualEncoder.load(f"blip:{folder}", device="cpu"), BlipEncoder)
    with pytest.raises(DiptychError):  # no checkpoint of BLIP's authors either
        DualEncoder.load(f"blip:{clip}")
    with pytest.raises(UsageError, match="is a 'clip' model, not BLIP") as caught:
        BlipEncoder.open(str(clip))
    assert caught.value.fix == "known: blip"


def test_the_tokenizers_own_encode_token(copied: Callable[[str], Path], blip: BlipEncoder) -> None:
    from transformers import AutoTokenizer

    folder = copied("blip")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    first = len(tokenizer)
    tokenizer.add_special_tokens({"bos_token": "[DEC]", "additional_special_tokens": ["[ENC]"]})
    tokenizer.save_pretrained(folder)
    encoder = DualEncoder.load(folder, device="cpu")
    assert isinstance(encoder, BlipEncoder)
    assert encoder.text_inputs(["a dog"])["ids"][0, 0] == first + 1
    np.testing.assert_array_equal(encoder.text_inputs(CAPTIONS)["ids"], blip.text_inputs(CAPTIONS)["ids"])
