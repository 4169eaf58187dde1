"""The audit as a study's columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from diptych.analysis.information import Audit
from diptych.core.artifact import decode, encode
from diptych.data.readers import read_collection
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.studies.study import Subject
from diptych.studies.svl_information import Information, _taken, columns_of_audit
from diptych.training.run import Run


@pytest.fixture(scope="module")
def subject(run_folder: Path) -> Subject:
    run = Run.open(run_folder)
    return Subject(run, read_collection(str(run.recipe.data.path)), None)


def test_columns(subject: Subject) -> None:
    (measured,) = Information(most=40, samples=20, probes=("linear",))(subject)
    assert (measured.on.dataset, measured.on.split, measured.on.images) == ("scenes", "test", 16)
    found = Audit.open(subject.run.folder / "audit" / "audit.json")
    assert found.protocol.images == (40, 16, 16)
    assert (subject.run.folder / "audit" / "report.html").is_file()
    specific = found.held("without", "image", "specific", "linear")
    assert specific is not None
    assert measured.values["image specific"] == specific.percent
    assert (measured.values["image specific low"], measured.values["image specific high"]) == specific.ends
    for name in ("image shared", "image undescribed", "caption shared", "caption unstated"):
        assert 0 <= measured.values[name] <= 100
    never = found.held("without", "image", "never described", "linear")
    assert never is not None
    assert measured.values["image never described"] == never.percent
    assert measured.values["minimal"] < measured.values["optimal"]
    assert measured.values["gap"] <= measured.values["optimal"]
    assert "image shortcut" not in measured.values
    assert "image shared (mlp)" not in measured.values


def _audit(given: dict[str, Any]) -> Audit:
    found: Audit = decode(Audit, given, {})
    return found


def test_shortcuts_are_of_the_condition_with_them(subject: Subject) -> None:
    """Named without "with": there are none in the other condition."""
    found = Audit.open(_audited(subject))
    sides: dict[str, Any] = encode(found, {})["conditions"]["without"]
    group = {**sides["image"]["groups"][0], "name": "shortcut"}
    carrying = {**sides, "image": {**sides["image"], "groups": [*sides["image"]["groups"], group]}}
    both = _audit({**encode(found, {}), "conditions": {"without": sides, "with": carrying}})
    values = columns_of_audit(both)
    assert values["image shortcut"] == values["image shared"] == values["with image shared"]
    assert "with image shortcut" not in values
    assert values["with gap"] == values["gap"]


def test_words_of_captions_have_a_column(subject: Subject) -> None:
    given = encode(Audit.open(_audited(subject)), {})
    sides = given["conditions"]["without"]
    of_words = {**sides["caption"], "groups": [{**sides["caption"]["groups"][0], "name": "words"}]}
    found = _audit({**given, "conditions": {"without": {**sides, "caption": of_words}}})
    held = found.held("without", "caption", "words", "linear")
    assert held is not None
    assert columns_of_audit(found)["caption words"] == held.percent


def _audited(subject: Subject) -> Path:
    file = subject.run.folder / "audit" / "audit.json"
    if not file.is_file():
        Information(most=40, samples=0, probes=("linear",))(subject)
    return Path(file)


def test_what_it_depends_on_is_said() -> None:
    assert Information().about != Information(most=100).about
    assert Information().about["kind"] == "information"


def test_rows_of_some_images(subject: Subject, tmp_path: Path) -> None:
    part = subject.collection.split("train")
    encoder = DualEncoder.load(subject.run.best)
    whole = encode_collection(encoder, part, tmp_path / "whole", "train")
    some = part.subset([7, 3, 20])
    taken = _taken(whole, some.image_ids, some.caption_ids)
    expected = encode_collection(encoder, some, tmp_path / "some", "train")
    np.testing.assert_allclose(taken.images.rows, expected.images.rows, atol=1e-6)
    np.testing.assert_allclose(taken.texts.rows, expected.texts.rows, atol=1e-6)
    assert taken.caption_image.tolist() == some.caption_image.tolist()
