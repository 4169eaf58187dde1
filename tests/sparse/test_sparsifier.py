from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from refusals import refused
from safetensors.torch import load_file, save_file
from scipy.sparse import csr_array

from diptych.core.errors import (
    DataError,
    DiptychError,
    MismatchError,
    NumericalError,
    StorageError,
    UsageError,
)
from diptych.core.files import write_json
from diptych.core.reading import read_json
from diptych.encoders.dual_encoder import DualEncoder
from diptych.sparse.head import Kind, SparseHead, fresh_heads, head_of
from diptych.sparse.sparsified import SparseEncoder
from diptych.sparse.sparsifier import Sparsifier

from .small_pairs import DATA, VOCABULARY, WIDTH, made, options
from .tiny_masked import PIECES, masked_folder

NAMES = ["proj", "vocab_layer_norm", "vocab_projector"]
BOTH = [f"{name}.{part}" for name in NAMES for part in ("weight", "bias")]
ROWS = DATA.texts.rows
ROW_OF = dict(zip(DATA.captions, ROWS, strict=True))
OWN = VOCABULARY.caption_terms(DATA.captions)


def test_a_heads_row_by_hand():
    head = SparseHead(1, 2, 3, eps=0.0)
    with torch.no_grad():
        head.proj.weight.copy_(torch.tensor([[1.0], [3.0]]))
        head.proj.bias.zero_()
        head.vocab_projector.weight.copy_(torch.tensor([[0.0, 2.0], [2.0, 0.0], [1.0, 1.0]]))
        head.vocab_projector.bias.copy_(torch.tensor([0.0, 0.0, 0.5]))
    # (1, 3) · 5 has mean 10 and deviation 5: normed, it is (−1, 1).
    assert head.hidden(torch.tensor([[5.0]])).tolist() == [[-1.0, 1.0]]
    assert head(torch.tensor([[5.0]]))[0].tolist() == pytest.approx([math.log(3), 0.0, math.log(1.5)])
    assert (head.width, head.hidden_width, head.terms) == (1, 2, 3)


def dense(sparsifier, rows, kind):
    with torch.no_grad():
        weights: np.ndarray = head_of(sparsifier.heads, kind)(torch.from_numpy(np.array(rows))).numpy()
    return weights


def test_rows_are_the_heads_whatever_the_block():
    for batch_size in [1, 7, 1024]:
        for shared in [True, False]:
            sparsifier = made(shared=shared)
            sides: tuple[Kind, ...] = ("image", "text")
            for kind in sides:
                rows = (DATA.images if kind == "image" else DATA.texts).rows
                found = sparsifier.sparsify(rows, kind, batch_size=batch_size)
                assert isinstance(found, csr_array)
                assert found.dtype == np.float32
                assert found.has_canonical_format
                assert (found.data > 0).all()
                np.testing.assert_allclose(found.toarray(), dense(sparsifier, rows, kind), atol=1e-5)
            same = np.allclose(dense(sparsifier, rows, "image"), dense(sparsifier, rows, "text"))
            assert same == shared


def test_without_expansion_a_caption_keeps_its_own_terms():
    sparsifier = made()
    found = sparsifier.sparsify(ROWS, "text", OWN, expand=False, batch_size=7)
    expected = dense(sparsifier, ROWS, "text") * (OWN.toarray() > 0)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-5)
    assert 0 < found.nnz < OWN.nnz
    assert np.array_equal(made("0").sparsify(ROWS, "text", OWN).toarray(), found.toarray())
    with_it = sparsifier.sparsify(ROWS, "text", OWN)
    assert with_it.nnz > found.nnz
    assert np.array_equal(with_it.toarray(), sparsifier.sparsify(ROWS, "text").toarray())
    # A picture needs no caption's terms.
    rows = made("0").sparsify(DATA.images.rows, "image", expand=False)
    assert np.array_equal(rows.toarray(), sparsifier.sparsify(DATA.images.rows, "image").toarray())


BROKEN = ROWS.copy()
BROKEN[5] = np.nan
SHORT: Any = fresh_heads(WIDTH, 6, 3, shared=True, bias=True, eps=1e-12, seed=0)


def test_wrong_input_is_refused():
    head, sparsify, narrow = made(), made().sparsify, OWN[:, :3]
    foreign = replace(DATA.images, encoder="e7")
    for error, said, call, *values, options_ in (
        (MismatchError, r"8, these have shape \(3, 9\)", sparsify, np.ones((3, 9)), "image", {}),
        (UsageError, "their own terms only", made("0").sparsify, ROWS, "text", {}),
        (UsageError, "given are none", sparsify, ROWS, "text", {"expand": False}),
        (UsageError, r"given are shape \(48, 3\)", sparsify, ROWS, "text", narrow, {"expand": False}),
        (NumericalError, "text row 5 is not finite", sparsify, BROKEN, "text", {"batch_size": 4}),
        (MismatchError, "3 terms, its vocabulary", Sparsifier, SHORT, VOCABULARY, options(), "e0", {}),
        (MismatchError, "encoder e0, these are of e7", head.embed, foreign, {}),
        (DataError, "3 captions for 48 rows", head.embed, DATA.texts, DATA.captions[:3], {}),
        (UsageError, "own terms only", head.embed, DATA.texts, {"expand": False}),
        (
            MismatchError,
            "encoder e9, the encoder's are of e0",
            SparseEncoder,
            Known(),
            made(encoder="e9"),
            {},
        ),
        (MismatchError, "rows of width 5, .* of 8", SparseEncoder, Known(), made(width=5), {}),
    ):
        refused(error, said, call, *values, **options_)
    assert SparseEncoder(Known(), made(encoder="")).terms
    fix = refused(UsageError, "no/thing could not be loaded", Sparsifier.load, "no/thing").fix
    assert "hf download no/thing" in fix


def test_embeddings_keep_their_ids_and_say_what_made_them():
    sparsifier = made()
    found = sparsifier.embed(DATA.texts, DATA.captions)
    assert list(found.ids) == list(DATA.texts.ids)
    assert (found.terms, found.kind, found.data) == (VOCABULARY.terms, "text", "data0")
    assert found.about == {"split": "train", "head": sparsifier.fingerprint, "expansion": True}
    assert np.array_equal(found.rows.toarray(), sparsifier.sparsify(ROWS, "text").toarray())
    images = sparsifier.embed(DATA.images)
    assert (images.encoder, images.about["expansion"]) == (found.encoder, False)
    alone = sparsifier.embed(DATA.texts, DATA.captions, expand=False)
    assert alone.about["expansion"] is False
    expected = sparsifier.sparsify(ROWS, "text", OWN, expand=False)
    assert np.array_equal(alone.rows.toarray(), expected.toarray())
    assert made(encoder="").embed(replace(DATA.images, encoder="e7")).encoder != images.encoder


def test_the_fingerprint_knows_weights_terms_and_expansion():
    assert made().fingerprint == made(encoder="other").fingerprint
    assert made().fingerprint == made("c+w").fingerprint == made("1").fingerprint
    others = (made(), made("0"), made(seed=1), made(shared=False))
    assert len({one.fingerprint for one in others}) == 4


def test_saved_and_loaded_it_is_the_same(tmp_path):
    for shared, bias in [(True, True), (False, True), (True, False)]:
        first, folder = made(shared=shared, bias=bias), tmp_path / f"{shared}-{bias}"
        second = Sparsifier.load(first.save(folder), device="cpu")
        assert second.fingerprint == first.fingerprint
        assert second.options == first.options
        assert (second.encoder, second.width) == ("e0", WIDTH)
        assert second.vocabulary.terms == first.vocabulary.terms
        assert np.array_equal(second.sparsify(ROWS, "text").toarray(), first.sparsify(ROWS, "text").toarray())
        moved = first.save(folder)  # replaces what is its own
        assert Sparsifier.load(moved, device="cpu").fingerprint == first.fingerprint


def test_the_layout_is_that_of_the_published_heads(tmp_path):
    sparsifier = made()
    folder = sparsifier.save(tmp_path / "head")
    config = read_json(folder / "config.json")
    assert (config["model_type"], config["dense_size"], config["mlm_head"]) == ("d2s", WIDTH, None)
    assert set(load_file(folder / "model.safetensors")) == set(BOTH)
    card = (folder / "README.md").read_text()
    assert sparsifier.fingerprint in card
    assert str(tmp_path) not in card


def published(folder, safe, model):
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
def test_a_published_head_is_read(safe, tmp_path):
    head = published(tmp_path / "head", safe, masked_folder("distilbert", tmp_path / "distilbert"))
    sparsifier = Sparsifier.load(tmp_path / "head", device="cpu")
    assert list(sparsifier.vocabulary.terms) == PIECES
    assert (sparsifier.encoder, sparsifier.width) == ("", WIDTH)
    assert (sparsifier.options.head.width, sparsifier.options.head.bias) == (8, True)
    with torch.no_grad():
        expected = head(torch.from_numpy(ROWS)).numpy()
    np.testing.assert_allclose(sparsifier.sparsify(ROWS, "text").toarray(), expected, atol=1e-5)
    again = Sparsifier.load(sparsifier.save(tmp_path / "again"), device="cpu")
    assert again.fingerprint == sparsifier.fingerprint
    if not safe:  # pickled code is refused
        torch.save({"proj.weight": Path("x")}, tmp_path / "head" / "pytorch_model.bin")
        refused(StorageError, "holds more than tensors", Sparsifier.load, tmp_path / "head")


def weights_with(change):
    def damage(folder):
        weights = load_file(folder / "model.safetensors")
        change(weights)
        save_file(weights, folder / "model.safetensors")

    return damage


def json_with(change, name="config.json"):
    def damage(folder):
        value = read_json(folder / name)
        change(value)
        write_json(folder / name, value)

    return damage


def shorter(weights):
    for name in ("text.vocab_projector.weight", "text.vocab_projector.bias"):
        weights[name] = weights[name][:-1].clone()


DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "model.safetensors").unlink(), "holds no weights"),
    (lambda folder: (folder / "model.safetensors").write_bytes(b"no"), "not a safetensors file"),
    (weights_with(lambda weights: weights.pop("text.vocab_layer_norm.bias")), "not those of a sparse head"),
    (weights_with(shorter), "different shapes"),
    (weights_with(lambda weights: weights["text.proj.bias"].fill_(math.nan)), r"text\.proj\.bias .* finite"),
    (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json"),
    (lambda folder: write_json(folder / "config.json", {"model_type": "bert"}), "not a sparse head"),
    (json_with(lambda config: config.pop("diptych")), "names no mlm_head"),
    (json_with(lambda config: config["diptych"]["options"]["loss"].update(gamma=1)), "loss.gamma"),
    (json_with(lambda config: config.update(diptych={})), "config.json: options"),
    (json_with(lambda config: config["diptych"]["options"]["head"].update(width=10**12)), "head.width"),
    (json_with(lambda terms: terms.append(terms.pop(6)), "terms.json"), "has the vocabulary"),
]


def test_a_corrupt_folder_is_refused(tmp_path):
    for number, (damage, message) in enumerate(DAMAGES):
        folder = made(shared=False).save(tmp_path / str(number))
        damage(folder)
        refused(DiptychError, message, Sparsifier.load, folder)


class Known(DualEncoder):
    """Rows of captions that it has heard of, and of pictures by number."""

    family: ClassVar[str] = "known"
    width = WIDTH
    fingerprint = "e0"

    def encode_images(self, images, batch_size=64):
        return np.array([DATA.images.rows[number] for number in images])

    def encode_texts(self, texts, batch_size=256):
        return np.array([ROW_OF.get(text, np.eye(WIDTH, dtype=np.float32)[0]) for text in texts])

    def describe(self):
        return {"family": "known"}

    def _write(self, folder):
        raise NotImplementedError


def test_an_encoder_makes_the_rows_that_embeddings_have():
    sparsifier = made()
    encoder = SparseEncoder(Known(), sparsifier)
    embedded = sparsifier.embed(DATA.images)
    assert np.array_equal(encoder.encode_images(range(24)).toarray(), embedded.rows.toarray())
    texts = sparsifier.embed(DATA.texts)
    known = sorted({caption: row for row, caption in enumerate(DATA.captions)}.values())  # some occur twice
    found = encoder.encode_texts([DATA.captions[row] for row in known])
    np.testing.assert_allclose(found.toarray(), texts.rows.toarray()[known], atol=1e-5)
    assert encoder.fingerprint == embedded.encoder == texts.encoder
    assert encoder.terms == embedded.terms
