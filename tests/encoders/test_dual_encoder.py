from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image
from refusals import refused

from diptych.core.errors import (
    ImageError,
    MismatchError,
    NumericalError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.data.images import OverlaidPicture
from diptych.encoders.dual_encoder import DualEncoder, EncoderHeader, unit_rows
from diptych.encoders.family import FAMILIES, Family, resolve
from diptych.encoders.inputs import MAX_ASPECT, as_picture
from diptych.encoders.two_stage import ALBEF_CLEANING, BLIP_CLEANING, Cleaning


class LengthEncoder(DualEncoder):
    """Encodes a text by its length and an image by its first number."""

    family: ClassVar[str] = "length"
    fingerprint = "0123456789abcdef"
    width = 2

    def encode_images(self, images: Iterable[Any], batch_size: int = 64) -> np.ndarray:
        values = [[float(np.ravel(image)[0]), 1.0] for image in images]
        return unit_rows(np.array(values), "image", range(len(values)))

    def encode_texts(self, texts: Sequence[str], batch_size: int = 256) -> np.ndarray:
        values = [[float(len(text)), 1.0] for text in texts]
        return unit_rows(np.array(values), "text", range(len(values)))

    def describe(self) -> dict[str, Any]:
        return {"family": self.family, "name": "somewhere/lengths", "width": self.width}

    def _write(self, folder: Path) -> None:
        (folder / "weights.json").write_text("[1]")

    def _settings(self) -> dict[str, Any]:
        return {"unit": "letters"}


def _open(source: str, device: str | None) -> DualEncoder:
    assert json.loads(Path(source, "weights.json").read_text()) == [1]
    return LengthEncoder()


@pytest.fixture
def declared(monkeypatch: pytest.MonkeyPatch) -> Family:
    family = Family("length", "by length", ("len:N",), "len", _open, lambda folder: (folder / "len").exists())
    FAMILIES.names()  # all others are found first
    monkeypatch.setitem(FAMILIES._members, "length", family)
    return family


@pytest.mark.usefixtures("declared")
def test_save_and_load(tmp_path: Path) -> None:
    folder = LengthEncoder().save(tmp_path / "lengths")
    assert EncoderHeader.open(folder) == EncoderHeader("length", "0123456789abcdef", {"unit": "letters"})
    card = (folder / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: diptych\n")
    assert "# lengths\n" in card
    assert isinstance(DualEncoder.load(folder), LengthEncoder)
    assert isinstance(LengthEncoder.load(folder), LengthEncoder)

    class Other(LengthEncoder):
        pass

    refused(MismatchError, "holds a LengthEncoder, not a Other", Other.load, folder)
    refused(UsageError, "length reads texts in one way", DualEncoder.load, f"{folder}#characters=5")


def test_nothing_heavy_is_imported() -> None:
    script = (
        "import sys\n"
        "from diptych.encoders.dual_encoder import DualEncoder\n"
        "from diptych.encoders.family import FAMILIES, resolve\n"
        "FAMILIES.names(); resolve('hf:a/b')\n"
        "heavy = {'torch', 'transformers', 'open_clip', 'PIL', 'safetensors', 'huggingface_hub'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_other_things_are_named() -> None:
    laid = OverlaidPicture(Image.new("RGB", (3, 3)), SimpleNamespace(key="k", patches=lambda *_: []))
    for item, message in (
        (np.zeros((2, 2, 3), np.float32), r"image 7 is a float32 array of shape \(2, 2, 3\)"),
        (np.zeros((2, 2, 4), np.uint8), r"image 7 is a uint8 array of shape \(2, 2, 4\)"),
        (np.zeros((0, 2, 3), np.uint8), "image 7 has no pixels"),
        (None, "image 7 is a NoneType"),
        (Image.new("RGB", (0, 3)), "image 7 is 0 × 3 pixels"),
        (Image.new("RGB", (MAX_ASPECT + 1, 1)), "image 7 is 501 × 1 pixels"),
        (laid, r"image 7 has something laid over it .* does not paste"),
    ):
        refused(ImageError, message, as_picture, item, 7)


@given(arrays.arrays(np.float32, (4, 3), elements=st.floats(-1e6, 1e6, width=32)))
def test_length_is_one_or_nearly_zero(rows: np.ndarray) -> None:
    lengths = np.linalg.norm(rows.astype(np.float64), axis=1)
    unit = np.linalg.norm(unit_rows(rows, "image", range(4)).astype(np.float64), axis=1)
    np.testing.assert_allclose(unit[lengths > 1e-11], 1.0, atol=1e-6)
    assert np.all(unit <= 1.0 + 1e-6)
    for value in (np.nan, np.inf, -np.inf):
        wrong = np.ones((3, 2), np.float32)
        wrong[1, 0] = value
        refused(NumericalError, "embedding of text 41 is not finite", unit_rows, wrong, "text", [40, 41, 42])


GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "pre_caption.json").read_text(encoding="utf-8"))
RULES = {"albef": ALBEF_CLEANING, "xvlm": ALBEF_CLEANING, "blip": BLIP_CLEANING}


def test_golden() -> None:
    """Outputs of the published code."""
    for model, rule in RULES.items():
        assert [rule(caption) for caption in GOLDEN["captions"]] == GOLDEN["out"][model]


@pytest.mark.parametrize("rule", [ALBEF_CLEANING, BLIP_CLEANING])
@given(text=st.text(st.sampled_from("aB .,'-/\n\t!(~"), max_size=80))
def test_properties(rule: Cleaning, text: str) -> None:
    cleaned = rule(text)
    assert not set(cleaned) & set(rule.marks)
    assert cleaned == cleaned.lower()
    assert "  " not in cleaned
    assert len(cleaned.split(" ")) <= 30
    uncut = replace(rule, words=1000)(text)
    assert rule.counts([text], [7], 50) == [7 if cleaned == uncut else 51]


def test_sources_that_are_no_encoder(tmp_path: Path, declared: Family) -> None:
    assert resolve("len:big/one") == (declared, "big/one")
    assert resolve("hf:someone/clip")[0].name == "huggingface"
    assert resolve("open_clip:ViT-B-32/openai")[1] == "ViT-B-32/openai"
    error = refused(
        UsageError, "'openai/clip' is neither a folder nor a name", DualEncoder.load, "openai/clip"
    )
    assert "hf:NAME" in error.fix
    assert "open_clip:ARCHITECTURE/PRETRAINED" in error.fix
    refused(StorageError, "found: nothing", DualEncoder.load, tmp_path)
    (tmp_path / "notes.txt").touch()
    refused(StorageError, r"found: notes\.txt", DualEncoder.load, tmp_path)
    EncoderHeader("no such", "f", {}).write_header(tmp_path)
    refused(UnknownNameError, "no such", DualEncoder.load, tmp_path)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "len").touch()
    assert resolve(tmp_path / "own") == (declared, str(tmp_path / "own"))
