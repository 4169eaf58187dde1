"""Tables 5.2 to 5.4 on small scenes: what is measured, what is shared, what gets a verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stressed import Reader, painted
from study_runs import run_study

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.scenes import read_scenes
from diptych.encoders.encode import encode_collection
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.stress import StressResult
from diptych.evaluation.stress.queries import RSUM
from diptych.studies import STUDIES, Choices, Results, collect, compare
from diptych.studies.brittleness_measuring import Chosen, Clean, Suite, check_chosen, chosen_of
from diptych.studies.brittleness_retrieval import agreement_tables, drop_tables
from diptych.studies.brittleness_rows import GROUPS, SHUFFLES, THIRTEEN
from diptych.studies.given import GivenEncoder
from diptych.studies.page import render_study
from diptych.studies.published import published_table
from diptych.studies.results import Entry, per_query
from diptych.studies.study import Measurement, Subject
from diptych.studies.verdict import Measured

TABLE_5_2, TABLE_5_3, TABLE_5_4 = (STUDIES.get(f"brittleness.table-5.{n}") for n in (2, 3, 4))


class Words(GivenEncoder):
    """The control's row."""

    encoder = Reader("words", noise=1e-9)


class Letters(GivenEncoder):
    """A row that sees letters and their order."""

    encoder = Reader("letters")


@pytest.fixture(scope="module")
def scenes(scenes_folder: Path) -> Collection:
    return replace(read_scenes(scenes_folder), name="scenes")


def measured(measure: Any, row: Any, collection: Collection, **values: object) -> Measurement:
    (found,) = measure(Subject(row, collection, None, measuring=values))
    return found


# Table 5.2 ------------------------------------------------------------------------------------------


def test_the_clean_table_is_what_evaluate_gives(scenes: Collection, tmp_path: Path) -> None:
    found = measured(Clean(), Letters(tmp_path / "row", "letters"), scenes)
    encoded = encode_collection(Reader("letters"), scenes.split("test"), tmp_path / "by hand", "test")
    names = ("R@1", "R@5", "R@10", "DCG_CM@10")
    by_hand = evaluate_encoded(encoded, None, names, samples=0)
    for way in ("i2t", "t2i"):
        recalls = [100 * by_hand.value(name, way) for name in names[:3]]
        assert [found.values[f"{way} {name}"] for name in names[:3]] == pytest.approx(recalls)
        assert found.values[f"{way} rsum"] == pytest.approx(sum(recalls))
        assert found.values[f"{way} DCG_CM@10"] == pytest.approx(by_hand.value("DCG_CM@10", way))
    on = found.on
    assert (on.dataset, on.split, on.images, on.captions) == ("scenes", "test", 16, 80)
    assert (on.protocol, on.centric) == ("full", "scene")
    # Nothing stands beside the right numbers where nobody asked for the published ones.
    assert not [name for name in found.values if name.endswith("|published")]
    assert set(found.values) == {column.name for column in TABLE_5_2.columns}
    assert "published" not in found.protocol


def test_the_published_way_is_counted_beside_the_right_one(
    scenes: Collection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captions found over min(k, 5), by hand; printed R@1, R@5 and R@10 are R@5, R@10 and R@1."""
    words = Reader("words")
    monkeypatch.setattr(Chosen, "relevance_model", lambda self, device=None: words)
    row = Letters(tmp_path / "row", "letters")
    found = measured(Clean(), row, scenes, compat="published", relevance="words")
    part = scenes.split("test")
    encoded = encode_collection(Reader("letters"), part, tmp_path / "by hand", "test")
    scores = np.asarray(encoded.images.rows) @ np.asarray(encoded.texts.rows).T
    own = part.caption_image[None, :] == np.arange(part.n_images)[:, None]
    firsts = np.argsort(-scores, axis=1, kind="stable")
    capped = {
        k: np.take_along_axis(own, firsts[:, :k], axis=1).sum(axis=1).mean() / min(k, 5) for k in (1, 5, 10)
    }
    values = found.values
    assert values["i2t R@1|published"] == pytest.approx(100 * capped[5])
    assert values["i2t R@5|published"] == pytest.approx(100 * capped[10])
    assert values["i2t R@10|published"] == pytest.approx(100 * capped[1])
    assert values["i2t rsum|published"] == pytest.approx(100 * sum(capped.values()))
    assert values["i2t R@1"] == pytest.approx(100 * capped[1])  # of one, any and capped are the same
    relevant = encode_collection(words, part, tmp_path / "words", "test")
    gains = np.round(np.asarray(relevant.images.rows) @ np.asarray(relevant.texts.rows).T, 4)
    gains[own] = 1.0
    gained = np.take_along_axis(gains, firsts[:, :10], axis=1) / np.log2(np.arange(2, 12))
    assert values["i2t DCG_CM@10|published"] == pytest.approx(gained.sum(axis=1).mean(), abs=2e-3)
    assert values["i2t DCG_CM@10|published"] != pytest.approx(values["i2t DCG_CM@10"], abs=1e-2)
    assert "DCG_CM as published, by" in found.protocol
    assert "captions found among the first k over min(k, 5), columns rotated" in found.protocol


def test_every_picture_of_the_folder_can_be_searched(scenes: Collection, tmp_path: Path) -> None:
    """Scenes' pictures are .png files: the folder's .jpg files are none of the collection's."""
    plain = measured(Clean(), Letters(tmp_path / "row", "letters"), scenes)
    folder = measured(Clean(), Letters(tmp_path / "row", "letters"), scenes, gallery="folder")
    assert folder.on.protocol == "full, text queries among all pictures of the folder"
    assert {name: value for name, value in folder.values.items()} == pytest.approx(plain.values)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("scenes", "full, text queries among all pictures of the folder"),
        ("coco-FG", "full, text queries among all pictures of the folder, of which there are 16"),
        ("flickr30k", "full, text queries among all pictures of the folder, of which there are 16"),
    ],
)
def test_the_papers_folders_have_as_many_pictures_as_the_papers(
    scenes: Collection, name: str, said: str
) -> None:
    chosen = Chosen(gallery="folder", compat="published")
    part = chosen.part(replace(scenes, name=name))
    assert chosen.protocol(part, perturbed=True) == said
    assert replace(chosen, compat="none").protocol(part, perturbed=True).endswith("with compat none")
    assert replace(chosen, compat="none").protocol(part, perturbed=False) == said


# Tables 5.3 and 5.4 ---------------------------------------------------------------------------------


def test_one_run_of_the_suite_is_both_tables(scenes: Collection, tmp_path: Path) -> None:
    row = Letters(tmp_path / "row", "letters")
    sums = measured(Suite("rsum"), row, scenes, seeds=2)
    asked = row.encoder.texts.total()
    similar = measured(Suite("jaccard"), row, scenes, seeds=2)
    assert row.encoder.texts.total() == asked  # nothing is encoded once more
    assert sums.kept == similar.kept
    result = StressResult.open(tmp_path / "row" / sums.kept)
    assert set(sums.values) >= {"none", *THIRTEEN, *GROUPS}
    for kind, members in GROUPS.items():
        assert sums.values[kind] == pytest.approx(np.mean([sums.values[name] for name in members]))
    typos = result.row("character-swap")
    assert sums.values["character-swap"] == typos.drop(RSUM).perturbed
    assert sums.values["character-swap changed"] == pytest.approx(100 * typos.changed_share)
    kept, cluster = per_query(tmp_path / "row" / sums.kept, "character-swap") or (None, None)
    assert kept is not None
    assert cluster is not None
    assert kept.mean() == pytest.approx(sums.values["character-swap"])
    assert np.bincount(cluster).tolist() == [5] * 16
    clean, _ = per_query(tmp_path / "row" / sums.kept, "none") or (None, None)
    assert clean is not None
    assert clean.mean() == pytest.approx(sums.values["none"])
    # Who moves, by hand, of a perturbation that is the same with every seed.
    other, _ = per_query(tmp_path / "row" / sums.kept, "distraction-true") or (None, None)
    assert other is not None
    assert sums.values["distraction-true moved"] == pytest.approx(100 * np.mean(other != clean))
    agreement = result.agreement["t2i"]
    assert similar.values == {
        name: getattr(agreement, name) for name in ("decreased", "increased", "unchanged")
    }
    assert sums.on.protocol == "full, captions perturbed with compat none"
    assert "seeds 0, 1;" in sums.protocol


def test_the_control_is_indifferent_to_shuffles_and_not_to_typos(scenes: Collection, tmp_path: Path) -> None:
    found = measured(Suite("rsum"), Words(tmp_path / "row", "words"), scenes, seeds=1).values
    for name in SHUFFLES:
        assert found[f"{name} moved"] == 0
        assert found[name] == found["none"]
        assert found[f"{name} changed"] > 50
    assert found["character-swap moved"] > 0


def test_other_choices_are_other_runs(scenes: Collection, tmp_path: Path) -> None:
    row = Words(tmp_path / "row", "words")
    one, two = (measured(Suite("rsum"), row, scenes, seeds=seeds) for seeds in (1, 2))
    published = measured(Suite("rsum"), row, scenes, compat="published")
    assert len({one.kept, two.kept, published.kept}) == 3
    assert "seeds 42;" in published.protocol
    assert published.on.protocol == "full"


def test_what_cannot_be_perturbed_is_said(tmp_path: Path) -> None:
    """Without a WordNet there are no synonyms: no mean of them, and a reason."""
    row = Letters(tmp_path / "row", "letters")
    found = measured(Suite("rsum"), row, painted(), language="none", seeds=1)
    assert "typos" in found.values
    assert "synonyms" not in found.values
    assert "left out synonym-noun: " in found.protocol


# What is chosen -------------------------------------------------------------------------------------


def test_choices_are_checked_before_anything_is_made(scenes: Collection) -> None:
    for values, message in (
        ({"gallery": "all"}, r"measure\.gallery is 'all'.*split, folder"),
        ({"compat": "paper"}, r"measure\.compat is 'paper'.*none, published"),
        ({"seeds": 0}, r"measure\.seeds is 0"),
        ({"seeds": True}, r"measure\.seeds is True"),
        ({"wordnet": 3}, r"measure\.wordnet is 3"),
        ({"relevance": "no/such/encoder"}, r"no/such/encoder"),
    ):
        with pytest.raises(UsageError, match=message):
            check_chosen(values, {"scenes": scenes})
    with pytest.raises(UnknownNameError, match="unknown language 'latin'"):
        check_chosen({"language": "latin"}, {"scenes": scenes})
    with pytest.raises(UnknownNameError, match="unknown split of scenes 'dev'"):
        check_chosen({"split": "dev"}, {"scenes": scenes})
    with pytest.raises(UsageError, match="pictures of painted are no files"):
        check_chosen({"gallery": "folder"}, {"painted": painted()})
    check_chosen({"gallery": "split"}, {"scenes": scenes, "painted": painted()})


def test_seeds_and_models_that_are_usual() -> None:
    assert Chosen().drawn == (0, 1, 2)
    assert Chosen(compat="published").drawn == (42,)
    assert Chosen(compat="published", seeds=2).drawn == (0, 1)
    assert chosen_of({"relevance": "none"}).relevance is None
    assert chosen_of({"relevance": ""}).relevance_model() is None
    assert (Chosen().mark, Chosen(gallery="folder").mark) == ("", "")
    assert Chosen(seeds=3).mark not in ("", Chosen(seeds=2).mark)


def test_the_papers_setting_measures_as_published() -> None:
    from diptych.studies.runner import chosen_for

    sections = (("coco", {"scenes": {"n_train": 0, "n_val": 0, "n_test": 2, "size": 32}}),)
    choices, setting, _ = chosen_for(TABLE_5_3, Choices(setting="paper", collections=sections))
    assert setting == "paper"
    assert choices.values["measure.compat"] == "published"
    assert choices.values["measure.gallery"] == "folder"
    own = {"measure.compat": "none", "clip": "mine"}
    choices, _, _ = chosen_for(TABLE_5_3, Choices(setting="paper", collections=sections, values=own))
    assert choices.values["measure.compat"] == "none"
    assert choices.values["clip"] == "mine"
    choices, _, _ = chosen_for(TABLE_5_3, Choices(setting="data", collections=sections))
    assert not [key for key in choices.values if key.startswith("measure.")]


# A study, whole -------------------------------------------------------------------------------------


TINY = {
    "data.scenes.n_train": 64,
    "data.scenes.n_val": 16,
    "data.scenes.n_test": 0,
    "model.width": 16,
    "model.text.word_width": 16,
    "model.text.min_count": 1,
    "batches.size": 32,
    "stages.0.epochs": 1,
    "stages.0.warmup": 0,
    "measure.seeds": 1,
}


@pytest.fixture(scope="module")
def folder(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("brittleness")
    sections = (
        ("small", {"path": str(scenes_folder)}),
        ("small-fg", {"path": str(scenes_folder), "options": {"finer": 2}}),
    )
    choices = Choices(setting="quick", collections=sections, values=dict(TINY))
    lines: list[str] = []
    for study in (TABLE_5_3, TABLE_5_4, TABLE_5_2):
        run_study(study, out / study.name, choices, features_root=out / "features", tell=lines.append)
    trained = [line for line in lines if line.endswith(": training")]
    assert len(trained) == 2  # the encoder and the control, once for all three
    return out


def results(folder: Path, study: Any) -> Results:
    (found,) = collect([folder / study.name])
    return found


def test_the_suite_checks_itself_and_shows_drops(folder: Path) -> None:
    comparison = compare(TABLE_5_3, results(folder, TABLE_5_3))
    claims = {claim.name: judgement for claim, judgement, _ in comparison.claims}
    assert claims["the control"].status == "holds"
    assert len(claims["the control"].decided) == 10  # five shuffles on two collections
    assert claims["Flickr30k"].status == "not run"
    assert claims["drops"].status in ("holds", "fails")
    (table,) = comparison.tables
    assert table.columns[2:] == ("encoder, small", "encoder, small-fg", "bag, small", "bag, small-fg")
    rows = {row[0]: row[1:] for row in table.texts}
    assert list(rows) == list(THIRTEEN)
    assert rows["shuffle-all-words"][3:] == ("0", "0")
    assert "Not a reproduction" in comparison.label
    page = render_study(comparison)
    for part in (
        "A bag of words is exactly indifferent",
        "Unperturbed sums of ALIGN and AltCLIP on Flickr30k-FG are swapped",
        'id="heat-map"',
        "Largest drops, printed: ALIGN on coco: shuffle-all-words -26.1 %",
        "Largest drops, here: trained encoder on small: ",
    ):
        assert part in page
    assert drop_tables(results(folder, TABLE_5_3).evidence()) == [table]


def test_agreement_is_shown_beside_chance(folder: Path) -> None:
    comparison = compare(TABLE_5_4, results(folder, TABLE_5_4))
    (table,) = comparison.tables
    assert len(table.rows) == 2 * 2 * 3
    assert agreement_tables(results(folder, TABLE_5_4).evidence()) == [table]
    assert [claim.name for claim, _, _ in comparison.claims] == ["unchanged", "increased"]


def test_the_clean_table_names_its_pairs(folder: Path) -> None:
    comparison = compare(TABLE_5_2, results(folder, TABLE_5_2))
    claims = {claim.name: judgement for claim, judgement, _ in comparison.claims}
    assert claims["finer captions"].status in ("holds", "fails")
    assert "of 2" in claims["finer captions"].figure
    assert {claims[name].status for name in ("named", "named, collections", "named, highest")} == {"not run"}
    page = render_study(comparison)
    assert "The columns of image queries are rotated" in page
    assert "not the evaluated model as equation 5.1 says" in page


@pytest.mark.parametrize(
    ("protocol", "verdict"),
    [
        ("full, text queries among all pictures of the folder", "reproduced"),
        ("full, text queries among all pictures of the folder, of which there are 5,000", "other data"),
        (
            "full, text queries among all pictures of the folder, captions perturbed with compat none",
            "other data",
        ),
        ("full", "other data"),
    ],
)
def test_a_cell_has_a_verdict_as_the_paper_measured_alone(protocol: str, verdict: str) -> None:
    (row,) = (one for one in published_table("brittleness", "table-5.3").rows if one.row == "CLIP, Flickr30k")
    values = {name: cell.value for name, cell in row.cells.items()}
    on = Measured("flickr30k", "test", 1_000, 5_000, protocol=protocol, centric="scene")
    entry = Entry(
        TABLE_5_3.name,
        "clip",
        0,
        "paper",
        (Measurement(values, on, "protocol"),),
        "k",
        "out",
        "d",
        (0, 0),
        0.0,
    )
    comparison = compare(TABLE_5_3, Results(TABLE_5_3.name, (entry,), several=True))
    (found,) = (
        one for block in comparison.blocks for one in block.rows if one.row.name == "clip" and one.seeds
    )
    assert {cell.verdict for cell in found.cells} == {verdict}
