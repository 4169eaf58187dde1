from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from diptych.core.errors import DiptychError, StorageError, UsageError
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.sparse.head import SparseHead, fresh_heads
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.vocabulary import TermVocabulary

from .small_pairs import WIDTH, options, small_pairs
from .tiny_masked import PIECES, masked_folder

DATA = small_pairs()
ROWS = DATA.texts.rows


def saved(folder: Path, shared: bool = True, bias: bool = True) -> Sparsifier:
    vocabulary = TermVocabulary.learned(DATA.captions, 60)
    heads = fresh_heads(WIDTH, 6, len(vocabulary.terms), shared=shared, bias=bias, eps=1e-5, seed=0)
    chosen = options(head={"shared": shared, "bias": bias, "eps": 1e-5})
    sparsifier = Sparsifier(heads, vocabulary, chosen, "e0", device="cpu")
    sparsifier.save(folder)
    return sparsifier


@pytest.mark.parametrize(("shared", "bias"), [(True, True), (False, True), (True, False)])
def test_saved_and_loaded_it_is_the_same(shared: bool, bias: bool, tmp_path: Path) -> None:
    first = saved(tmp_path / "head", shared, bias)
    second = Sparsifier.load(tmp_path / "head", device="cpu")
    assert second.fingerprint == first.fingerprint
    assert second.options == first.options
    assert (second.encoder, second.width) == ("e0", WIDTH)
    assert second.vocabulary.terms == first.vocabulary.terms
    assert np.array_equal(second.sparsify(ROWS, "text").toarray(), first.sparsify(ROWS, "text").toarray())
    moved = first.save(tmp_path / "head")  # replaces what is its own
    assert Sparsifier.load(moved, device="cpu").fingerprint == first.fingerprint


def test_the_layout_is_that_of_the_published_heads(tmp_path: Path) -> None:
    sparsifier = saved(tmp_path / "head")
    config = read_json(tmp_path / "head" / "config.json")
    assert (config["model_type"], config["dense_size"], config["mlm_head"]) == ("d2s", WIDTH, None)
    names = ("proj", "vocab_layer_norm", "vocab_projector")
    weights = load_file(tmp_path / "head" / "model.safetensors")
    assert set(weights) == {f"{name}.{part}" for name in names for part in ("weight", "bias")}
    card = (tmp_path / "head" / "README.md").read_text()
    assert sparsifier.fingerprint in card
    assert str(tmp_path) not in card


def published(folder: Path, safe: bool, model: Path) -> SparseHead:
    """A head as the papers' authors keep it: its vocabulary is only named."""
    torch.manual_seed(0)
    head = SparseHead(WIDTH, 8, len(PIECES))
    folder.mkdir()
    if safe:
        save_file(head.state_dict(), folder / "model.safetensors")
    else:
        torch.save(head.state_dict(), folder / "pytorch_model.bin")
    config = {"architectures": ["D2SModel"], "dense_size": WIDTH, "mlm_head": str(model), "model_type": "d2s"}
    write_json(folder / "config.json", config)
    return head


@pytest.mark.parametrize("safe", [True, False])
def test_a_published_head_is_read(safe: bool, tmp_path: Path) -> None:
    model = masked_folder("distilbert", tmp_path / "distilbert")
    head = published(tmp_path / "head", safe, model)
    sparsifier = Sparsifier.load(tmp_path / "head", device="cpu")
    assert list(sparsifier.vocabulary.terms) == PIECES
    assert (sparsifier.encoder, sparsifier.width) == ("", WIDTH)
    with torch.no_grad():
        expected = head(torch.from_numpy(ROWS)).numpy()
    np.testing.assert_allclose(sparsifier.sparsify(ROWS, "text").toarray(), expected, atol=1e-5)
    again = Sparsifier.load(sparsifier.save(tmp_path / "again"), device="cpu")
    assert again.fingerprint == sparsifier.fingerprint


def test_pickled_code_is_refused(tmp_path: Path) -> None:
    published(tmp_path / "head", False, masked_folder("bert", tmp_path / "bert"))
    torch.save({"proj.weight": Path("x")}, tmp_path / "head" / "pytorch_model.bin")
    with pytest.raises(StorageError, match="hold more than tensors"):
        Sparsifier.load(tmp_path / "head")


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _cut_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"no")


def _other_weights(folder: Path) -> None:
    save_file({"encoder.weight": torch.ones(2)}, folder / "model.safetensors")


def _one_weight_less(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["vocab_layer_norm.bias"]
    save_file(weights, folder / "model.safetensors")


def _old(folder: Path) -> None:
    config = read_json(folder / "config.json")
    config["diptych"]["format"] = 0
    write_json(folder / "config.json", config)


def _strange_options(folder: Path) -> None:
    config = read_json(folder / "config.json")
    config["diptych"]["options"]["loss"]["gamma"] = 1
    write_json(folder / "config.json", config)


def _no_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def _another_model(folder: Path) -> None:
    write_json(folder / "config.json", {"model_type": "bert"})


def _no_vocabulary(folder: Path) -> None:
    config = read_json(folder / "config.json")
    del config["diptych"]
    write_json(folder / "config.json", config)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_without_weights, "holds no weights"),
        (_cut_weights, "not a safetensors file"),
        (_other_weights, "not those of a sparse head"),
        (_one_weight_less, "not those of a sparse head"),
        (_old, "head of format 0, this version reads 1"),
        (_strange_options, "loss.gamma"),
        (_no_tokenizer, "tokenizer.json"),
        (_another_model, "not a sparse head"),
        (_no_vocabulary, "names no mlm_head"),
    ],
)
def test_a_damaged_folder_is_told(damage: object, message: str, tmp_path: Path) -> None:
    saved(tmp_path / "head")
    assert callable(damage)
    damage(tmp_path / "head")
    with pytest.raises(DiptychError, match=message):
        Sparsifier.load(tmp_path / "head")


def test_a_name_that_no_hub_knows_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nobody/nothing could not be loaded") as caught:
        Sparsifier.load("nobody/nothing")
    assert "hf download nobody/nothing" in caught.value.fix


def test_a_folder_of_other_things_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "head").mkdir()
    (tmp_path / "head" / "thesis.tex").write_text("x")
    with pytest.raises(UsageError, match="holds other things"):
        saved(tmp_path / "head")
    assert (tmp_path / "head" / "thesis.tex").read_text() == "x"


def test_a_config_of_strangers_is_told(tmp_path: Path) -> None:
    saved(tmp_path / "head")
    sound = read_json(tmp_path / "head" / "config.json")
    ours = sound["diptych"]
    for said, words in (
        (3, "format unknown"),
        ({}, "format None"),
        ({"format": 1}, "options"),
        ({**ours, "options": []}, "options"),
        ({**ours, "options": {"head": {"width": 10**12}}}, "head.width"),
    ):
        write_json(tmp_path / "head" / "config.json", {**sound, "diptych": said})
        with pytest.raises(StorageError, match=words):
            Sparsifier.load(tmp_path / "head")
    old = {key: value for key, value in ours.items() if key != "vocabulary"}
    write_json(tmp_path / "head" / "config.json", {**sound, "diptych": old})
    assert Sparsifier.load(tmp_path / "head").encoder == "e0", "heads of before it was written down"


def test_another_heads_terms_of_the_same_number_are_refused(tmp_path: Path) -> None:
    saved(tmp_path / "head")
    terms = read_json(tmp_path / "head" / "terms.json")
    terms[6], terms[7] = terms[7], terms[6]
    write_json(tmp_path / "head" / "terms.json", terms)
    with pytest.raises(StorageError, match="has the vocabulary"):
        Sparsifier.load(tmp_path / "head")


def test_weights_that_are_no_numbers_or_of_two_vocabularies_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "head" / "model.safetensors"
    saved(tmp_path / "head", shared=False)
    weights = load_file(file)
    shorter = {
        name: value[:-1].clone() if name.startswith("text.vocab_projector") else value
        for name, value in weights.items()
    }
    save_file(shorter, file)
    with pytest.raises(StorageError, match="different shapes"):
        Sparsifier.load(tmp_path / "head")
    weights["text.proj.bias"][2] = float("nan")
    save_file(weights, file)
    with pytest.raises(StorageError, match=r"text\.proj\.bias .* is not finite"):
        Sparsifier.load(tmp_path / "head")
