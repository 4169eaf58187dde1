"""A tiny ALBEF with all weights of the published code, and what that code computes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from ranking import evaluate_reranked

from diptych.encoders.official.encoder import AlbefEncoder
from diptych.encoders.rerank import rerank_prepared
from diptych.metrics.ground_truth import GroundTruth

FOLDER = Path(__file__).parents[4] / "shared" / "golden"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the golden values are not there")

TOLERANCE = 2e-5


@pytest.fixture(scope="module")
def golden() -> dict[str, np.ndarray]:
    return dict(np.load(FOLDER / "albef_tiny.npz", allow_pickle=False))


@pytest.fixture(scope="module")
def about() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "albef_tiny.json").read_text())
    return found


@pytest.fixture(scope="module")
def encoder(about: dict[str, Any]) -> AlbefEncoder:
    return AlbefEncoder.from_checkpoint(
        FOLDER / "albef_tiny.safetensors", vision=about["vit"], text=about["bert_config"], device="cpu"
    )


@torch.inference_mode()
def test_features(encoder: AlbefEncoder, golden: dict[str, np.ndarray]) -> None:
    ids, mask = golden["input_ids"], golden["attention_mask"]
    for found, name in (
        (encoder.pixel_states(golden["images"]), "image_embeds"),
        (encoder.token_states(ids, mask), "text_hidden"),
        (torch.nn.functional.normalize(encoder.pixel_features(golden["images"]), dim=-1), "image_feat"),
        (torch.nn.functional.normalize(encoder.token_features(ids, mask), dim=-1), "text_feat"),
    ):
        np.testing.assert_allclose(found, golden[name], atol=TOLERANCE, rtol=0)


def pairs(encoder: AlbefEncoder, golden: dict[str, np.ndarray], images: Any, texts: Any) -> tuple[Any, Any]:
    seen = encoder.pixel_inputs(golden["images"])["states"]
    read = encoder.token_inputs(golden["input_ids"], golden["attention_mask"])
    return {"states": seen[images]}, {name: value[texts] for name, value in read.items()}


def test_matching(encoder: AlbefEncoder, golden: dict[str, np.ndarray]) -> None:
    both = pairs(encoder, golden, *np.divmod(np.arange(35), 7))
    fused = encoder.fused(*both).numpy().reshape(5, 7, -1)
    np.testing.assert_allclose(fused, golden["fusion_cls"], atol=TOLERANCE, rtol=0)
    logits = encoder.matching_logits(*both).reshape(5, 7, 2)
    np.testing.assert_allclose(logits, golden["itm_logits"], atol=TOLERANCE, rtol=0)


def test_reranked_scores_and_recall(
    encoder: AlbefEncoder, golden: dict[str, np.ndarray], about: dict[str, Any]
) -> None:
    """The three best candidates of each query: score matrices, and the recall that the published code prints."""
    pixels, words = golden["images"], (golden["input_ids"], golden["attention_mask"])
    rows = encoder.pixel_rows(pixels), encoder.token_rows(*words)
    np.testing.assert_allclose(rows[0] @ rows[1].T, golden["sims"], atol=TOLERANCE, rtol=0)
    inputs = encoder.pixel_inputs(pixels), encoder.token_inputs(*words)
    reranked = rerank_prepared(encoder, *rows, *inputs, k=3)
    for direction in ("i2t", "t2i"):
        np.testing.assert_allclose(
            reranked.matrix(direction),  # type: ignore[arg-type]
            golden[f"score_{direction}_k3"],
            atol=TOLERANCE,
            rtol=0,
        )
    caption_image = np.array([about["txt2img"][str(row)] for row in range(7)])
    result = evaluate_reranked(
        reranked,
        GroundTruth.from_caption_image(caption_image, 5),
        ["R@1", "R@5", "R@10"],
        unranked="published",
    )
    for direction, name in (("i2t", "txt"), ("t2i", "img")):
        for k in (1, 5, 10):
            found = result.value(f"R@{k}", direction)
            assert 100 * found == pytest.approx(about["itm_eval"][f"{name}_r{k}"], abs=1e-9)
