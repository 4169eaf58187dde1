from __future__ import annotations

from typing import Any

import pytest

from diptych.core.errors import UsageError
from diptych.encoders.official.inputs import Configuration, read_configuration

VIT, BERT = {"depth": 2}, {"num_attention_heads": 4, "hidden_size": 32}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, Configuration()),
        (BERT, Configuration(text=BERT)),
        ({"bert_config": BERT, "vit": VIT}, Configuration(VIT, BERT)),
        (
            {"bert_config": "configs/bert.json", "image_res": 384, "embed_dim": 256, "max_tokens": 40},
            Configuration({"image_size": 384}, {}, 256, 40),
        ),
        (
            {"config": {"image_res": 48, "embed_dim": 16}, "vit": {"img_size": 48}, "text_config": BERT},
            Configuration({"img_size": 48, "image_size": 48}, BERT, 16),
        ),
        ({"config": {"vision_config": VIT, "text_config": BERT}}, Configuration(VIT, BERT)),
    ],
)
def test_forms(content: dict[str, Any], expected: Configuration) -> None:
    assert read_configuration(content) == expected


def test_two_sizes() -> None:
    with pytest.raises(UsageError, match="says image_res=384, and 224 for the image encoder"):
        read_configuration({"image_res": 384, "vision_config": {"image_res": 224}})
