from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from refusals import refused

from diptych.core.errors import MismatchError
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.targets.contract import TargetOptions, make_target_model
from diptych.encoders.two_tower import ModelConfig, TwoTowerEncoder, TwoTowerModel

from .tiny_pretrained import pictures
from .tiny_towers import PICTURES, two_tower

CAPTIONS = ["a red star", "a blue ring left of a star", "a", "zebra"]

KINDS = [
    (image, text, projection)
    for image in ("pictures", "regions")
    for text in ("gru", "targets")
    for projection in (False, True)
]
LSA_CAPTIONS = [*CAPTIONS, "two red rings", "a blue star", "green square"]


def of_kind(image: str, text: str, projection: bool = False, similarity: str = "cosine") -> TwoTowerEncoder:
    regions = {"kind": "regions", "regions": 3, "feature_width": 5, "layers": 2}
    targets: dict[str, Any] = {"kind": "lsa", "width": 4}
    texts: dict[str, dict[str, Any]] = {
        "gru": {"word_width": 6, "min_count": 1},
        "targets": {"kind": "targets", "targets": targets, "head": "mlp", "hidden": 32},
    }
    source: Any = Vocabulary.build(CAPTIONS, 1)
    if text == "targets":
        source = make_target_model(TargetOptions(**targets), LSA_CAPTIONS)
    config: dict[str, Any] = {"text": texts[text], "similarity": similarity}
    config["projection"] = {"base": 6, "hidden": 32} if projection else None
    return two_tower(source, image=PICTURES if image == "pictures" else regions, **config)


def test_fingerprints_tell_kinds_and_sources_apart() -> None:
    found = [of_kind(*kind).fingerprint for kind in KINDS]
    found.append(of_kind("pictures", "gru", similarity="order").fingerprint)
    assert len(set(found)) == len(found)
    other = of_kind("pictures", "targets")
    source = make_target_model(TargetOptions(kind="lsa", width=4), [*LSA_CAPTIONS, "a cube"])
    assert TwoTowerEncoder(other.model, source).fingerprint != other.fingerprint


@pytest.mark.parametrize("image", ["pictures", "regions"])
def test_order_embeddings_say_so_and_have_no_signs(image: str) -> None:
    plain, order = of_kind(image, "gru"), of_kind(image, "gru", similarity="order")
    assert (plain.similarity, order.similarity, order.describe()["similarity"]) == (
        "cosine",
        "order",
        "order",
    )
    features = list(np.random.default_rng(0).normal(size=(5, 3, 5)).astype(np.float32))
    items = pictures() if image == "pictures" else features
    for name, given in (("encode_images", items), ("encode_texts", CAPTIONS)):
        without, signed = getattr(order, name)(given), getattr(plain, name)(given)
        assert (signed < 0).any()
        np.testing.assert_allclose(without, np.abs(signed), atol=1e-6)


def test_what_is_wrong_in_a_tower_is_named_at_its_place() -> None:
    for values, place, message in (
        ({"image": {"kind": "regions", "backbone": "x"}}, ("image", "backbone"), "Extra inputs"),
        ({"image": {"kind": "region"}}, ("image",), "unknown kind 'region', known: pictures, regions"),
        ({"text": {"kind": ["gru"]}}, ("text",), r"unknown kind \['gru'\], known: gru, targets"),
        ({"text": {"kind": "targets", "targets": {"knid": 1}}}, ("text", "targets", "knid"), "Extra inputs"),
        ({"text": 3}, ("text",), "valid dictionary or instance of CaptionTowerConfig"),
    ):
        error = refused(ValidationError, message, ModelConfig.model_validate, values)
        assert [one["loc"] for one in error.errors()] == [place]


def test_a_source_of_the_other_kind_is_refused() -> None:
    gru, target = of_kind("pictures", "gru"), of_kind("pictures", "targets")
    message = "a text tower of kind targets got a Vocabulary"
    refused(MismatchError, message, TwoTowerModel, target.model.config, gru.source)
    message = "a text tower of kind gru got a LatentSemanticAnalysis"
    refused(MismatchError, message, TwoTowerModel, gru.model.config, target.source)


CODE = "0 0 1 2 3 4"


@pytest.mark.parametrize("limit", [8, 11, 100])
def test_a_caption_with_its_ending_is_read_as_in_training(
    limit: int, caplog: pytest.LogCaptureFixture
) -> None:
    digits = Vocabulary.build(CAPTIONS[:2], 1, tuple("0123456789"))
    model = two_tower(digits, text={"word_width": 6, "min_count": 1, "max_tokens": limit})
    with caplog.at_level(logging.INFO):
        texts = model.with_endings(CAPTIONS, [CODE] * 4)
    logged = [record.getMessage() for record in caplog.records]
    short = sum(len(text.split()) + 8 > limit for text in CAPTIONS)
    assert logged == ([f"{short} of 4 texts lost words to make room for their endings"] if short else [])
    inputs = model.model.text.inputs(CAPTIONS)
    trained, lengths = inputs.batch(np.arange(4), [CODE] * 4)
    read, read_lengths = model.model.text.inputs(texts).batch(np.arange(4))
    assert torch.equal(trained, read)
    assert torch.equal(lengths, read_lengths)
    for row, length in zip(read.tolist(), lengths.tolist(), strict=True):
        assert row[length - 7 : length] == [4, 4, 5, 6, 7, 8, 2]
    assert model.with_endings(CAPTIONS, [""] * 4) == CAPTIONS
