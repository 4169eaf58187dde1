from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import refused
from scipy.sparse import csr_array

from diptych.core.context import stop_when
from diptych.core.errors import DataError, Interrupted, MismatchError, NumericalError, UsageError
from diptych.sparse.sparsifier import Sparsifier
from diptych.sparse.task import Pairs
from diptych.sparse.training import train_sparsifier
from diptych.training.run import TrainingFolder, TrainingState

from .small_pairs import DATA, WIDTH, options, small_pairs

CPU = torch.device("cpu")


def test_an_epoch_has_every_caption_once_with_its_image_and_terms_in_batches_of_nearly_one_size():
    data = small_pairs(25)
    pairs = Pairs(data, csr_array(np.eye(50, 60, dtype=np.float32)), 16, 0)
    batches = pairs.epoch(3)
    assert pairs.steps == len(batches) == 4
    assert sorted(np.concatenate(batches)) == list(range(50))
    assert sorted(len(batch) for batch in batches) == [12, 12, 13, 13]
    for rows in batches:
        batch = pairs.load(rows, CPU)
        assert np.array_equal(batch.texts, data.texts.rows[rows])
        assert np.array_equal(batch.images, data.images.rows[rows // 2])
        assert batch.in_caption.nonzero().tolist() == [[place, row] for place, row in enumerate(rows)]


def test_what_does_not_belong_together_is_refused():
    DATA.check()
    wide, broken, home = np.ones((24, WIDTH + 1)), np.full((48, WIDTH), np.nan), DATA.caption_image
    for name, value, error, words in (
        ("images", {"rows": wide}, MismatchError, "image rows have width 9, text rows 8"),
        ("images", {"encoder": "other"}, MismatchError, "image rows have encoder other, text rows e0"),
        ("images", {"similarity": "order"}, MismatchError, "similarity order, text rows cosine"),
        ("captions", ["a"] * 47, DataError, "48 rows of captions, 47 captions"),
        ("texts", {"rows": broken}, NumericalError, "text0"),
        ("caption_image", home - 1, DataError, "of each the row of its image"),
        ("caption_image", home + 1, DataError, "24 rows of images"),
        ("caption_image", home.astype(float), DataError, "float64"),
        ("caption_image", home[:, None], DataError, r"of shape \(48, 1\)"),
    ):
        part = replace(getattr(DATA, name), **value) if isinstance(value, dict) else value
        refused(error, words, replace(DATA, **{name: part}).check)


def trained(folder, chosen=None, data=None, stop_at=None, validate=True):
    data = data or small_pairs()
    steps = 0

    def should_stop():
        nonlocal steps
        steps += 1
        return stop_at is not None and steps >= stop_at

    validation = small_pairs(seed=1) if validate else None
    with stop_when(should_stop):
        return train_sparsifier(data, chosen or options(), folder, validation=validation, accelerator="cpu")


def test_a_finished_training_is_opened(tmp_path):
    first = trained(tmp_path / "a")
    before = (tmp_path / "a" / "head" / "model.safetensors").stat().st_mtime_ns
    again = trained(tmp_path / "a", stop_at=0)
    assert again.fingerprint == first.fingerprint
    assert (tmp_path / "a" / "head" / "model.safetensors").stat().st_mtime_ns == before


def test_it_learns_to_retrieve_and_to_be_sparse(tmp_path):
    ends = {}
    for eta in (0.0, 0.1):
        chosen = options(training={"epochs": 30}, loss={"eta": eta}, head={"width": 16})
        folder = tmp_path / str(eta)
        trained(folder, chosen)
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        assert [line["epoch"] for line in lines] == list(range(1, 31))
        assert [line["p_c"] for line in lines[:3]] == pytest.approx([0, 1 / 30, 2 / 30])
        measured = [line for line in lines if "validation" in line]
        assert [line["epoch"] for line in measured] == list(range(3, 31, 3))
        assert lines[-1]["distillation"] < 0.9 * lines[0]["distillation"]
        assert lines[-1]["loss"] == pytest.approx(
            lines[-1]["distillation"] + eta * lines[-1]["penalty"], rel=1e-5
        )
        ends[eta] = measured[-1]["validation"]
    assert ends[0.0]["rsum"] > 250  # chance is 129
    assert ends[0.1]["flops"] < ends[0.0]["flops"] / 2
    assert ends[0.1]["image nonzeros"] < ends[0.0]["image nonzeros"]


def test_validation_is_what_a_search_finds(tmp_path):
    for mode in ("c", "0"):
        head = trained(tmp_path / mode, options(expansion={"mode": mode}))
        data = small_pairs(seed=1)
        images = head.embed(data.images).rows.toarray()
        texts = head.embed(data.texts, data.captions).rows.toarray()
        scores = texts @ images.T
        own = np.take_along_axis(scores, data.caption_image[:, None], axis=1)
        assert len(np.unique(scores)) == scores.size or mode == "0"
        line = json.loads((tmp_path / mode / "metrics.jsonl").read_text().splitlines()[-1])
        if mode == "c":
            ranks = 1 + (scores > own).sum(axis=1)
            assert line["validation"]["t2i R@5"] == pytest.approx(100 * (ranks <= 5).mean())
        flops = ((texts > 0).mean(axis=0) * (images > 0).mean(axis=0)).sum()
        assert line["validation"]["flops"] == pytest.approx(flops, rel=1e-5)
        assert line["validation"]["text nonzeros"] == pytest.approx((texts > 0).sum(axis=1).mean())


def test_the_best_epoch_is_kept_when_asked_for(tmp_path):
    chosen = options(training={"select": "best", "epochs": 6, "learning_rate": 0.3, "warmup": 0.0})
    head = trained(tmp_path / "a", chosen)
    about = TrainingFolder(tmp_path / "a").numbers
    lines = [json.loads(line) for line in (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()]
    late = {line["epoch"]: line["validation"]["rsum"] for line in lines if line["step"] >= round(0.2 * 18)}
    assert set(late) == {2, 3, 4, 5, 6}
    best = max(late, key=lambda epoch: (late[epoch], -epoch))
    assert (about["best_epoch"], about["best"]) == (best, late[best])
    assert Sparsifier.load(tmp_path / "a" / "head").fingerprint == head.fingerprint


def test_other_options_or_data_are_refused(tmp_path):
    with pytest.raises(Interrupted):
        trained(tmp_path / "a", stop_at=2)
    before = sorted(path.name for path in (tmp_path / "a").iterdir())
    for said, other in (
        ("loss.eta = 0.005, requested is 0.5", {"chosen": options(loss={"eta": 0.5})}),
        (r"data = \w+, requested is", {"data": small_pairs(seed=5)}),
        ("encoder = e0, requested is e9", {"data": small_pairs(encoder="e9"), "validate": False}),
        ("validation", {"validate": False}),
    ):
        refused(MismatchError, f"begun with {said}", trained, tmp_path / "a", **other)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == before


def test_a_head_from_before_there_was_a_choice_of_terms_is_the_published_one(tmp_path):
    first = trained(tmp_path / "a")
    file = tmp_path / "a" / TrainingFolder.MARKER
    state = TrainingState.open(file)
    del state.begun_with["vocabulary"]["terms"], state.begun_with["loss"]["words"]
    state.save(file)
    assert trained(tmp_path / "a").fingerprint == first.fingerprint
    words = options(vocabulary={"terms": "words"})
    refused(MismatchError, "begun with vocabulary.terms = pieces", trained, tmp_path / "a", words)


def test_a_training_goes_on_in_the_precision_it_was_begun_with(tmp_path, monkeypatch):
    chosen = options(training={"precision": "auto"})
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: True, raising=False)
    trained(tmp_path / "a", chosen)
    with pytest.raises(Interrupted):
        trained(tmp_path / "b", chosen, stop_at=4)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False, raising=False)
    resumed = trained(tmp_path / "b", chosen)
    assert TrainingFolder(tmp_path / "b").begun_with["precision"] == "bfloat16"
    assert resumed.fingerprint == Sparsifier.load(tmp_path / "a" / "head").fingerprint


def test_bad_input_leaves_no_folder(tmp_path):
    data = small_pairs()
    infinite = data.images.rows.copy()
    infinite[0, 0] = np.inf
    empty = [replace(side, ids=[], rows=side.rows[:0]) for side in (data.images, data.texts)]
    nothing = replace(data, images=empty[0], texts=empty[1], captions=[], caption_image=np.zeros(0, np.int64))
    broken = replace(data, images=replace(data.images, rows=infinite))
    usual, held = options(), small_pairs(seed=1)
    for given, chosen, validation, error, words in (
        (data, options(training={"select": "best"}), None, UsageError, "best needs validation rows"),
        (replace(data, captions=[]), usual, held, DataError, "48 rows of captions, 0 captions"),
        (broken, usual, held, NumericalError, "image0"),
        (data, options(training={"batch_size": 100}), held, UsageError, "batches of 100 pairs"),
        (data, usual, small_pairs(encoder="e9"), MismatchError, "encoder e9, text rows e0"),
        (data, usual, nothing, DataError, "0 rows of images"),
    ):
        with pytest.raises(error, match=words):
            train_sparsifier(given, chosen, tmp_path / "a", validation=validation, accelerator="cpu")
    assert not (tmp_path / "a").exists()


def test_a_loss_that_explodes_is_told(tmp_path):
    chosen = options(training={"learning_rate": 1e30, "projection_learning_rate": 1e30, "warmup": 0.0})
    refused(NumericalError, r"the loss is (nan|inf) at step", trained, tmp_path / "a", chosen)
