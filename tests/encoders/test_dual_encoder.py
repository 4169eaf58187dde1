from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import MismatchError, StorageError, UnknownNameError, UsageError
from diptych.encoders.dual_encoder import DualEncoder, EncoderHeader, unit_rows
from diptych.encoders.family import FAMILIES, Family, resolve


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
    assert isinstance(DualEncoder.load(str(folder)), LengthEncoder)
    assert isinstance(LengthEncoder.load(folder), LengthEncoder)

    class Other(LengthEncoder):
        pass

    refused(MismatchError, "holds a LengthEncoder, not a Other", Other.load, folder)
    refused(UsageError, "length reads texts in one way", DualEncoder.load, f"{folder}#characters=5")


@pytest.mark.usefixtures("declared")
def test_an_older_version_survives_a_failed_save(tmp_path: Path) -> None:
    class Broken(LengthEncoder):
        def _write(self, folder: Path) -> None:
            super()._write(folder)
            raise OSError(28, "No space left on device")

    folder = LengthEncoder().save(tmp_path / "lengths")
    refused(StorageError, "No space left", Broken().save, folder)
    assert isinstance(DualEncoder.load(folder), LengthEncoder)
    assert [path.name for path in tmp_path.iterdir()] == ["lengths"]


def test_resolve(tmp_path: Path, declared: Family) -> None:
    assert resolve("len:big/one") == (declared, "big/one")
    (tmp_path / "len").touch()
    assert resolve(tmp_path) == (declared, str(tmp_path))
    assert resolve("hf:someone/clip")[0].name == "huggingface"
    assert resolve("open_clip:ViT-B-32/openai")[1] == "ViT-B-32/openai"


def test_neither_folder_nor_name() -> None:
    with pytest.raises(UsageError, match="'openai/clip' is neither a folder nor a name") as caught:
        DualEncoder.load("openai/clip")
    assert "hf:NAME" in caught.value.fix
    assert "open_clip:ARCHITECTURE/PRETRAINED" in caught.value.fix


def test_folders_that_are_no_encoder(tmp_path: Path) -> None:
    refused(StorageError, "found: nothing", DualEncoder.load, tmp_path)
    (tmp_path / "notes.txt").touch()
    refused(StorageError, r"found: notes\.txt", DualEncoder.load, tmp_path)
    EncoderHeader("no such", "f", {}).write_header(tmp_path)
    refused(UnknownNameError, "no such", DualEncoder.load, tmp_path)


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
