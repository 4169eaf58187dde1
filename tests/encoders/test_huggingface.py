from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file

from diptych.core.errors import MismatchError, NumericalError, StorageError, UsageError
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.huggingface import HuggingFaceEncoder

from .tiny_pretrained import WORDS, pictures


@pytest.fixture(scope="module")
def clip(sources: Callable[[str], Path]) -> HuggingFaceEncoder:
    return HuggingFaceEncoder.open(str(sources("clip")), device="cpu")


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_row_that_is_not_finite_is_named(sources: Callable[[str], Path]) -> None:
    encoder = DualEncoder.load(sources("siglip"), device="cpu")
    assert isinstance(encoder, HuggingFaceEncoder)
    cat = encoder.tokenizer.convert_tokens_to_ids("cat")
    encoder.model.text_model.embeddings.token_embedding.weight.data[cat] = float("nan")
    assert np.isfinite(encoder.encode_texts(["a dog", "ball"])).all()
    with pytest.raises(NumericalError, match="text 3 is not finite"):
        encoder.encode_texts(["a dog and a ball", "ball", "a dog", "the cat", "a ball"], 2)
    encoder.model.vision_model.embeddings.patch_embedding.weight.data[0] = float("inf")
    refused(NumericalError, "image 0 is not finite", encoder.encode_images, pictures(2))


class _Evil:
    """Creates a file when unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def test_bin_files_are_read_without_running_code(
    copied: Callable[[str], Path], clip: HuggingFaceEncoder
) -> None:
    folder = copied("clip")
    weights = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    torch.save(weights, folder / "pytorch_model.bin")
    assert DualEncoder.load(folder, device="cpu").fingerprint == clip.fingerprint

    touched = folder / "touched"
    torch.save({**weights, "more": _Evil(touched)}, folder / "pytorch_model.bin")
    refused(StorageError, "more than tensors", DualEncoder.load, folder, device="cpu")
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(_Evil(touched), protocol=2))
    with pytest.raises(StorageError):
        DualEncoder.load(folder, device="cpu")
    assert not touched.exists()


def test_code_that_comes_with_a_model_is_not_run(
    copied: Callable[[str], Path], clip: HuggingFaceEncoder
) -> None:
    folder = copied("clip")
    touched = folder / "touched"
    (folder / "own.py").write_text(f"import pathlib\npathlib.Path({str(touched)!r}).touch()\n")
    edit(folder / "config.json", auto_map={"AutoConfig": "own.Config", "AutoModel": "own.Model"})
    edit(folder / "tokenizer_config.json", auto_map={"AutoTokenizer": ["own.Tokenizer", None]})
    edit(folder / "preprocessor_config.json", auto_map={"AutoImageProcessor": "own.Processor"})
    assert DualEncoder.load(folder, device="cpu").fingerprint == clip.fingerprint
    assert not touched.exists()


def test_another_models_tokenizer(copied: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copied("clip")
    from transformers import BertTokenizer

    names = [f"word{place}" for place in range(600)] + WORDS.split()
    BertTokenizer(vocab={name: place for place, name in enumerate(names)}).save_pretrained(folder)
    encoder = DualEncoder.load(folder, device="cpu")
    refused(MismatchError, "the model knows 517", encoder.encode_texts, ["a dog"])


def test_a_hub_out_of_reach(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="could not be loaded, neither from its hub") as caught:
        DualEncoder.load("hf:nobody/no-such-model")
    assert "hf download nobody/no-such-model --local-dir FOLDER" in caught.value.fix
    with pytest.raises(UsageError):
        DualEncoder.load("hf:not a name!")
