"""Embeddings of images and texts by frozen encoders."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from tiny_catalogue import NO_ATTRIBUTES, NO_PICTURE, NO_TITLE, tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts, open_text_encoder
from diptych.commerce.category_to_image.images import (
    ImageEncoder,
    describe_grid,
    image_rows,
    open_image_encoder,
)
from diptych.core.errors import MismatchError, UsageError
from diptych.encoders import DualEncoder

from ...encoders.tiny_pretrained import transformers_folder

BACKBONE = "backbone:test_resnet"


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


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformers_folder("clip", tmp_path_factory.mktemp("models") / "clip", limit=64)


def noise(width: int = 40, height: int = 60, seed: int = 0) -> Image.Image:
    blocks = np.random.default_rng(seed).integers(0, 256, (6, 4, 3), dtype=np.uint8)
    return Image.fromarray(blocks).resize((width, height))


def encoded(encoder: ImageEncoder, *images: Image.Image) -> np.ndarray:
    """Unit rows, all in one batch."""
    names = [str(number) for number in range(len(images))]
    prepared = [encoder.prepared(one, name) for one, name in zip(images, names, strict=True)]
    return encoder.encode_prepared(prepared, names)


def test_every_image_encoder(weights: Path, clip: Path) -> None:
    for kind, source in {"grid": "grid", "backbone": BACKBONE, "dual": str(clip)}.items():
        encoder = open_image_encoder(source, {"weights": str(weights)} if kind == "backbone" else None)
        rows = encoded(encoder, *(noise(seed=seed) for seed in range(3)))
        assert rows.dtype == np.float32
        assert rows.shape == (3, encoder.width)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(encoded(encoder, noise(seed=2)), rows[2:], atol=1e-5)
        again = open_image_encoder(source, json.loads(json.dumps(getattr(encoder, "options", {}))))
        assert again.fingerprint == encoder.fingerprint
        assert json.loads(json.dumps(encoder.describe())).get("kind", "dual") == kind


def test_a_backbone_gives_the_networks_own_features(weights: Path) -> None:
    import timm
    import torch
    from safetensors.torch import load_file

    options = {"weights": str(weights), "size": 32, "mean": [0.5] * 3, "std": [0.5] * 3}
    row = encoded(open_image_encoder(BACKBONE, {**options, "interpolation": "bilinear"}), noise())[0]
    network = timm.create_model("test_resnet", num_classes=0).eval()
    network.load_state_dict(load_file(weights))
    square = noise().resize((32, 32), Image.Resampling.BILINEAR, box=(0, 10, 40, 50), reducing_gap=3.0)
    pixels = torch.from_numpy(np.asarray(square, dtype=np.float32) / 127.5 - 1).permute(2, 0, 1)[None]
    with torch.inference_mode():
        features = network(pixels)[0].numpy()
    np.testing.assert_allclose(row, features / np.linalg.norm(features), atol=1e-5)


TEXTS = ["red dress", "red ring", "blue dress", "blue coat", "green coat", "grey belt", "a grey ring", "red"]


def test_encoders_that_cannot_be_opened(tmp_path: Path) -> None:
    cases: list[tuple[str, Any, str]] = [
        (BACKBONE, {"size": "large"}, "image options of backbone:test_resnet: size: "),
        (BACKBONE, {"sice": 32}, "sice"),
        (BACKBONE, {"mean": [0.5, 0.5]}, r"mean\.2: "),
        (BACKBONE, {"size": 32, "resize": 16}, "resized to 16 and cut to 32"),
        ("backbone:", {}, "unknown timm backbone ''"),
        ("backbone:resnet5000", {}, "unknown timm backbone 'resnet5000'"),
        ("grid", {"size": 32}, "image options of grid: .*size"),
        ("grid:8", {}, "neither a folder nor a name"),
        ("nowhere", {}, "neither a folder nor a name"),
        ("lsa", [], "lsa without texts"),
        ("lsa", ["", "  "], "lsa without texts"),
        ("lsa:many", TEXTS, "lsa of width 'many'"),
        ("lsa:0", TEXTS, "lsa of width '0'"),
        ("lsa", ["red"], "width"),
        ("nowhere", TEXTS, "neither a folder nor a name"),
    ]
    for source, options, message in cases:
        with pytest.raises(UsageError, match=message):
            if isinstance(options, dict):
                open_image_encoder(source, options)
            else:
                open_text_encoder(source, options, root=tmp_path)


def slowly(pixels: np.ndarray) -> np.ndarray:
    """The grid of 64 × 64 pixels without margins, number by number."""
    grey = [[float(0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2]) for p in row] for row in pixels]
    colours, edges, shades = [0.0] * 192, [0.0] * 512, [0.0] * 64

    def slope(values: list[float], at: int) -> float:
        low, high = max(at - 1, 0), min(at + 1, len(values) - 1)
        return (values[high] - values[low]) / (high - low)

    for y in range(64):
        for x in range(64):
            cell = (y // 8) * 8 + x // 8
            for channel in range(3):
                colours[cell * 3 + channel] += 1 - int(pixels[y, x, channel]) / 255
            down, right = slope([row[x] for row in grey], y), slope(grey[y], x)
            angle = (math.atan2(down, right) / math.pi) % 1.0
            edges[cell * 8 + min(int(angle * 8), 7)] += math.hypot(down, right)
            if min(pixels[y, x]) < 240:
                red, green, blue = (int(one) // 64 for one in pixels[y, x])
                shades[red * 16 + green * 4 + blue] += 1
    parts = [colours, [math.sqrt(one) for one in edges], [math.sqrt(one) for one in shades]]
    lengths = [math.sqrt(sum(one * one for one in part)) for part in parts]
    row = [one / max(length, 1e-12) for part, length in zip(parts, lengths, strict=True) for one in part]
    return np.array(row) / math.sqrt(sum(one * one for one in row))


def test_the_grid_against_a_slow_one() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    pixels[10:20, 10:20] = 255
    pixels[0, 0] = pixels[-1, -1] = 0  # so that there is no margin
    row = describe_grid(Image.fromarray(pixels))
    assert row.shape == (768,)
    np.testing.assert_allclose(row, slowly(pixels), atol=1e-6)


def test_white_margins_do_not_matter() -> None:
    ring = np.full((64, 64, 3), (200, 30, 30), dtype=np.uint8)
    ring[16:48, 16:48] = 255
    for margin in ((0, 0, 0, 0), (10, 10, 10, 10), (0, 40, 7, 3), (64, 0, 64, 0)):
        framed = ImageOps.expand(Image.fromarray(ring), margin, (252, 255, 250))
        np.testing.assert_allclose(describe_grid(framed), describe_grid(Image.fromarray(ring)), atol=1e-6)


def test_lsa_is_learned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    first = open_text_encoder("lsa:3", TEXTS, root=tmp_path)
    monkeypatch.delattr(LatentSemanticAnalysis, "learn")
    again = open_text_encoder("lsa:3", [*TEXTS, " "], root=tmp_path)
    assert again.fingerprint == first.fingerprint
    with pytest.raises(AttributeError):
        open_text_encoder("lsa:3", TEXTS[:-1], root=tmp_path)


@pytest.fixture(scope="module")
def maker(shop: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> FeatureMaker:
    texts = learning_texts(shop)
    return FeatureMaker.of("grid", "lsa:12", learn_from=texts, cache=tmp_path_factory.mktemp("cache"))


def test_products_and_categories(maker: FeatureMaker, shop: Catalogue) -> None:
    made = maker.products(shop)
    assert made.catalogue is shop
    assert made.image is not None
    assert (made.image.shape[1], made.title.shape[1], made.attribute_rows.shape) == (768, 12, (6, 12))
    for present, rows, odd in (
        (made.pictured, made.image, NO_PICTURE),
        (made.present["title"], made.title, NO_TITLE),
        (made.present["attributes"], None, NO_ATTRIBUTES),
    ):
        assert np.flatnonzero(~present).tolist() == [shop.ids.index(odd)]
        assert rows is None or np.array_equal(rows.any(axis=1), present)
    np.testing.assert_allclose(made.title[3], maker.text.encode([shop.titles[3]])[0], atol=1e-6)
    for product, own in enumerate(shop.attributes):  # an attribute has one row
        items = made.attributes[[product]].indices
        assert len(items) == len(own)
        if own:
            np.testing.assert_allclose(made.attribute_rows[items], maker.text.encode(list(own)), atol=1e-6)
    assert made.about["unreadable_pictures"] == 0
    asked = maker.categories(["Dresses", "Zeppelins", "Dresses"])
    assert (asked.dual, asked.about) == (None, maker.describe())
    assert np.array_equal(asked.text[0], asked.text[2])
    assert asked.text.any(axis=1).tolist() == [True, False, True]  # a word that training never saw


def test_a_dual_encoder_reads_both(clip: Path, shop: Catalogue, tmp_path: Path) -> None:
    maker = FeatureMaker.of(str(clip), str(clip), cache=tmp_path)
    some, names = shop.subset([0, 1, 2]), ["Dresses", "Coats"]
    made, asked = maker.products(some), maker.categories(names)
    encoder = DualEncoder.load(clip)
    for rows, expected in (
        (made.image, encoder.encode_images([shop.collection.image(row) for row in range(3)])),
        (made.title, encoder.encode_texts(list(some.titles))),
        (asked.dual, encoder.encode_texts(names)),
    ):
        np.testing.assert_allclose(rows, expected, atol=1e-5)
    assert np.array_equal(asked.dual, asked.text)
    assert maker.image_texts is maker.text  # loaded once
    opened = FeatureMaker.reopen(maker.describe(), maker.text.save(tmp_path / "text"), tmp_path / "other")
    assert opened.fingerprint == maker.fingerprint
    assert opened.image_texts is opened.text
    assert np.array_equal(opened.products(some).image, made.image)


def test_another_encoder_in_the_same_place(shop: Catalogue, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    transformers_folder("clip", folder, limit=64)
    texts = learning_texts(shop)
    maker = FeatureMaker.of(str(folder), "lsa:4", learn_from=texts, cache=tmp_path)
    described, text = maker.describe(), maker.text.save(tmp_path / "text")
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match="neither a folder"):
        FeatureMaker.reopen(described, text, tmp_path)
    transformers_folder("clip", folder, seed=1, limit=64)
    with pytest.raises(MismatchError, match="was .* when it was saved and is .* now"):
        FeatureMaker.reopen(described, text, tmp_path)


def test_embeddings_made_elsewhere_stand_for_images(shop: Catalogue, tmp_path: Path) -> None:
    rows = np.random.default_rng(0).standard_normal((24, 5)).astype(np.float32)
    for name, ids in (("images", shop.collection.image_ids), ("texts", ["none"])):
        np.save(tmp_path / f"{name}.npy", rows[: len(ids)])
        (tmp_path / f"{name}.txt").write_text("\n".join(ids))
    maker = FeatureMaker.of(f"rows:{tmp_path}", "lsa:4", learn_from=TEXTS, cache=tmp_path / "cache")
    made = maker.products(shop)
    given = shop.picture_rows[made.pictured]
    expected = rows[given] / np.linalg.norm(rows[given], axis=1, keepdims=True)
    np.testing.assert_allclose(made.image[made.pictured], expected, atol=1e-6)
    assert np.array_equal(made.pictured, shop.pictured)
    assert maker.categories(["red"]).dual is None


class Shades:
    """A picture's mean colour, and a record of what was asked."""

    takes, width, fingerprint = "pictures", 3, "0123456789abcdef"

    def __init__(self, patience: int = 1000) -> None:
        self.seen: list[str] = []
        self.patience = patience

    def prepared(self, item: Any, position: str) -> np.ndarray:
        return np.asarray(item, dtype=np.float32).mean(axis=(0, 1))

    def encode_prepared(self, prepared: Sequence[Any], positions: Sequence[str]) -> np.ndarray:
        if len(self.seen) + len(positions) > self.patience:
            raise KeyboardInterrupt
        self.seen += positions
        rows = np.stack(prepared)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    monkeypatch.setattr("diptych.commerce.category_to_image.images._BATCH", 2)
    return tiny_catalogue(tmp_path / "pictures")


def test_an_image_is_encoded_once_whatever_catalogue_it_is_in(mine: Catalogue, tmp_path: Path) -> None:
    first, second, third = Shades(), Shades(), Shades()
    train, back = mine.split("train"), mine.subset(np.arange(24)[::-1])
    image_rows(first, train, tmp_path)
    rows, pictured = image_rows(second, mine, tmp_path)
    assert isinstance(rows, np.memmap)
    for product, row in enumerate(mine.picture_rows.tolist()):
        mean = np.zeros(3)
        if row >= 0:
            mean = np.asarray(mine.collection.image(row), dtype=np.float64).mean(axis=(0, 1))
        np.testing.assert_allclose(rows[product], mean / max(np.linalg.norm(mean), 1e-9), atol=1e-6)
    assert np.flatnonzero(~pictured).tolist() == [mine.ids.index(NO_PICTURE)]
    assert sorted(first.seen + second.seen) == sorted(set(mine.ids) - {NO_PICTURE})
    assert np.array_equal(image_rows(third, back, tmp_path)[0], rows[::-1])
    assert third.seen == []


def test_images_that_are_missing_or_cannot_be_read(
    mine: Catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    regions = type("Regions", (Shades,), {"takes": "regions"})
    with pytest.raises(MismatchError, match="takes regions, tiny holds pictures"):
        image_rows(regions(), mine, tmp_path)
    some, pictures = mine.subset(np.flatnonzero(mine.pictured)), tmp_path / "pictures"
    (pictures / "p06.png").unlink()
    (pictures / "p07.png").write_bytes((pictures / "p07.png").read_bytes()[:60])
    rows, pictured = image_rows(Shades(), some, tmp_path)
    missing = [some.ids.index(name) for name in ("p06", "p07")]
    assert np.flatnonzero(~pictured).tolist() == missing
    assert not rows[missing].any()
    assert "'p06'" in caplog.text
