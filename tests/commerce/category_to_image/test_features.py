"""Rows of pictures and texts by frozen encoders."""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageOps
from tiny_catalogue import NO_ATTRIBUTES, NO_PICTURE, NO_TITLE, tiny_catalogue

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.features import FeatureMaker, learning_texts
from diptych.commerce.category_to_image.features.maker import make_text_encoder
from diptych.commerce.category_to_image.features.pictures import (
    PictureEncoder,
    make_picture_encoder,
    picture_rows,
)
from diptych.commerce.category_to_image.features.pictures.kinds import (
    GRID_WIDTH,
    MAX_SIDE,
    describe_grid,
    on_square_page,
    without_white_margins,
)
from diptych.core.errors import ImageError, MismatchError, StorageError, UsageError
from diptych.encoders import DualEncoder

from ...encoders.tiny_pretrained import transformers_folder

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


@pytest.mark.parametrize("change", [{"size": 40}, {"mean": "0,0,0"}, {"timm": {"act_layer": "silu"}}])
def test_the_fingerprint_knows(change: dict[str, Any], weights: Path) -> None:
    options = {"weights": str(weights), "size": 32}
    plain, changed = (make_picture_encoder(NAME, {**options, **more}) for more in ({}, change))
    assert plain.fingerprint != changed.fingerprint
    assert make_picture_encoder(NAME, dict(plain.options)).fingerprint == plain.fingerprint


def test_precision_is_known(weights: Path) -> None:
    options = {"weights": str(weights), "size": 32}
    exact, rough = (make_picture_encoder(NAME, options, one) for one in ("float32", "bfloat16"))
    rows = [one.encode([one.prepared(picture(), "a")], ["a"])[0] for one in (exact, rough)]
    assert exact.fingerprint != rough.fingerprint
    assert 0.99 < rows[0] @ rows[1] < 1.0001


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        (NAME, {"size": "large"}, "image options of backbone:test_resnet: size: "),
        (NAME, {"sice": 32}, "sice"),
        (NAME, {"mean": "0.5,0.5"}, r"mean\.2: "),
        (NAME, {"size": 32, "resize": 16}, "resized to 16 and cut to 32"),
        ("backbone:", {}, "backbone without a name"),
        ("backbone:resnet5000", {}, "unknown timm backbone 'resnet5000'"),
        ("grid", {"size": 32}, "image options of grid: .*size"),
        ("grid:8", {}, "grid takes nothing behind it"),
        ("nowhere", {}, "neither a folder nor a name"),
    ],
)
def test_what_cannot_be_made(source: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        make_picture_encoder(source, options)


def test_weights_and_pictures_that_do_not_fit(weights: Path, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="image options weights") as missing:
        make_picture_encoder(NAME, {"weights": str(tmp_path / "no.safetensors")})
    assert "no.safetensors" in missing.value.message
    with pytest.raises(MismatchError, match="does not fit the backbone"):
        make_picture_encoder("backbone:test_vit", {"weights": str(weights)})
    with pytest.raises(ImageError, match="image p07 is 1 × 600 pixels"):
        make_picture_encoder(NAME, {"weights": str(weights)}).prepared(picture(1, 600), "p07")


def test_weights_are_never_random(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*given: Any, pretrained: bool, **options: Any) -> None:
        assert pretrained
        raise OSError("no network")

    monkeypatch.setattr("timm.create_model", unreachable)
    with pytest.raises(UsageError, match="backbone test_resnet could not be loaded.*no network"):
        make_picture_encoder(NAME)


def blot(colour: tuple[int, int, int] = (200, 30, 30), shape: str = "box", side: int = 64) -> Image.Image:
    """A product that fills its picture: a box, or a ring with the page in its middle."""
    pixels = np.full((side, side, 3), 255, dtype=np.uint8)
    pixels[:] = colour
    if shape == "ring":
        pixels[side // 4 : 3 * side // 4, side // 4 : 3 * side // 4] = 255
    return Image.fromarray(pixels)


def slowly(pixels: np.ndarray) -> np.ndarray:
    """The description of 64 × 64 pixels without margins, number by number."""
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
    whole = math.sqrt(sum(one * one for one in row))
    return np.array([one / whole for one in row])


def test_a_very_long_picture_gets_a_page_of_bounded_size() -> None:
    long = Image.new("RGB", (20 * MAX_SIDE, 10), (200, 30, 30))  # a square around it would have 80 GB
    page = on_square_page(long)
    assert page.size == (MAX_SIDE, MAX_SIDE)
    assert page.getpixel((5, (MAX_SIDE - 1) // 2)) == (200, 30, 30)
    assert page.getpixel((5, 0)) == (255, 255, 255)
    assert abs(float(np.linalg.norm(describe_grid(long))) - 1) < 1e-5


def test_against_a_slow_one() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    pixels[10:20, 10:20] = 255
    pixels[0, 0] = pixels[-1, -1] = 0  # so that there is no margin
    row = describe_grid(Image.fromarray(pixels))
    assert row.dtype == np.float32
    assert row.shape == (GRID_WIDTH,) == (768,)
    np.testing.assert_allclose(row, slowly(pixels), atol=1e-6)


@pytest.mark.parametrize("margin", [(0, 0, 0, 0), (10, 10, 10, 10), (0, 40, 7, 3), (64, 0, 64, 0)])
def test_white_margins_do_not_matter(margin: tuple[int, int, int, int]) -> None:
    picture = blot(shape="ring")
    framed = ImageOps.expand(picture, margin, (252, 255, 250))
    assert without_white_margins(framed).size == picture.size
    np.testing.assert_allclose(describe_grid(framed), describe_grid(picture), atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 90), st.integers(1, 90), st.integers(0, 2**31))
def test_every_picture_has_a_unit_row(width: int, height: int, seed: int) -> None:
    pixels = np.random.default_rng(seed).choice([0, 128, 239, 240, 255], (height, width, 3)).astype(np.uint8)
    row = describe_grid(Image.fromarray(pixels))
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) == pytest.approx(1, abs=1e-5)


TEXTS = ["red dress", "red ring", "blue dress", "blue coat", "green coat", "grey belt", "a grey ring", "red"]


def test_lsa_is_learned_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from diptych.encoders.targets.kinds.lsa import LatentSemanticAnalysis

    first = make_text_encoder("lsa:3", TEXTS, root=tmp_path)
    monkeypatch.delattr(LatentSemanticAnalysis, "learn")
    again = make_text_encoder("lsa:3", [*TEXTS, " "], root=tmp_path)
    assert again.fingerprint == first.fingerprint
    with pytest.raises(AttributeError):
        make_text_encoder("lsa:3", TEXTS[:-1], root=tmp_path)


@pytest.mark.parametrize(
    ("source", "texts", "message"),
    [
        ("lsa", [], "lsa without texts"),
        ("lsa", ["", "  "], "lsa without texts"),
        ("lsa:many", TEXTS, "lsa of width 'many'"),
        ("lsa:0", TEXTS, "lsa of width '0'"),
        ("lsa", ["red"], "width"),
        ("nowhere", TEXTS, "neither a folder nor a name"),
    ],
)
def test_what_cannot_be_made_texts(source: str, texts: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message):
        make_text_encoder(source, texts, root=tmp_path)


def test_what_is_learned_from(tmp_path: Path) -> None:
    texts = learning_texts(tiny_catalogue(tmp_path))
    assert texts[0] == "Red dresse no. 0. colour: red. material: cotton"
    assert texts[10].startswith("colour: green")  # has no title
    assert "Accessories" in texts
    assert len(texts) == 24 + 10  # "Clothing" and "Accessories" stand twice in the tree


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return transformers_folder("clip", tmp_path_factory.mktemp("models") / "clip", limit=64)


@pytest.fixture(scope="module")
def maker(shop: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> FeatureMaker:
    texts = learning_texts(shop)
    return FeatureMaker.of("grid", "lsa:12", learn_from=texts, cache=tmp_path_factory.mktemp("cache"))


def test_products(maker: FeatureMaker, shop: Catalogue) -> None:
    made = maker.products(shop, missing="none")
    assert list(made.ids) == list(shop.ids)
    assert (made.width("image"), made.width("title"), made.attribute_rows.shape[1]) == (768, 12, 12)
    for present, odd in ((made.pictured, NO_PICTURE), (made.titled, NO_TITLE)):
        assert np.flatnonzero(~present).tolist() == [shop.ids.index(odd)]
    assert not made.title[10].any()
    assert not made.image[5].any()
    np.testing.assert_allclose(made.title[3], maker.text.encode([shop.titles[3]])[0], atol=1e-6)
    counts = {"without_picture": 1, "without_title": 1, "without_attributes": 1, "unreadable_pictures": 0}
    assert counts.items() <= made.about.items()


def test_an_attribute_has_one_row(maker: FeatureMaker, shop: Catalogue) -> None:
    made = maker.products(shop, missing="none")
    texts = sorted({text for given in shop.attributes for text in given})
    assert len(made.attribute_rows) == len(texts) == made.about["distinct_attributes"] == 6
    for product, own in enumerate(shop.attributes):
        start, end = made.attribute_start[product : product + 2]
        rows = made.attribute_rows[made.attribute_items[start:end]]
        assert len(rows) == len(own)
        if own:
            np.testing.assert_allclose(rows, maker.text.encode(list(own)), atol=1e-6)
    assert not made.present("attributes")[list(shop.ids).index(NO_ATTRIBUTES)]


def test_categories(maker: FeatureMaker) -> None:
    made = maker.categories(["Dresses", "Zeppelins", "Dresses"])
    assert made.dual is None
    assert made.about == maker.describe()
    assert np.array_equal(made.text[0], made.text[2])
    assert not made.text[1].any()  # a word that nobody has seen
    assert np.linalg.norm(made.text[0]) == pytest.approx(1, abs=1e-6)


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
    assert maker.image.texts is maker.text  # loaded once
    maker.save(tmp_path / "maker")
    opened = FeatureMaker.open(tmp_path / "maker", cache=tmp_path / "other")
    assert opened.fingerprint == maker.fingerprint
    assert np.array_equal(opened.products(some).image, made.image)
    with pytest.raises(UsageError, match="precision bfloat16 with a dual encoder"):
        FeatureMaker.of(str(clip), str(clip), cache=tmp_path, precision="bfloat16")


def test_another_encoder_in_the_same_place(shop: Catalogue, tmp_path: Path) -> None:
    folder = tmp_path / "clip"
    transformers_folder("clip", folder, limit=64)
    texts = learning_texts(shop)
    FeatureMaker.of(str(folder), "lsa:4", learn_from=texts, cache=tmp_path).save(tmp_path / "maker")
    shutil.rmtree(folder)
    with pytest.raises(UsageError, match="neither a folder"):
        FeatureMaker.open(tmp_path / "maker", cache=tmp_path)
    transformers_folder("clip", folder, seed=1, limit=64)
    with pytest.raises(MismatchError, match="was .* when it was saved and is .* now"):
        FeatureMaker.open(tmp_path / "maker", cache=tmp_path)


class Shades(PictureEncoder):
    """A picture's mean colour, and a record of what was asked."""

    kind: ClassVar[str] = "shades"
    source = "shades"
    width = 3
    fingerprint = "0123456789abcdef"

    def __init__(self, patience: int = 1000) -> None:
        self.options: dict[str, Any] = {}
        self.seen: list[str] = []
        self.patience = patience

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind}

    def prepared(self, item: Any, name: str) -> np.ndarray:
        return np.asarray(item, dtype=np.float32).mean(axis=(0, 1))

    def encode(self, prepared: Sequence[Any], names: Sequence[str]) -> np.ndarray:
        if len(self.seen) + len(names) > self.patience:
            raise KeyboardInterrupt
        self.seen += names
        rows = np.stack(prepared)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    monkeypatch.setattr("diptych.commerce.category_to_image.features.pictures.contract._BATCH", 2)
    return tiny_catalogue(tmp_path / "pictures")


def test_rows_are_the_encoders_own(mine: Catalogue, tmp_path: Path) -> None:
    encoder = Shades()
    found = picture_rows(encoder, mine, tmp_path, "none")
    assert isinstance(found.rows, np.memmap)
    for product, row in enumerate(mine.picture_rows.tolist()):
        mean = np.zeros(3)
        if row >= 0:
            mean = np.asarray(mine.collection.image(row), dtype=np.float64).mean(axis=(0, 1))
        np.testing.assert_allclose(found.rows[product], mean / max(np.linalg.norm(mean), 1e-9), atol=1e-6)
    assert np.flatnonzero(~found.pictured).tolist() == [mine.ids.index(NO_PICTURE)]
    assert (found.without, found.unreadable) == (1, 0)
    assert sorted(encoder.seen) == sorted(set(mine.ids) - {NO_PICTURE})


def test_a_picture_is_encoded_once(mine: Catalogue, tmp_path: Path) -> None:
    train, back = mine.split("train"), mine.subset(np.arange(24)[::-1])
    picture_rows(Shades(), train, tmp_path, "none")
    second, third = Shades(), Shades()
    whole = picture_rows(second, mine, tmp_path, "none")
    assert sorted(second.seen) == sorted(set(mine.ids) - set(train.ids))
    assert np.array_equal(picture_rows(third, back, tmp_path, "none").rows, whole.rows[::-1])
    assert third.seen == []


def test_pictures_of_equal_bytes_share_a_row(mine: Catalogue, tmp_path: Path) -> None:
    pictures = tmp_path / "pictures"
    (pictures / "p01.png").write_bytes((pictures / "p00.png").read_bytes())
    encoder = Shades()
    rows = picture_rows(encoder, mine, tmp_path, "none").rows
    assert len(encoder.seen) == 22
    assert np.array_equal(rows[0], rows[1])


def test_what_a_kill_leaves_is_used(mine: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        picture_rows(Shades(patience=11), mine, tmp_path / "killed", "none")
    after = Shades()
    found = picture_rows(after, mine, tmp_path / "killed", "none")
    assert len(after.seen) == 23 - 10  # five batches of two were whole
    assert np.array_equal(found.rows, picture_rows(Shades(), mine, tmp_path / "whole", "none").rows)


def test_what_has_no_rows(mine: Catalogue, tmp_path: Path) -> None:
    encoder = Shades()
    with pytest.raises(ImageError, match="1 of the 24 products of tiny have no picture, 'p05' the first"):
        picture_rows(encoder, mine, tmp_path)
    assert encoder.seen == []  # before any work
    regions = type("Regions", (Shades,), {"takes": "regions"})
    with pytest.raises(MismatchError, match="takes regions, tiny holds pictures"):
        picture_rows(regions(), mine, tmp_path)


def test_a_picture_that_cannot_be_read(
    mine: Catalogue, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    some = mine.subset(np.flatnonzero(mine.pictured))
    pictures = tmp_path / "pictures"
    (pictures / "p06.png").unlink()
    (pictures / "p07.png").write_bytes((pictures / "p07.png").read_bytes()[:60])
    with pytest.raises(ImageError, match="picture of product 'p06' cannot be used"):
        picture_rows(Shades(), some, tmp_path)
    found = picture_rows(Shades(), some, tmp_path, "none")
    assert (found.without, found.unreadable) == (0, 2)
    missing = [some.ids.index(name) for name in ("p06", "p07")]
    assert np.flatnonzero(~found.pictured).tolist() == missing
    assert not found.rows[missing].any()
    assert "'p06'" in caplog.text
    # Their rows of zeros are in the cache now, and are still no pictures.
    with pytest.raises(ImageError, match="picture of product 'p06' cannot be used"):
        picture_rows(Shades(), some, tmp_path)
