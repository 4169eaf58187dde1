"""Thesis chapter 2: several collections side by side, three kinds of verdicts, the tree."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from study_runs import TINY, run_study

from diptych.core.artifact import decode, encode
from diptych.core.errors import UnknownNameError, UsageError
from diptych.data.scenes import scenes
from diptych.encoders.dual_encoder import DualEncoder
from diptych.evaluation.evaluate_encoder import evaluate_encoder
from diptych.studies import STUDIES, Choices, Results, collect, compare
from diptych.studies.published import published_table
from diptych.studies.reproducibility_figure import order_tables
from diptych.studies.reproducibility_orders import (
    COLUMNS,
    PAPERS,
    measured_orders,
    printed_orders,
    tree_of,
    verdict_of,
)
from diptych.studies.results import Entry
from diptych.studies.study import Measurement
from diptych.studies.verdict import Evidence, Figure, Measured
from diptych.training.adaptation import adapt_linear

TABLE_2_1, TABLE_2_2 = (STUDIES.get(f"reproducibility.table-2.{n}") for n in (1, 2))
# What is printed --------------------------------------------------------------------------------


def test_the_tree_of_the_thesis() -> None:
    """Leaf by leaf as section 2.6 tells it, then up."""
    original, thesis = printed_orders("original"), printed_orders("thesis")
    found = {node.number: str(verdict_of(node, thesis, original)) for node in tree_of(PAPERS).upwards()}
    assert found == {
        **{7: "0 of 6", 8: "0 of 6", 9: "0 of 6", 10: "3 of 3", 11: "0 of 3"},
        **{12: "2 of 6", 13: "2 of 6", 14: "2 of 6", 15: "3 of 3", 16: "2 of 3"},
        **{3: "9 of 9", 4: "0 of 3", 5: "9 of 9", 6: "0 of 3", 1: "9 of 18", 2: "9 of 18", 0: "18 of 36"},
    }
    own = {node.number: str(verdict_of(node, original, original)) for node in tree_of(PAPERS).upwards()}
    # An original is not found again in itself.
    assert (own[10], own[16], own[4], own[6], own[0]) == ("–", "–", "3 of 3", "1 of 3", "–")


def test_the_relative_table_says_who_and_whether_as_originally() -> None:
    relative, upwards = order_tables(Evidence())
    rows = {(row[0], row[1]): dict(zip(relative.columns[2:], row[2:], strict=True)) for row in relative.texts}
    assert rows["coco", "thesis"]["i2t R@1"] == "X-VLM 40.24 ✓"
    assert rows["flickr30k", "thesis"]["t2i R@1"] == "CLIP 37.13 ✗"
    assert rows["flickr30k", "original"]["i2t R@1"] == "CLIP ~2.70"
    assert rows["cub", "thesis"]["t2i R@1"] == "CLIP ~0.01"
    assert ("cub", "original") not in rows
    assert [row[0].text for row in upwards.rows] == [str(n) for n in (*range(7, 17), 3, 4, 5, 6, 1, 2, 0)]
    assert [cell.text for cell in upwards.rows[-1][3:]] == ["–", "◐ 18 of 36"]


# What is measured -------------------------------------------------------------------------------


def results_of(study: Any, numbers: dict[tuple[str, str], dict[str, float]], **on: Any) -> Results:
    """Results on the paper's own test sets: (row, dataset) → values."""
    sizes = {"coco": (5_000, 25_010, 256), "flickr30k": (1_000, 5_000, 128)}
    entries = []
    for (row, dataset), values in numbers.items():
        images, captions, k = sizes.get(dataset, (100, 100, 128))
        how = {"reranked": k if row == "x-vlm" else 0, "centric": PAPERS.get(dataset, "object")}
        measured = Measured(dataset, "test", images, captions, **how)
        measurement = Measurement(values, replace(measured, **on), "protocol")
        entries.append(
            Entry(study.name, row, 0, "paper", (measurement,), "k", f"out/{row}", f"{dataset}: all", (0, 0), 0.0,
                  fine_tuned_from=f"models/{row} (fingerprint 0123)")
        )  # fmt: skip
    return Results(study.name, tuple(entries), several=True)


def printed_by(who: str, dataset: str, factor: float = 1.0) -> dict[tuple[str, str], dict[str, float]]:
    """What table 2.1 prints of ``Orig.`` or ``Repr.`` models, times a factor."""
    title = {"coco": "COCO", "flickr30k": "Flickr30k"}[dataset]
    rows = {row.row: row.cells for row in published_table("reproducibility", "table-2.1").rows}
    return {
        (row, dataset): {column: rows[f"{who} {label}, {title}"][column].value * factor for column in COLUMNS}
        for row, label in (("clip", "CLIP"), ("x-vlm", "X-VLM"))
    }


originals = partial(printed_by, "Orig.")


def test_the_originals_are_reproduced_by_themselves() -> None:
    comparison = compare(
        TABLE_2_1, results_of(TABLE_2_1, {**originals("coco"), **originals("flickr30k", 0.8)})
    )
    assert comparison.reproduces
    said = {(block.on.dataset, block.on.by): block for block in comparison.blocks}
    assert list(said) == [(name, by) for name in ("coco", "flickr30k") for by in ("original", "thesis")]
    verdicts = {
        key: {cell.verdict for row in block.rows for cell in row.cells} for key, block in said.items()
    }
    assert verdicts["coco", "original"] == {"reproduced"}
    assert verdicts["flickr30k", "original"] == {"not reproduced"}
    # Other captions, another split, other candidates: nothing is held against the thesis's.
    assert verdicts["coco", "thesis"] == verdicts["flickr30k", "thesis"] == {"other data"}
    assert said["coco", "original"].differences == ()
    assert "X-VLM: 256 candidates re-ranked, not 2 or 4" in said["coco", "thesis"].differences
    assert "CLIP: models/clip (fingerprint 0123)" in comparison.label
    claims = {claim.name: judgement.status for claim, judgement, _ in comparison.claims}
    assert claims["COCO, relative"] == "holds"
    assert claims["COCO, absolute"] == "fails"  # the thesis's: no score is within 5 %
    assert claims["Flickr30k, X-VLM"] == "holds"
    assert claims["lower"] == "fails"  # 6 of 12 recalls are not lower


def verdicts_of(comparison: Any, dataset: str, by: str, row: str) -> set[str]:
    (block,) = (one for one in comparison.blocks if (one.on.dataset, one.on.by) == (dataset, by))
    (found,) = (one for one in block.rows if one.row.name == row)
    return {cell.verdict for cell in found.cells}


@pytest.mark.parametrize(
    ("on", "rows"),
    [
        # CLIP on Flickr30k: the validation split, the first caption of each image; nothing is re-ranked.
        ({"split": "val", "images": 1_014, "captions": 1_014, "chosen": "first", "reranked": 0}, {"clip"}),
        ({"split": "val", "images": 1_014, "captions": 1_014, "chosen": "random", "reranked": 0}, set()),
        ({"split": "val", "images": 1_014, "captions": 5_070, "reranked": 0}, set()),
        ({"split": "test", "images": 1_000, "captions": 1_000, "chosen": "first", "reranked": 0}, set()),
        # X-VLM: all captions of the test split, 2 or 4 candidates, and the others tie as in its code.
        ({"reranked": 2, "unranked": "published"}, {"x-vlm"}),
        ({"reranked": 4, "unranked": "published"}, {"x-vlm"}),
        ({"reranked": 2, "unranked": "miss"}, set()),
        ({"reranked": 2, "unranked": "contrastive"}, set()),
        ({"reranked": 3, "unranked": "published"}, set()),
        ({"reranked": 2, "unranked": "published", "captions": 1_000, "chosen": "random"}, set()),
    ],
)
def test_a_verdict_is_on_the_printed_evaluation_alone(on: dict[str, Any], rows: set[str]) -> None:
    comparison = compare(TABLE_2_1, results_of(TABLE_2_1, printed_by("Repr.", "flickr30k"), **on))
    for row in ("clip", "x-vlm"):
        assert verdicts_of(comparison, "flickr30k", "original", row) == {"other data"}
        wanted = "reproduced" if row in rows else "other data"
        assert verdicts_of(comparison, "flickr30k", "thesis", row) == {wanted}, row


@pytest.mark.parametrize("rule", ["miss", "contrastive", "published"])
def test_where_many_are_re_ranked_the_rule_for_the_others_does_not_matter(rule: str) -> None:
    results = results_of(TABLE_2_1, originals("coco"), unranked=rule)
    entries = tuple(entry for entry in results.entries if entry.row == "x-vlm")
    comparison = compare(TABLE_2_1, replace(results, entries=entries))
    assert verdicts_of(comparison, "coco", "original", "x-vlm") == {"reproduced"}


def test_what_changes_adapted_rows_leaves_the_others_their_verdicts() -> None:
    results = results_of(TABLE_2_1, {**originals("coco"), ("clip+16", "coco"): {"t2i R@1": 30.0}})
    entries = tuple(
        replace(entry, changed=("adapt.strength",)) if entry.row == "clip+16" else entry
        for entry in results.entries
    )
    comparison = compare(TABLE_2_1, replace(results, entries=entries))
    assert verdicts_of(comparison, "coco", "original", "clip") == {"reproduced"}
    assert "changes of adapt.strength" in comparison.label
    # Rows that nobody printed do not differ from what is printed.
    assert not any("pairs" in line for block in comparison.blocks for line in block.differences)
    everything = tuple(replace(entry, changed=("model.width",)) for entry in results.entries)
    comparison = compare(TABLE_2_1, replace(results, entries=everything))
    assert verdicts_of(comparison, "coco", "original", "clip") == {"other training"}


def test_the_order_of_another_collection_is_held_against_the_originals() -> None:
    low = {column: 1.0 for column in COLUMNS}
    numbers = {**originals("coco"), ("clip", "shop"): {**low, "i2t R@1": 2.0}, ("x-vlm", "shop"): low}
    comparison = compare(TABLE_2_2, results_of(TABLE_2_2, numbers))
    claims = {claim.name: judgement for claim, judgement, _ in comparison.claims}
    assert claims["absolute"].status == "holds"
    assert claims["RQ1.3"].status == "fails"  # no order is found again: clip's, and ties
    assert "0 of 6" in claims["RQ1.3"].figure
    assert claims["objects"].status == "fails"
    assert claims["CUB-200, named"].status == "not run"
    relative = comparison.tables[0]
    (here,) = (row for row in relative.texts if row[:2] == ("shop", "here"))
    assert here[2 + COLUMNS.index("i2t R@1")] == "CLIP 1.00"
    assert here[2] == "tie 0.00"


def test_orders_of_several_seeds_are_those_of_their_means() -> None:
    figures = {"clip": {"shop t2i R@1": Figure(3.0, 0.5, 2)}, "x-vlm": {"shop t2i R@1": Figure(4.0, 0.5, 2)}}
    orders = measured_orders(Evidence(figures, centric={"shop": "object"}))
    found = orders.of("SHOP", "t2i R@1")
    assert found is not None
    assert (found.ahead, found.apart, found.near_tie) == ("x-vlm", 1.0, None)
    assert orders.on("object") == ["shop"]
    assert orders.on("scene") == []


def test_entries_of_one_collection_are_alike_and_of_several_side_by_side() -> None:
    results = results_of(TABLE_2_1, {**originals("coco"), **originals("flickr30k")})
    assert results.datasets == ["coco", "flickr30k"]
    evidence = results.evidence()
    assert evidence.centric == {"coco": "scene", "flickr30k": "scene"}
    figure = evidence.figure("clip", "flickr30k i2t R@1")
    assert figure is not None
    assert figure.mean == 88.0
    strange = replace(results.entries[0], data="coco: a part")
    with pytest.raises(UsageError, match="differ"):
        Results(TABLE_2_1.name, (*results.entries, replace(strange, seed=1)), several=True)
    with pytest.raises(UsageError, match="differ"):
        Results(TABLE_2_1.name, results.entries)
    for entry in results.entries:
        assert decode(Entry, json.loads(json.dumps(encode(entry, {}))), {}) == entry


# Running it -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Results]:
    """The quick setting on fewer pictures, zero-shot rows alone."""
    folder, told = tmp_path_factory.mktemp("study") / TABLE_2_1.name, []
    results = run_study(TABLE_2_1, folder, small(), rows=["clip", "x-vlm"], tell=told.append)
    return folder, told, results


@pytest.fixture
def copied(quick: tuple[Path, list[str], Results], tmp_path: Path) -> Path:
    """Its folder, for tests that change it."""
    return Path(shutil.copytree(quick[0], tmp_path / TABLE_2_1.name))


def small(**more: Any) -> Choices:
    sections = TABLE_2_1.settings["quick"].collections
    fewer = tuple(
        (name, {"scenes": {**section["scenes"], "n_train": 24, "n_test": 24}})
        for name, section in sections.items()
    )
    return Choices(setting="quick", values={**TINY, "data.scenes.n_train": 96, **more}, collections=fewer)


def test_every_row_is_measured_on_every_collection(quick: tuple[Path, list[str], Results]) -> None:
    folder, told, results = quick
    places = {(row, name) for row in ("clip", "x-vlm") for name in ("scenes", "objects")}
    assert {(entry.row, entry.dataset) for entry in results.entries} == places
    trainings = [line for line in told if "training" in line]
    assert trainings == ["row 1 of 2: CLIP: training", "row 2 of 2: X-VLM: training"]
    assert results.evidence().centric == {"objects": "object", "scenes": "scene"}
    again: list[str] = []
    same = run_study(TABLE_2_1, folder, small(), rows=["clip", "x-vlm"], tell=again.append)
    assert same == results
    assert again == ["row 1 of 2: CLIP: there already", "row 2 of 2: X-VLM: there already"]
    (found,) = collect([folder])
    assert found == results


def test_other_captions_and_another_collection_join_the_same_folder(
    copied: Path, scenes_folder: Path
) -> None:
    more = replace(small(), collections=(("more", {"path": str(scenes_folder)}),))
    results = run_study(TABLE_2_1, copied, more, rows=["clip"])
    assert results.datasets == ["more", "objects", "scenes"]
    one = run_study(TABLE_2_1, copied, small(**{"measure.captions": "random"}), rows=["clip"])
    on = {entry.dataset: entry.measurements[0].on for entry in one.of("clip")}
    assert (on["scenes"].captions, on["scenes"].chosen) == (24, "random")
    assert (on["more"].captions, on["more"].chosen) == (80, "all")


def test_an_encoder_is_given_and_another_is_refused(
    quick: tuple[Path, list[str], Results], tmp_path: Path
) -> None:
    runs = {name: quick[0] / "rows" / name / "seed-0" for name in ("clip", "x-vlm")}
    folder = tmp_path / TABLE_2_1.name

    def run(first: str, **more: Any) -> Results:
        values = {"clip": str(runs[first]), **more}
        chosen = replace(small(), setting="data", values=values)
        return run_study(TABLE_2_1, folder, chosen, rows=["clip", "x-vlm"])

    results = run("clip")
    assert {entry.row for entry in results.entries} == {"clip"}
    assert "--set x-vlm=RUN or ENCODER" in results.left_out["x-vlm"]
    given = quick[2].of("clip")
    for mine, theirs in zip(results.of("clip"), given, strict=True):
        assert mine.measurements[0].values == theirs.measurements[0].values
        assert mine.fine_tuned_from.startswith(str(runs["clip"]))
    with pytest.raises(UsageError, match=r"fingerprint .*, not"):
        run("x-vlm")
    with pytest.raises(UsageError, match="about the training of clip"):
        run("clip", **{"batches.size": 8})
    # Where it was given it is not trained.
    other = tmp_path / "other"
    chosen = replace(small(), values={"clip": str(runs["clip"])})
    run_study(TABLE_2_1, other / TABLE_2_1.name, chosen, rows=["clip"])
    with pytest.raises(UsageError, match="not a training"):
        run_study(TABLE_2_1, other / TABLE_2_1.name, small(), rows=["clip"])


def test_a_row_is_adapted_to_each_collection(copied: Path, tmp_path: Path) -> None:
    """The numbers are those of the adapted encoder, although no picture is encoded again."""
    told: list[str] = []
    chosen = small(**{"adapt.strength": 64.0})
    results = run_study(TABLE_2_1, copied, chosen, rows=["clip+16", "x-vlm+64"], tell=told.append)
    assert "adapting to 16 pairs of objects" in told
    assert "row 4 of 4: X-VLM + 64 pairs: cannot be measured on scenes" in told  # 24 pictures to train on
    assert not results.of("x-vlm+64")
    found = {entry.dataset: entry for entry in results.of("clip+16")}
    assert set(found) == {"scenes", "objects"}
    collection = scenes(24, 0, 24, size=32, objects=1)
    base = DualEncoder.load(copied / "rows" / "clip" / "seed-0" / "best")
    adapted = adapt_linear(base, collection.split("train"), pairs=16, seed=0, strength=64.0)
    by_hand = evaluate_encoder(adapted, collection.split("test"), tmp_path / "by hand", samples=0)
    values = found["objects"].measurements[0].values
    assert values["rsum"] == pytest.approx(by_hand.value("rsum"))
    assert values["i2t R@5"] == pytest.approx(100 * by_hand.value("R@5", "i2t"))
    plain = next(entry for entry in results.of("clip") if entry.dataset == "objects")
    assert plain.measurements[0].values != values
    assert found["objects"].changed == ("adapt.strength",)
    # It stands in the table and in no order: orders are of the two models as they are.
    block = next(block for block in compare(TABLE_2_1, results).blocks if block.on.dataset == "objects")
    assert [row.row.name for row in block.rows] == ["clip", "x-vlm", "clip+16"]


def test_rows_that_were_asked_other_things_are_said_to_be(
    quick: tuple[Path, list[str], Results], copied: Path
) -> None:
    assert compare(TABLE_2_1, quick[2]).remarks == ()
    one = run_study(TABLE_2_1, copied, small(**{"measure.captions": "first"}), rows=["clip"])
    comparison = compare(TABLE_2_1, one)
    assert len(comparison.remarks) == 2
    said = "clip: test, 24 images, 24 captions (first), full; x-vlm: test, 24 images, 120"
    assert said in comparison.remarks[0]
    (here,) = (row for row in comparison.tables[0].texts if row[:2] == ("scenes", "here"))
    assert not any("~" in cell for cell in here)  # other captions: no test can pair them


UNTESTED = {"n_train": 9, "n_val": 0, "n_test": 0}


def named(*names: str) -> Choices:
    section = small().collections[0][1]
    return replace(small(), collections=tuple((name, section) for name in names))


@pytest.mark.parametrize(
    ("choices", "error", "said"),
    [
        (Choices(setting="data"), UsageError, "no data given"),
        (small(**{"measure.captions": "five"}), UsageError, "all, first, random"),
        (small(**{"measure.caption": "all"}), UnknownNameError, "captions, k_test|k_test"),
        (replace(small(), positives="cxc:X"), UsageError, "own pairs"),
        (small(clip="nowhere"), UsageError, "neither a folder nor a name"),
        (small(clip=3), UsageError, "--set clip=RUN or ENCODER"),
        (replace(small(), collections=small().collections * 2), UsageError, "two collections"),
        (named("scenes", "Scenes"), UsageError, "'scenes' and 'Scenes', which are one"),
        (small(**{"measure.split": "dev"}), UnknownNameError, "split of scenes 'dev'.*test, train"),
        (replace(small(), collections=(("a", {"scenes": UNTESTED}),)), UnknownNameError, "split of a 'test'"),
        (small(**{"measure.split": "train"}), UsageError, "is adapted on the training split"),
    ],
)
def test_impossible_wishes(choices: Choices, error: type[Exception], said: str, tmp_path: Path) -> None:
    rows = ["clip+16"] if "adapted" in said else ["clip"]
    with pytest.raises(error, match=said):
        run_study(TABLE_2_1, tmp_path / "out", choices, rows=rows)
    assert not (tmp_path / "out").exists()


def test_a_known_dataset_is_not_called_another(tmp_path: Path, scenes_folder: Path) -> None:
    """Flickr8k's test split has as many images and captions as Flickr30k's."""
    folder = tmp_path / "flickr8k"
    shutil.copytree(scenes_folder, folder)
    file = next(folder.glob("*.json"))
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "dataset": "flickr8k"}))
    chosen = replace(small(), collections=(("flickr30k", {"path": str(folder)}),))
    with pytest.raises(UsageError, match=r"calls itself 'flickr8k': Flickr8k, not Flickr30k"):
        run_study(TABLE_2_1, tmp_path / "out", chosen, rows=["clip"])


def test_another_setting_in_the_same_folder_is_told_how_to_stay(
    quick: tuple[Path, list[str], Results],
) -> None:
    given = replace(small(clip=str(quick[0] / "rows" / "clip" / "seed-0")), setting="data")
    with pytest.raises(UsageError, match="holds setting 'quick', not 'data'") as caught:
        run_study(TABLE_2_1, quick[0], given, rows=["clip"])
    assert "--setting quick" in str(caught.value.fix)


def test_other_collections_are_leaves_without_a_number() -> None:
    tree = tree_of({"flickr8k": "scene", "COCO": "scene", "shop": "object", "mixed": ""})
    assert [(leaf.number, leaf.dataset, leaf.centric) for leaf in tree.leaves[:3]] == [
        (None, "shop", "object"),
        (10, "COCO", "scene"),
        (None, "flickr8k", "scene"),
    ]
    assert [leaf.direction for leaf in tree.leaves] == ["t2i"] * 3 + ["i2t"] * 3
