from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from diptych.core.errors import (
    MismatchError,
    StorageError,
    UnknownNameError,
    UsageError,
)
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.conse import ConseEncoder, class_texts, convex_combination
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.inputs import load_tensors, save_tensors

from .tiny_conse import NAMES, network_file
from .tiny_pretrained import pictures


@pytest.fixture(scope="module")
def folder(sources: Callable[[str], Path]) -> Path:
    return sources("conse")


@pytest.fixture(scope="module")
def encoder(encoders: Callable[[str], Any]) -> ConseEncoder:
    return encoders("conse")  # type: ignore[no-any-return]


def edited(folder: Path, place: Path, **changes: object) -> Path:
    """A folder that differs in its conse.json, with whole paths to the same files."""
    place.mkdir()
    said = read_json(folder / "conse.json")
    said |= {key: str(folder / said[key]) for key in ("weights", "names", "sentences")}
    write_json(place / "conse.json", said | changes)
    return place


def slow(logits: list[float], rows: np.ndarray, top: int, temperature: float) -> np.ndarray:
    """The paper's formula, one picture at a time."""
    largest = sorted(range(len(logits)), key=lambda row: -logits[row])[:top]
    powers = [math.exp(logits[row] / temperature) for row in largest]
    weighted = sum(power * rows[row] for power, row in zip(powers, largest, strict=True))
    return np.asarray(weighted / sum(powers))


@given(st.integers(0, 1000), st.integers(1, 6), st.floats(0.2, 5.0))
def test_combinations_are_the_papers(seed: int, top: int, temperature: float) -> None:
    random = np.random.default_rng(seed)
    logits, rows = random.normal(0, 3, (4, 6)), random.normal(size=(6, 3))
    found = convex_combination(logits, rows, top, temperature)
    expected = [slow(row.tolist(), rows, top, temperature) for row in logits]
    assert np.allclose(found, expected)
    shifted = convex_combination(logits + 700.0, rows, top, temperature)
    assert np.allclose(shifted, expected)


def test_rows_are_those_of_the_parts(encoder: ConseEncoder, folder: Path) -> None:
    import timm
    from sentence_transformers import SentenceTransformer

    network = timm.create_model("test_resnet", num_classes=5).eval()
    network.load_state_dict(load_tensors(folder / "network.safetensors", ""))
    sentences = SentenceTransformer(str(folder / "sentence"), device="cpu")
    names = sentences.encode(NAMES, show_progress_bar=False)
    shown = pictures(5)
    prepared = np.stack([encoder.classifier.preprocessing(picture) for picture in shown])
    with torch.inference_mode():
        logits = network(torch.from_numpy(prepared)).numpy()
    expected = np.stack([slow(row.tolist(), names, 3, 1.5) for row in logits])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert len(np.unique(expected.round(4), axis=0)) == 5
    np.testing.assert_allclose(encoder.encode_images(shown, batch_size=2), expected, atol=1e-5)
    texts = ["a dog", "two dogs on the left"]
    wanted = sentences.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode_texts(texts), wanted, atol=1e-6)
    assert encoder.encode_images([]).shape == (0, 24)
    assert encoder.width == 24


@pytest.mark.parametrize(
    "changes",
    [
        {"top": 2},
        {"temperature": 1.0},
        {"template": "a photo of {name}"},
        {"preprocessing": {"size": 32, "resize": 32}},
    ],
)
def test_what_changes_a_row_changes_the_fingerprint(
    changes: dict[str, object], folder: Path, encoder: ConseEncoder, tmp_path: Path
) -> None:
    other = ConseEncoder.open(edited(folder, tmp_path / "other", **changes), device="cpu")
    assert other.fingerprint != encoder.fingerprint
    assert not np.allclose(other.encode_images(pictures(3)), encoder.encode_images(pictures(3)), atol=1e-4)


def test_weights_of_another_network_are_refused(folder: Path, tmp_path: Path) -> None:
    state = load_tensors(folder / "network.safetensors", "")
    save_tensors({name: value for name, value in state.items() if name[:3] != "fc."}, tmp_path / "headless")
    with pytest.raises(MismatchError, match="2 tensors missing.*fc.bias"):
        ConseEncoder.open(edited(folder, tmp_path / "a", weights=str(tmp_path / "headless")))
    network_file(tmp_path / "seven", classes=7)
    with pytest.raises(MismatchError, match="2 of another shape"):
        ConseEncoder.open(edited(folder, tmp_path / "b", weights=str(tmp_path / "seven")))
    with pytest.raises(StorageError, match="does not exist"):
        ConseEncoder.open(edited(folder, tmp_path / "d", weights="nowhere.safetensors"))


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"network": "test_resnett"}, UnknownNameError, "unknown timm network"),
        ({"network_options": {"nonsense": 1}}, UsageError, "nonsense"),
        ({"networks": "x"}, StorageError, "unknown key 'networks'"),
        ({"top": 0}, StorageError, "top: .*greater than or equal to 1"),
        ({"top": 6}, UsageError, "top 6 of 5 classes"),
        ({"temperature": 0}, StorageError, "temperature"),
        ({"names": "imagenet-1k"}, MismatchError, "test_resnet has 5 outputs, there are 1,000 names"),
        ({"names": "absent.txt"}, UsageError, "neither a set of classes"),
        ({"template": "a photo"}, UsageError, "no place for a name"),
    ],
)
def test_a_wrong_file_says_what_is_wrong(
    changes: dict[str, object], kind: type[Exception], message: str, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=message):
        ConseEncoder.open(edited(folder, tmp_path / "c", **changes))


def test_a_folder_without_the_file_and_one_without_its_model(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"conse.json does not exist"):
        DualEncoder.load(f"conse:{tmp_path}")
    (tmp_path / "conse.json").write_text("{}")
    with pytest.raises(StorageError, match="network: Field required"):
        DualEncoder.load(tmp_path)
    (tmp_path / "conse.json").write_text("[1]")
    with pytest.raises(StorageError, match="Input should be"):
        DualEncoder.load(tmp_path)


def test_preprocessing_is_timms_where_nothing_is_said(folder: Path, tmp_path: Path) -> None:
    import timm
    from timm.data import resolve_data_config

    place = edited(folder, tmp_path / "c")
    said = read_json(place / "conse.json")
    del said["preprocessing"]
    write_json(place / "conse.json", said)
    found = ConseEncoder.open(place).classifier.preprocessing
    config = resolve_data_config({}, model=timm.create_model("test_resnet"))
    assert found.size == config["input_size"][1]
    assert found.resize == math.floor(found.size / config["crop_pct"])
    assert found.mean == tuple(config["mean"])


def test_imagenets_names_are_in_the_order_of_the_usual_outputs(tmp_path: Path) -> None:
    names = class_texts("imagenet-1k", tmp_path)
    assert len(names) == 1000
    assert (names[0], names[281], names[430]) == ("tench, Tinca tinca", "tabby, tabby cat", "basketball")


def test_a_template_surrounds_each_name_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_text(" a dog\nred {ball}\n", encoding="utf-8")
    texts = class_texts("names.txt", tmp_path, "a photo of {name}.")
    assert texts == ["a photo of a dog.", "a photo of red {ball}."]
    assert class_texts(str(tmp_path / "names.txt"), Path("elsewhere")) == ["a dog", "red {ball}"]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "is empty"), (b"dog\n\ncat\n", "nothing in line 2"), (b"\xff\xfe", "is not UTF-8")],
)
def test_a_file_that_is_no_list_of_names_is_told(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(StorageError, match=message):
        class_texts("names.txt", tmp_path)
