"""Thesis chapter 5: tables 5.2 to 5.4 on small scenes, their checks and tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stressed import Reader, painted
from study_runs import TINY, run_study

from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.scenes import read_scenes
from diptych.encoders.encode import encode_collection
from diptych.evaluation.evaluate_encoder import evaluate_encoded
from diptych.evaluation.stress import StressResult
from diptych.evaluation.stress.queries import RSUM
from diptych.studies import STUDIES, Choices, Results, collect, compare
from diptych.studies.brittleness_checks import (
    average_gain,
    finer_drops_less,
    finer_raises,
    gain_of,
    gains_more,
    highest,
    hurts_most,
    hurts_most_everywhere,
    indifferent,
    lowers_always,
    mostly_lower,
)
from diptych.studies.brittleness_measuring import Chosen, Clean, Suite, check_chosen
from diptych.studies.brittleness_retrieval import FIGURE, agreement_tables, chance_similarity, drop_tables
from diptych.studies.brittleness_rows import GROUPS, KINDS, SHUFFLES, THIRTEEN
from diptych.studies.claims import Check, Claim, judge
from diptych.studies.given import GivenEncoder
from diptych.studies.page import study_page
from diptych.studies.published import published_table
from diptych.studies.results import Entry, per_query
from diptych.studies.study import Measurement, Subject
from diptych.studies.verdict import Evidence, Figure, Measured

TABLE_5_2, TABLE_5_3, TABLE_5_4 = (STUDIES.get(f"brittleness.table-5.{n}") for n in (2, 3, 4))


FOLDER = "full, text queries among all pictures of the folder"
OTHER_FOLDER = f"{FOLDER}, of which there are 16"


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


def test_the_papers_folders_have_as_many_pictures_as_the_papers(scenes: Collection) -> None:
    chosen = Chosen(gallery="folder", compat="published")
    plain = replace(chosen, compat="none")
    for name, said in (("scenes", FOLDER), *((name, OTHER_FOLDER) for name in ("coco-FG", "flickr30k"))):
        part = chosen.part(replace(scenes, name=name))
        assert chosen.protocol(part, perturbed=True) == plain.protocol(part, perturbed=False) == said
        assert plain.protocol(part, perturbed=True).endswith("with compat none")


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
    found = {
        name: per_query(tmp_path / "row" / sums.kept, name) or (np.empty(0), np.empty(0))
        for name in ("none", "character-swap", "distraction-true")
    }
    kept, cluster = found["character-swap"]
    assert kept.mean() == pytest.approx(sums.values["character-swap"])
    assert np.bincount(cluster).tolist() == [5] * 16
    clean = found["none"][0]
    assert clean.mean() == pytest.approx(sums.values["none"])
    # Who moves, by hand, of a perturbation that is the same with every seed.
    moved = found["distraction-true"][0] != clean
    assert sums.values["distraction-true moved"] == pytest.approx(100 * np.mean(moved))
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
    published = measured(Suite("rsum"), row, scenes, compat="published")
    assert len({Chosen(**of).mark for of in ({}, {"seeds": 1}, {"seeds": 2}, {"compat": "published"})}) == 4
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
    given = {"scenes": scenes, "painted": painted()}
    for of, values, error, message in (
        ("scenes", {"gallery": "all"}, UsageError, r"measure\.gallery is 'all'.*split, folder"),
        ("scenes", {"compat": "paper"}, UsageError, r"measure\.compat is 'paper'.*none, published"),
        ("scenes", {"seeds": 0}, UsageError, r"measure\.seeds is 0"),
        ("scenes", {"seeds": True}, UsageError, r"measure\.seeds is True"),
        ("scenes", {"wordnet": 3}, UsageError, r"measure\.wordnet is 3"),
        ("scenes", {"relevance": "no/such/encoder"}, UsageError, r"no/such/encoder"),
        ("scenes", {"language": "latin"}, UnknownNameError, "unknown language 'latin'"),
        ("scenes", {"split": "dev"}, UnknownNameError, "unknown split of scenes 'dev'"),
        (
            "painted",
            {"gallery": "folder"},
            UsageError,
            "pictures of painted are no files.*measure.gallery=split",
        ),
    ):
        with pytest.raises(error, match=message):
            check_chosen(values, {of: given[of]})
    check_chosen({"gallery": "split"}, given)


def test_the_papers_setting_measures_as_published() -> None:
    from diptych.studies.runner import chosen_for

    sections = (("coco", {"scenes": {"n_train": 0, "n_val": 0, "n_test": 2, "size": 32}}),)

    def chosen(setting: str, **values: object) -> dict[str, object]:
        given = Choices(setting=setting, collections=sections, values=values)  # type: ignore[arg-type]
        choices, found, _ = chosen_for(TABLE_5_3, given)
        assert found == setting
        return dict(choices.values)

    assert chosen("paper").items() >= {"measure.compat": "published", "measure.gallery": "folder"}.items()
    own = {"measure.compat": "none", "clip": "mine"}
    assert chosen("paper", **own).items() >= own.items()
    assert not [key for key in chosen("data") if key.startswith("measure.")]


# A study, whole -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("brittleness")
    sections = (
        ("small", {"path": str(scenes_folder)}),
        ("small-fg", {"path": str(scenes_folder), "options": {"finer": 2}}),
    )
    values = {**TINY, "data.scenes.n_train": 64, "model.text.word_width": 16, "measure.seeds": 1}
    choices = Choices(setting="quick", collections=sections, values=values)
    lines: list[str] = []
    for study in (TABLE_5_3, TABLE_5_4):
        run_study(study, out / study.name, choices, features_root=out / "features", tell=lines.append)
    trained = [line for line in lines if line.endswith(": training")]
    assert len(trained) == 2  # the encoder and the control, once for both
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
    page = study_page(comparison).html()
    assert "A bag of words is exactly indifferent" in page
    assert "Unperturbed sums of ALIGN and AltCLIP on Flickr30k-FG are swapped" in page
    assert 'id="heat-map"' in page
    here, printed = FIGURE.draw(comparison.results.evidence(), {"align": "ALIGN"})
    assert [row[0].text for row in here.rows] == list(THIRTEEN)
    changes = {row[0].text: row[1 + printed.columns[1:].index("coco")] for row in printed.rows}
    assert printed.groups[1] == ("ALIGN", 4)
    assert changes["shuffle-all-words"].text == "-26.1"
    assert changes["shuffle-all-words"].shade == pytest.approx(0.261 / 0.6, abs=0.001)
    assert drop_tables(results(folder, TABLE_5_3).evidence()) == [table]
    (similar,) = agreement_tables(results(folder, TABLE_5_4).evidence())
    assert len(similar.rows) == 2 * 2 * 3


@pytest.mark.parametrize(
    ("protocol", "verdict"),
    [
        (FOLDER, "reproduced"),
        (f"{FOLDER}, of which there are 5,000", "other data"),
        (f"{FOLDER}, captions perturbed with compat none", "other data"),
        ("full", "other data"),
    ],
)
def test_a_cell_has_a_verdict_as_the_paper_measured_alone(protocol: str, verdict: str) -> None:
    (row,) = (one for one in published_table("brittleness", "table-5.3").rows if one.row == "CLIP, Flickr30k")
    values = {name: cell.value for name, cell in row.cells.items()}
    on = Measured("flickr30k", "test", 1_000, 5_000, protocol=protocol, centric="scene")
    measurement = Measurement(values, on, "protocol")
    entry = Entry(TABLE_5_3.name, "clip", 0, "paper", (measurement,), "k", "out", "d", (0, 0), 0.0)
    comparison = compare(TABLE_5_3, Results(TABLE_5_3.name, (entry,), several=True))
    (found,) = (
        one for block in comparison.blocks for one in block.rows if one.row.name == "clip" and one.seeds
    )
    assert {cell.verdict for cell in found.cells} == {verdict}


def evidence(rows: Mapping[str, Mapping[str, float]]) -> Evidence:
    """Rows with columns ``COLLECTION COLUMN``."""
    figures = {row: {name: Figure(value) for name, value in of.items()} for row, of in rows.items()}
    names = dict.fromkeys(name.partition(" ")[0] for of in rows.values() for name in of)
    return Evidence(figures, centric=dict.fromkeys(names, ""))


def sums(collection: str, clean: float, changed: Mapping[str, float]) -> dict[str, float]:
    return {f"{collection} none": clean, **{f"{collection} {name}": value for name, value in changed.items()}}


def test_chance_by_hand() -> None:
    assert chance_similarity([0.8, 0.8]) == pytest.approx(0.64 / 0.96)  # the two thirds that the note names
    assert chance_similarity([1.0, 0.5]) == pytest.approx(0.5)
    assert chance_similarity([0.0, 0.5]) == 0
    assert chance_similarity([0.0, 0.0]) is None
    assert chance_similarity([0.3]) is None
    # All pairs count alike: ½, ½ and ⅓.
    assert chance_similarity([1.0, 0.5, 0.5]) == pytest.approx((0.5 + 0.5 + 1 / 3) / 3)


def changed(**others: float) -> dict[str, float]:
    """Of 100 clean all kinds at 90 but for some, whose dashes are underscores."""
    values = {**dict.fromkeys(KINDS, 90.0), **{key.replace("_", "-"): value for key, value in others.items()}}
    return sums("x", 100, values)


R1 = ("i2t R@1", "t2i R@1")
RAISED = {
    "a": {"x i2t R@1": 10, "x-fg i2t R@1": 12, "x t2i R@1": 10, "x-fg t2i R@1": 15},
    "b": {"x i2t R@1": 10, "x-fg i2t R@1": 9, "x t2i R@1": 10, "x-fg t2i R@1": 11},
    "bag": {"x i2t R@1": 10, "x-fg i2t R@1": 1, "x t2i R@1": 10, "x-fg t2i R@1": 1},  # plays no part
}
ALONE = {"a": {"x i2t R@1": 10.0}}
NAMED = {"clip": {"coco t2i R@1": 10, "coco-fg t2i R@1": 12, "x t2i R@1": 1, "x-fg t2i R@1": 9}}
HURT = {
    "a": changed(shuffle_all_words=50, synonyms=99),
    "b": changed(shuffle_all_words=80, typos=70, synonyms=95, distraction=97),
    "bag": changed(typos=1),
}
TIE = {"a": changed()}
LOWERED = {"a": sums("x", 90, {**dict.fromkeys(KINDS, 90.0), "typos": 80, "synonyms": 95})}
OF_13 = {
    "a": {
        **sums("x", 100, dict.fromkeys(THIRTEEN, 90.0)),
        **sums("x-fg", 100, {**dict.fromkeys(THIRTEEN, 80.0), **dict.fromkeys(THIRTEEN[:5], 99.0)}),
    }
}
OF_KINDS = {"a": {**changed(), **sums("x-fg", 50, dict.fromkeys(KINDS, 90.0))}}
STILL = {"x typos moved": 0.0, "x typos changed": 90.0, "y typos moved": 0.0, "y typos changed": 80.0}
SIMILAR = {"a": {"x decreased": 0.2, "x increased": 0.1, "x unchanged": 0.7}}


@pytest.mark.parametrize(
    ("check", "rows", "status", "figure"),
    [
        (finer_raises(*R1), RAISED, "holds", "3 of 4; not b, x i2t R@1 -10.0 %"),
        (finer_raises("i2t R@1"), RAISED, "fails", ""),  # one of two is not most
        (finer_raises("i2t R@1"), ALONE, "not run", ""),
        (gains_more("t2i R@1", "i2t R@1"), RAISED, "holds", "+30.0 % and +5.0 %"),
        (gains_more("i2t R@1", "t2i R@1"), RAISED, "fails", ""),
        (gains_more("i2t R@1", "t2i R@1"), ALONE, "not run", ""),
        (average_gain("t2i R@1", 0.2, "coco"), NAMED, "holds", ""),
        (average_gain("t2i R@1", 0.21, "coco"), NAMED, "fails", ""),
        (average_gain("t2i R@1", 0.2, "coco", "flickr30k"), NAMED, "not run", ""),
        (gain_of("clip", "coco", "t2i R@1", 0.2), NAMED, "fails", ""),  # x gains more
        (gain_of("clip", "x", "t2i R@1", 8.0), NAMED, "holds", ""),
        (gain_of("align", "coco", "t2i R@1", 0.2), NAMED, "not run", ""),
        (hurts_most("shuffle-all-words"), HURT, "holds", ""),  # 65 and 80 on average
        (hurts_most_everywhere("shuffle-all-words"), HURT, "fails", "b on x: -20.0 %, typos -30.0 %"),
        (hurts_most("synonyms", least=True), HURT, "holds", ""),  # 97 and 93.5
        (hurts_most_everywhere("synonyms", least=True), HURT, "fails", ""),
        (hurts_most("typos"), TIE, "fails", ""),  # a tie is no largest
        (hurts_most("typos"), {"a": sums("x", 100, {"typos": 9})}, "not run", ""),
        (mostly_lower(), LOWERED, "fails", "1 of 8"),  # six kinds change nothing, one helps
        (mostly_lower(), TIE, "holds", ""),
        (lowers_always(["typos"]), LOWERED, "holds", ""),
        (lowers_always(["typos", "synonyms"]), LOWERED, "fails", ""),
        (lowers_always(["typos"]), ALONE, "not run", ""),
        (finer_drops_less(), OF_13, "fails", "5 of 13"),
        (finer_drops_less(most=False), OF_13, "holds", ""),
        (finer_drops_less(only="flickr30k"), OF_13, "not run", ""),
        (finer_drops_less(leave_out=("x",)), OF_13, "not run", ""),
        (finer_drops_less(), OF_KINDS, "holds", "8 of 8"),  # where the thirteen are not all there
        (indifferent(["typos"]), {"bag": STILL}, "holds", ""),
        (
            indifferent(["typos"]),
            {"bag": {**STILL, "y typos moved": 0.02}},
            "fails",
            "0.02 % of queries move",
        ),
        (indifferent(["typos"]), {"a": STILL}, "not run", ""),
        # without counts of queries, by sums
        (indifferent(["typos"]), {"bag": sums("x", 9, {"typos": 9})}, "holds", ""),
        (indifferent(["typos"]), {"bag": sums("x", 9, {"typos": 9.0001})}, "fails", ""),
        (highest("unchanged"), SIMILAR, "holds", ""),
        (highest("increased", lowest=True), SIMILAR, "holds", ""),
        (highest("decreased"), SIMILAR, "fails", ""),
        (highest("unchanged"), {"a": {"x unchanged": 0.7}}, "not run", ""),  # one group says nothing
    ],
)
def test_checks_by_hand(
    check: Check, rows: Mapping[str, Mapping[str, float]], status: str, figure: str
) -> None:
    found = judge(Claim("", "", check), evidence(rows))
    assert found.status == status
    assert figure in found.figure
