from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from diptych.core.errors import MismatchError, StorageError
from diptych.encoders.official.encoder import blip_state_from_official, open_official_blip

from ..tiny_pretrained import bert_tokenizer, pictures
from .tiny_official import Maker, State, albef_state, bert_layer, linear, matched, norm, unit, vit

VISION, TEXT = {"num_heads": 3}, {"num_attention_heads": 4}
PUBLISHED = Path(__file__).parents[4] / "shared" / "checkpoint-layouts" / "blip.json"
WORDS = ["a dog on the left", "ball"]


def blip_state(pre_training: bool = False) -> State:
    maker = Maker(3)
    for momentum in ("", "_m"):
        maker.vit(f"visual_encoder{momentum}.")
        maker.bert(f"text_encoder{momentum}.", first=0)
        maker.linear(f"vision_proj{momentum}", 12, 24)
        maker.linear(f"text_proj{momentum}", 12, 32)
    maker.linear("itm_head", 2, 32)
    if pre_training:
        maker.linear("text_decoder.cls.predictions.decoder", 90, 32)
    maker.state |= {"temp": torch.tensor(0.05), "ptr_queue": torch.zeros(1), "idx_queue": torch.zeros(1, 8)}
    return {name: value for name, value in maker.state.items() if "token_type" not in name}


def read(state: State, tokens: torch.Tensor, mask: torch.Tensor, images: torch.Tensor | None) -> torch.Tensor:
    """All four layers, with or without the picture."""
    tables = "text_encoder.embeddings."
    rows = state[f"{tables}word_embeddings.weight"].double()[tokens]
    rows = rows + state[f"{tables}position_embeddings.weight"].double()[: tokens.shape[1]]
    rows = norm(state, f"{tables}LayerNorm", rows, 1e-12)
    for layer in range(4):
        rows = bert_layer(state, f"text_encoder.encoder.layer.{layer}.", rows, mask, images)
    return rows[:, 0]


def test_numbers_are_those_of_the_published_code(tmp_path: Path) -> None:
    state = blip_state()
    torch.save({"model": state, "epoch": 2}, tmp_path / "retrieval.pth")
    tokenizer = bert_tokenizer()  # of fewer words than the model, whose last row is [ENC]
    assert len(tokenizer) < 90
    (tmp_path / "config.json").write_text(json.dumps({"vision": VISION, "bert_config": TEXT}))
    encoder = open_official_blip(tmp_path, tokenizer=tokenizer, device="cpu")
    pixels = torch.from_numpy(np.stack([encoder.prepare(picture, 0) for picture in pictures(2)]))
    assert pixels.shape == (2, 3, 48, 48)
    tokens = tokenizer([encoder.cleaning(text) for text in WORDS], padding=True, return_tensors="pt")
    ids, mask = tokens["input_ids"], tokens["attention_mask"]
    images = vit(state, "visual_encoder.", pixels.double())
    expected = unit(linear(state, "vision_proj", images[:, 0])).numpy()
    np.testing.assert_allclose(encoder.encode_images(pictures(2)), expected, atol=2e-5)
    rows = unit(linear(state, "text_proj", read(state, ids, mask, None))).numpy()
    np.testing.assert_allclose(encoder.encode_texts(WORDS), rows, atol=2e-5)
    ids[:, 0] = 89
    scores = matched(state, read(state, ids, mask, images))[:, 1].numpy()
    found = encoder.match(encoder.image_inputs(pictures(2)), encoder.text_inputs(WORDS))
    np.testing.assert_allclose(found, scores, atol=2e-5)
    assert encoder.name == "retrieval.pth"


def test_another_file() -> None:
    with pytest.raises(MismatchError, match="is no checkpoint of BLIP: it looks like an ALBEF checkpoint"):
        blip_state_from_official(albef_state())
    lost = {name: value for name, value in blip_state().items() if "layer.3.output.dense" not in name}
    with pytest.raises(StorageError, match=r"missing 2 \(text_encoder.encoder.layer.3.output.dense.bias"):
        blip_state_from_official(lost, vision=VISION, text=TEXT)
    captioner = {
        name: value for name, value in blip_state(True).items() if not name.startswith("text_encoder.")
    }
    with pytest.raises(StorageError, match=r"lacks what retrieval needs: text_encoder\.\*"):
        blip_state_from_official(captioner)
    with pytest.raises(StorageError, match=r"text_proj.weight has the shape \(11, 32\)"):
        blip_state_from_official(
            blip_state() | {"text_proj.weight": torch.zeros(11, 32)}, vision=VISION, text=TEXT
        )


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published list of names is not there")
def test_published_names() -> None:
    """All 949 are used or knowingly left out."""
    keys = json.loads(PUBLISHED.read_text())["keys"]
    assert len(keys) == 949
    state = {name: torch.empty(shape, device="meta") for name, (shape, _) in keys.items()}
    config, weights = blip_state_from_official(state)
    assert len(weights) == 472
    assert sum(value.numel() for value in weights.values()) + 1 == 223744259
    assert (
        config["text_config"]["num_attention_heads"] == config["vision_config"]["num_attention_heads"] == 12
    )
