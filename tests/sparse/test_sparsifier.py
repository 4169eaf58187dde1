from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

from diptych.core.errors import DataError, MismatchError, NumericalError, UsageError
from diptych.sparse.head import Kind, fresh_heads, head_of
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.vocabulary import TermVocabulary

from .small_pairs import WIDTH, options, small_pairs

DATA = small_pairs()
VOCABULARY = TermVocabulary.learned(DATA.captions, 60)


def made(mode: str = "c", seed: int = 0, shared: bool = True, encoder: str = "e0") -> Sparsifier:
    heads = fresh_heads(WIDTH, 6, len(VOCABULARY.terms), shared=shared, bias=True, eps=1e-12, seed=seed)
    return Sparsifier(heads, VOCABULARY, options(expansion={"mode": mode}), encoder, device="cpu")


def dense(sparsifier: Sparsifier, rows: np.ndarray, kind: Kind) -> np.ndarray:
    with torch.no_grad():
        weights: np.ndarray = head_of(sparsifier.heads, kind)(torch.from_numpy(np.array(rows))).numpy()
    return weights


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("batch_size", [1, 7, 1024])
def test_rows_are_the_heads_whatever_the_block(shared: bool, batch_size: int) -> None:
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


def test_without_expansion_a_caption_keeps_its_own_terms() -> None:
    sparsifier, own = made(), VOCABULARY.caption_terms(DATA.captions)
    found = sparsifier.sparsify(DATA.texts.rows, "text", own, expand=False, batch_size=7)
    expected = dense(sparsifier, DATA.texts.rows, "text") * (own.toarray() > 0)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-5)
    assert 0 < found.nnz < own.nnz
    trained_without = made("0").sparsify(DATA.texts.rows, "text", own)
    assert np.array_equal(trained_without.toarray(), found.toarray())
    with_it = sparsifier.sparsify(DATA.texts.rows, "text", own)
    assert with_it.nnz > found.nnz
    assert np.array_equal(with_it.toarray(), sparsifier.sparsify(DATA.texts.rows, "text").toarray())


def test_a_picture_needs_no_caption_terms() -> None:
    rows = made("0").sparsify(DATA.images.rows, "image", expand=False)
    assert np.array_equal(rows.toarray(), made("c").sparsify(DATA.images.rows, "image").toarray())


def test_empty_rows_stay() -> None:
    sparsifier = made()
    nothing = csr_array((48, len(VOCABULARY.terms)), dtype=np.float32)
    found = sparsifier.sparsify(DATA.texts.rows, "text", nothing, expand=False)
    assert (found.shape, found.nnz) == ((48, len(VOCABULARY.terms)), 0)
    assert sparsifier.sparsify(np.zeros((0, WIDTH), np.float32), "text").shape == (0, len(VOCABULARY.terms))


def test_wrong_input_is_told() -> None:
    sparsifier = made()
    with pytest.raises(MismatchError, match=r"width 8, these have shape \(3, 9\)"):
        sparsifier.sparsify(np.ones((3, 9), np.float32), "image")
    for head, expand in ((made("0"), True), (sparsifier, False)):
        with pytest.raises(UsageError, match="their own terms only, which are not given"):
            head.sparsify(DATA.texts.rows, "text", expand=expand)
    with pytest.raises(DataError, match=r"caption terms have shape \(48, 3\)"):
        sparsifier.sparsify(DATA.texts.rows, "text", csr_array((48, 3)), expand=False)
    rows = DATA.texts.rows.copy()
    rows[5] = np.nan
    with pytest.raises(NumericalError, match="text row 5 is not finite"):
        sparsifier.sparsify(rows, "text", batch_size=4)
    heads = fresh_heads(WIDTH, 6, 3, shared=True, bias=True, eps=1e-12, seed=0)
    with pytest.raises(MismatchError, match="the head has 3 terms, its vocabulary"):
        Sparsifier(heads, VOCABULARY, options(), "e0")


def test_embeddings_keep_their_ids_and_say_what_made_them() -> None:
    sparsifier = made()
    found = sparsifier.embed(DATA.texts, DATA.captions)
    assert list(found.ids) == list(DATA.texts.ids)
    assert found.terms == VOCABULARY.terms
    assert (found.kind, found.data) == ("text", "data0")
    assert found.about == {"split": "train", "head": sparsifier.fingerprint, "expansion": True}
    assert np.array_equal(found.rows.toarray(), sparsifier.sparsify(DATA.texts.rows, "text").toarray())
    images = sparsifier.embed(DATA.images)
    assert images.encoder == found.encoder
    assert images.about["expansion"] is False
    alone = sparsifier.embed(DATA.texts, DATA.captions, expand=False)
    assert alone.about["expansion"] is False
    own = VOCABULARY.caption_terms(DATA.captions)
    expected = sparsifier.sparsify(DATA.texts.rows, "text", own, expand=False)
    assert np.array_equal(alone.rows.toarray(), expected.toarray())


def test_embeddings_that_do_not_belong_to_it_are_refused() -> None:
    sparsifier = made()
    with pytest.raises(MismatchError, match="trained on rows of encoder e0, these are of e7"):
        sparsifier.embed(replace(DATA.images, encoder="e7"))
    with pytest.raises(DataError, match="3 captions for 48 rows"):
        sparsifier.embed(DATA.texts, DATA.captions[:3])
    with pytest.raises(UsageError, match="own terms only"):
        sparsifier.embed(DATA.texts, expand=False)
    unknown = made(encoder="").embed(replace(DATA.images, encoder="e7"))
    assert unknown.encoder != sparsifier.embed(DATA.images).encoder


def test_the_fingerprint_knows_weights_terms_and_expansion() -> None:
    assert made().fingerprint == made(encoder="other").fingerprint
    assert made().fingerprint == made("c+w").fingerprint == made("1").fingerprint
    found = {
        made().fingerprint,
        made("0").fingerprint,
        made(seed=1).fingerprint,
        made(shared=False).fingerprint,
    }
    assert len(found) == 4


def test_rows_are_numbers_of_a_known_kind() -> None:
    sparsifier = made()
    rows = np.zeros((2, WIDTH), np.float32)
    with pytest.raises(UsageError, match="'caption'"):
        sparsifier.sparsify(rows, "caption")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="batch_size 0"):
        sparsifier.sparsify(rows, "image", batch_size=0)
    with pytest.raises(DataError, match="not numbers"):
        sparsifier.sparsify(rows.astype(str), "image")
