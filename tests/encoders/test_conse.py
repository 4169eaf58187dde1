from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import StorageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.conse import ConseEncoder, class_texts, convex_combination
from diptych.encoders.inputs import load_tensors

from .tiny_conse import NAMES
from .tiny_pretrained import pictures


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


def test_rows_are_those_of_the_parts(sources: Callable[[str], Path], encoders: Callable[[str], Any]) -> None:
    import timm
    from sentence_transformers import SentenceTransformer

    folder, encoder = sources("conse"), encoders("conse")
    network = timm.create_model("test_resnet", num_classes=5).eval()
    network.load_state_dict(load_tensors(folder / "network.safetensors", ""))
    sentences = SentenceTransformer(str(folder / "sentence"), device="cpu")
    names = sentences.encode(NAMES, show_progress_bar=False)
    shown, texts = pictures(5), ["a dog", "two dogs on the left"]
    prepared = np.stack([encoder.preprocessing(picture) for picture in shown])
    with torch.inference_mode():
        logits = network(torch.from_numpy(prepared)).numpy()
    expected = np.stack([slow(row.tolist(), names, 3, 1.5) for row in logits])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    assert len(np.unique(expected.round(4), axis=0)) == 5
    np.testing.assert_allclose(encoder.encode_images(shown, batch_size=2), expected, atol=1e-5)
    rows = sentences.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(encoder.encode_texts(texts), rows, atol=1e-6)


def test_preprocessing_is_timms_where_nothing_is_given(copied: Callable[[str], Path]) -> None:
    import timm
    from timm.data import resolve_data_config

    place = copied("conse")
    content = read_json(place / "conse.json")
    del content["preprocessing"]
    write_json(place / "conse.json", content)
    found = ConseEncoder.open(place).preprocessing
    config = resolve_data_config({}, model=timm.create_model("test_resnet"))
    assert found.size == config["input_size"][1]
    assert found.resize == math.floor(found.size / config["crop_pct"])
    assert found.mean == tuple(config["mean"])


def test_a_template_surrounds_each_name_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    file.write_text(" a dog\nred {ball}\n", encoding="utf-8")
    texts = class_texts("names.txt", tmp_path, "a photo of {name}.")
    assert texts == ["a photo of a dog.", "a photo of red {ball}."]
    assert class_texts(str(file), Path("elsewhere")) == ["a dog", "red {ball}"]
    for content, message in (
        (b"", "is empty"),
        (b"dog\n\ncat\n", "nothing in line 2"),
        (b"\xff\xfe", "is not UTF-8"),
    ):
        file.write_bytes(content)
        refused(StorageError, message, class_texts, "names.txt", tmp_path)
    names = class_texts("imagenet-1k", tmp_path)  # in the order of the usual outputs
    assert len(names) == 1000
    assert (names[0], names[281], names[430]) == ("tench, Tinca tinca", "tabby, tabby cat", "basketball")
