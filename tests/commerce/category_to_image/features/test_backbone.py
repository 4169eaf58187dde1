"""A frozen classifier as picture encoder: what it sees, where its weights are from, what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from diptych.commerce.category_to_image.features.pictures import make_picture_encoder
from diptych.core.errors import ImageError, MismatchError, StorageError, UsageError

NAME = "backbone:test_resnet"


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights of a tiny network, as a file."""
    import timm
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("weights") / "model.safetensors"
    save_file(timm.create_model("test_resnet", num_classes=0).state_dict(), path)
    return path


def picture(width: int = 40, height: int = 60) -> Image.Image:
    blocks = np.random.default_rng(0).integers(0, 256, (6, 4, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize((width, height))


def test_rows_are_the_networks_own(weights: Path) -> None:
    import timm
    import torch
    from safetensors.torch import load_file

    options = {"weights": str(weights), "size": 32, "mean": "0.5,0.5,0.5", "std": [0.5, 0.5, 0.5]}
    encoder = make_picture_encoder(NAME, {**options, "interpolation": "bilinear"})
    row = encoder.encode([encoder.prepared(picture(), "a")], ["a"])[0]
    network = timm.create_model("test_resnet", num_classes=0).eval()
    network.load_state_dict(load_file(weights))
    square = picture().resize((32, 32), Image.Resampling.BILINEAR, box=(0, 10, 40, 50), reducing_gap=3.0)
    pixels = torch.from_numpy(np.asarray(square, dtype=np.float32) / 127.5 - 1).permute(2, 0, 1)[None]
    with torch.inference_mode():
        features = network(pixels)[0].numpy()
    np.testing.assert_allclose(row, features / np.linalg.norm(features), atol=1e-5)
    assert row.shape == (encoder.width,)


def test_what_timm_says_where_nothing_else_is_said(weights: Path) -> None:
    said = make_picture_encoder(NAME, {"weights": str(weights)}).describe()
    assert (said["size"], said["resize"]) == (160, 168)  # 160 / 0.95, as its evaluation crop has it
    assert said["weights"] == str(weights)


@pytest.mark.parametrize("change", [{"size": 40}, {"mean": "0,0,0"}, {"timm": {"act_layer": "silu"}}])
def test_the_fingerprint_knows(change: dict[str, Any], weights: Path) -> None:
    options = {"weights": str(weights), "size": 32}
    plain, changed = (make_picture_encoder(NAME, {**options, **more}) for more in ({}, change))
    assert plain.fingerprint != changed.fingerprint
    assert make_picture_encoder(NAME, dict(plain.options)).fingerprint == plain.fingerprint


def test_dotted_options(weights: Path) -> None:
    plain, dotted = (
        make_picture_encoder(NAME, {"weights": str(weights), "size": 32, **options})
        for options in ({"timm": {"act_layer": "silu"}}, {"timm.act_layer": "silu"})
    )
    assert dotted.fingerprint == plain.fingerprint
    assert dotted.options == plain.options


def test_precision_is_known(weights: Path) -> None:
    options = {"weights": str(weights), "size": 32}
    exact, rough = (make_picture_encoder(NAME, options, one) for one in ("float32", "bfloat16"))
    rows = [one.encode([one.prepared(picture(), "a")], ["a"])[0] for one in (exact, rough)]
    assert exact.fingerprint != rough.fingerprint
    assert 0.99 < rows[0] @ rows[1] < 1.0001


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (NAME, {"size": "large"}, "image option 'size' of backbone:test_resnet"),
        (NAME, {"sice": 32}, "image option 'sice'"),
        (NAME, {"mean": "0.5,0.5"}, "image option 'mean"),
        (NAME, {"size": 32, "resize": 16}, "resized to 16 and cut to 32"),
        ("backbone:", {}, "backbone without a name"),
        ("backbone:resnet5000", {}, "unknown timm backbone 'resnet5000'"),
        ("grid", {"size": 32}, "image option 'size' of grid"),
        ("grid:8", {}, "grid takes nothing behind it"),
        ("nowhere", {}, "neither a folder nor a name"),
    ],
)
def test_what_cannot_be_made(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_picture_encoder(source, options)


def test_weights_that_are_not_there_or_do_not_fit(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="image options weights") as missing:
        make_picture_encoder(NAME, {"weights": str(tmp_path / "no.safetensors")})
    assert "no.safetensors" in missing.value.message
    with pytest.raises(MismatchError, match="does not fit the backbone"):
        make_picture_encoder("backbone:test_vit", {"weights": str(weights)})


def test_weights_are_never_random(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*given: Any, pretrained: bool, **options: Any) -> None:
        assert pretrained
        raise OSError("no network")

    monkeypatch.setattr("timm.create_model", unreachable)
    with pytest.raises(UsageError, match="backbone test_resnet could not be loaded.*no network"):
        make_picture_encoder(NAME)


def test_what_is_no_picture(weights: Path) -> None:
    encoder = make_picture_encoder(NAME, {"weights": str(weights)})
    with pytest.raises(ImageError, match="image p07 is 1 × 600 pixels"):
        encoder.prepared(picture(1, 600), "p07")
