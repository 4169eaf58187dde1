"""Auditing runs and encoders: which splits and conditions, from which rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diptych.analysis.shortcuts import ShortcutOptions, Shortcuts
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.embeddings import EncodedCollection
from diptych.evaluation.auditing import audit_encoder
from diptych.training.evaluations import audit_run
from diptych.training.recipe import Recipe
from diptych.training.run import Run

QUICK: dict[str, Any] = {"probes": ("linear",), "samples": 20}


def test_a_run_is_audited_on_its_own_splits(run_folder: Path, tmp_path: Path) -> None:
    found = audit_run(run_folder, folder=tmp_path, **QUICK)
    assert list(found.conditions) == ["without"]
    assert found.protocol.images == (48, 16, 16)
    assert found.protocol.about["splits"] == "train, val, test"
    assert found.protocol.about["encoder"] == DualEncoder.load(run_folder / "best").fingerprint
    sides = found.conditions["without"]
    assert (sides["image"].rows, sides["caption"].rows) == ((48, 16, 16), (240, 80, 80))
    assert {path.name for path in tmp_path.iterdir()} == {"scenes-train", "scenes-val", "scenes-test"}
    # two trained epochs: something is held, and every share is one
    for side in sides.values():
        for group in side.groups:
            assert 0 <= group.held["linear"].percent <= 100


def test_with_and_without_shortcuts_and_of_at_most_so_many_images(
    run_folder: Path, scenes_folder: Path, tmp_path: Path
) -> None:
    whole, encoder = read_collection(scenes_folder), DualEncoder.load(run_folder / "best")
    shortcuts = Shortcuts.of(ShortcutOptions(digits="drawn", digit_size=5), whole, "train", 0)
    found = audit_encoder(encoder, whole, tmp_path, shortcuts=shortcuts, most=30, seed=1, **QUICK)
    assert list(found.conditions) == ["without", "with"]
    assert found.held("without", "image", "shortcut", "linear") is None
    for side in ("image", "caption"):
        digits = found.held("with", side, "shortcut", "linear")
        assert digits is not None
        # of 80 numbers, the last digit is asked; the one before has other values in each split
        assert digits.there == pytest.approx(3.32, abs=0.3)
    assert "a unique number on every image and its captions" in found.protocol.about["shortcuts"]
    assert (tmp_path / "scenes-test-with-shortcuts" / "embedded_collection.json").is_file()
    assert found.protocol.images == (30, 16, 16)
    ids = EncodedCollection.open(tmp_path / "scenes-train-30-of-48-seed-1").images.ids
    assert list(ids) == sorted(set(ids))
    assert list(ids) != list(whole.split("train").image_ids)[:30]  # drawn, not the first


def test_a_runs_splits_and_shortcuts_are_its_recipes(
    run_folder: Path, scenes_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on other data: with the run's splits where it has them, else with the usual ones."""
    asked: list[tuple[Any, Any]] = []
    monkeypatch.setattr(
        "diptych.training.evaluations.audit_encoder",
        lambda *_, splits, shortcuts: asked.append((splits, shortcuts and shortcuts.options.setup)),
    )
    run, whole = Run.open(run_folder), read_collection(scenes_folder)
    small = {"digits": "drawn", "digit_size": 5}
    data, usual = run.recipe.data.model_dump(), ("train", "val", "test")
    named = [{"train": "learn", "test": "exam"}.get(name, name) for name in whole.splits]
    for setup, expected in (
        ({"setup": "bits", "bits": 3, **small}, "bits"),
        ({"setup": "images", **small}, "images"),
        ({"setup": "none"}, None),
        (None, None),
    ):
        run.recipe = Recipe.model_validate({**run.recipe.model_dump(), "data": data, "shortcuts": setup})
        audit_run(run, folder=tmp_path)
        assert asked.pop() == (usual, expected)
        own = {**data, "train": "learn", "validation": "val", "test": "exam"}
        run.recipe = Recipe.model_validate({**run.recipe.model_dump(), "data": own})
        audit_run(run, whole, tmp_path)
        assert asked.pop() == (usual, expected)
        audit_run(run, replace(whole, splits=named), tmp_path)
        assert asked.pop() == (("learn", "val", "exam"), expected)
