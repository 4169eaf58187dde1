"""Thesis chapter 2: encoders measured as they are on several collections side by side, their orders, the tree."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fake_matching import FakeMatching
from ranking import evaluate_reranked
from study_runs import TINY, run_study

from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, UnknownNameError, UsageError
from diptych.data import read_collection
from diptych.data.scenes import scenes
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import rerank
from diptych.evaluation.evaluate_encoder import evaluate_encoded, evaluate_encoder, ground_truth_of
from diptych.studies import STUDIES, Choices, Entry, Measurement, Results, collect, compare
from diptych.studies.published import Measured, published_table
from diptych.studies.retrieval import ZeroShot
from diptych.studies.sources import GivenEncoder, Subject
from diptych.training.adaptation import adapt_linear

TABLE_2_1, TABLE_2_2 = (STUDIES.get(f"reproducibility.table-2.{n}") for n in (1, 2))
MODELS = {"clip": "CLIP", "x-vlm": "X-VLM"}
PAIR = {"rows": list(MODELS)}
Values = dict[tuple[str, str], dict[str, float]]


class Given(GivenEncoder):
    """A row's encoder that need not be loaded."""

    encoder = FakeMatching()


@pytest.fixture(scope="module")
def collection(scenes_folder):
    return replace(read_collection(str(scenes_folder)), name="flickr30k")


def measured(collection, folder, **values):
    (found,) = ZeroShot()(Subject(Given(folder, "fake"), collection, None, measuring=values))
    return found


@pytest.mark.parametrize("k", [0, 2])
@pytest.mark.parametrize(("how", "captions"), [("all", 80), ("first", 16), ("random", 16)])
def test_measured_as_by_hand(collection, tmp_path, how, captions, k):
    found = measured(collection, tmp_path / "row", k_test=k, captions=how, seed=3)
    part = collection.split("test")
    fewer = {"all": part, "first": part.first_captions(), "random": part.random_captions(seed=3)}[how]
    encoded = encode_collection(FakeMatching(), fewer, tmp_path / "by hand", "test")
    by_hand = evaluate_encoded(encoded, None, ("R@1", "R@5", "R@10"), samples=0)
    if k:
        by_hand = evaluate_reranked(rerank(FakeMatching(), fewer, encoded, k), ground_truth_of(encoded))
    for way in ("i2t", "t2i"):
        recalls = {f"{way} R@{n}": 100 * by_hand.value(f"R@{n}", way) for n in (1, 5, 10)}
        assert {name: found.values[name] for name in recalls} == pytest.approx(recalls)
        assert found.values[f"{way} rsum"] == pytest.approx(sum(recalls.values()))
    on = Measured("flickr30k", "test", 16, captions, chosen=how, reranked=k, centric="scene")
    assert found.on == replace(on, unranked="miss" if k else "")


def test_re_ranking_stops_and_goes_on(collection, tmp_path):
    """As many candidates as is usual; what is not re-ranked ties only when asked to."""
    coco, subject = replace(collection, name="coco"), Subject(Given(tmp_path, "fake"), collection, None)
    with stop_when(lambda: any((tmp_path / "reranked").rglob("*.npy"))), pytest.raises(Interrupted):
        ZeroShot()(subject)
    (found,) = ZeroShot()(subject)
    assert found.values == measured(collection, tmp_path / "at once").values
    assert (found.on.reranked, measured(coco, tmp_path / "coco").on.reranked) == (128, 256)
    two, ties = (measured(collection, tmp_path, k_test=2, unranked=how) for how in ("miss", "published"))
    assert two.values["t2i R@5"] == two.values["t2i R@10"] < ties.values["t2i R@10"]


def results_of(study, numbers, **on):
    """Results on the paper's own test sets: (row, dataset) → values."""
    sizes = {"coco": (5_000, 25_010, 256, "scene"), "flickr30k": (1_000, 5_000, 128, "scene")}
    entries = []
    for (row, dataset), values in numbers.items():
        images, captions, k, centric = sizes.get(dataset, (100, 100, 128, "object"))
        how = {"split": "test", "images": images, "captions": captions, "centric": centric}
        how |= {"reranked": k if row == "x-vlm" else 0, **on}
        told = (Measurement(values, Measured(dataset, **how), "protocol"),)
        entries.append(Entry(study.name, row, 0, "paper", told, "", "", dataset, (0, 0), 0.0, given=row))
    return Results(study.name, tuple(entries), several=True)


def printed(who, title, factor=1.0):
    """What table 2.1 prints of ``Orig.`` or ``Repr.`` models, times a factor."""
    rows = {row.row: row.cells for row in published_table("reproducibility", "table-2.1").rows}
    own = {row: rows[f"{who} {label}, {title}"].items() for row, label in MODELS.items()}
    return {
        (row, title.lower()): {name: factor * cell.value for name, cell in cells}
        for row, cells in own.items()
    }


def verdicts(comparison, dataset, by):
    (block,) = (one for one in comparison.blocks if (one.on.dataset, one.on.by) == (dataset, by))
    return {
        row.row.name: {cell.verdict for cell in row.cells} for row in block.rows if row.row.name in MODELS
    }


def statuses(comparison):
    return {claim.name: judgement.status for claim, judgement, _ in comparison.claims}


LEAVES = {7: "✗ 0 of 6", 8: "✗ 0 of 6", 9: "✗ 0 of 6", 10: "✓ 3 of 3", 11: "✗ 0 of 3", 12: "◐ 2 of 6"}
LEAVES |= {13: "◐ 2 of 6", 14: "◐ 2 of 6", 15: "✓ 3 of 3", 16: "◐ 2 of 3"}
UPWARDS = {
    3: "✓ 9 of 9",
    4: "✗ 0 of 3",
    5: "✓ 9 of 9",
    6: "✗ 0 of 3",
    1: "◐ 9 of 18",
    2: "◐ 9 of 18",
    0: "◐ 18 of 36",
}


def test_the_tree_and_the_orders_of_the_thesis():
    """Leaf by leaf as section 2.6 tells it, then up; an original is not found again in itself."""
    relative, tree = compare(TABLE_2_1, Results(TABLE_2_1.name, (), several=True)).further.tables
    found = {row[0]: dict(zip(tree.columns, row, strict=True)) for row in tree.texts}
    said = [(number, row["thesis"]) for number, row in found.items()]
    assert said == [(str(n), text) for n, text in {**LEAVES, **UPWARDS}.items()]
    assert [found[number]["original"] for number in ("10", "4", "6", "0")] == [
        "–",
        "✓ 3 of 3",
        "◐ 1 of 3",
        "–",
    ]
    rows = {row[:2]: dict(zip(relative.columns, row, strict=True)) for row in relative.texts}
    assert rows["coco", "thesis"]["i2t R@1"] == "X-VLM 40.24 ✓"
    assert rows["flickr30k", "thesis"]["t2i R@1"] == "CLIP 37.13 ✗"
    assert rows["flickr30k", "original"]["i2t R@1"] == "CLIP ~2.70"


def test_originals_are_reproduced_by_themselves():
    numbers = {**printed("Orig.", "COCO"), **printed("Orig.", "Flickr30k", 0.8)}
    comparison = compare(TABLE_2_1, results_of(TABLE_2_1, numbers))
    assert verdicts(comparison, "coco", "original") == {"clip": {"reproduced"}, "x-vlm": {"reproduced"}}
    assert set().union(*verdicts(comparison, "flickr30k", "original").values()) == {"not reproduced"}
    block = next(one for one in comparison.blocks if (one.on.dataset, one.on.by) == ("coco", "thesis"))
    assert "X-VLM: 256 candidates re-ranked, not 2 or 4" in block.differences
    names = {"COCO, relative": "holds", "COCO, absolute": "fails", "Flickr30k, X-VLM": "holds"}
    assert {name: statuses(comparison)[name] for name in names} == names


CLIPS = {"split": "val", "images": 1_014, "captions": 1_014, "chosen": "first", "reranked": 0}
X_VLMS = {"reranked": 2, "unranked": "published"}
OTHERS = [{**CLIPS, "chosen": "random"}, {**CLIPS, "split": "test"}, {**X_VLMS, "reranked": 3}]
OTHERS += [{**X_VLMS, "unranked": "miss"}, {**X_VLMS, "captions": 1_000, "chosen": "random"}]


def test_a_verdict_is_on_the_printed_evaluation_alone():
    """How what is not re-ranked counts matters where little is: with 2 or 4 candidates."""
    for on, row in [
        (CLIPS, "clip"),
        (X_VLMS, "x-vlm"),
        ({**X_VLMS, "reranked": 4}, "x-vlm"),
        *((one, "") for one in OTHERS),
    ]:
        said = verdicts(
            compare(TABLE_2_1, results_of(TABLE_2_1, printed("Repr.", "Flickr30k"), **on)),
            "flickr30k",
            "thesis",
        )
        assert said == {name: {"reproduced" if name == row else "other data"} for name in MODELS}, on
    results = results_of(TABLE_2_1, printed("Orig.", "COCO"), unranked="published")
    assert verdicts(compare(TABLE_2_1, results), "coco", "original")["x-vlm"] == {"reproduced"}


def test_another_collection_is_held_against_the_originals():
    low, high = (dict.fromkeys((one.name for one in TABLE_2_1.columns), value) for value in (1.0, 30.0))
    numbers = {**printed("Orig.", "COCO"), ("clip", "shop"): high, ("x-vlm", "shop"): low}
    comparison = compare(TABLE_2_2, results_of(TABLE_2_2, numbers))
    names = {"absolute": "holds", "RQ1.3": "fails", "objects": "holds", "CUB-200, named": "not tested"}
    assert {name: statuses(comparison)[name] for name in names} == names
    relative, tree = comparison.further.tables
    assert [row[:3] for row in relative.texts if row[0] == "shop"] == [("shop", "here", "CLIP 29.00")]
    assert [row[:2] for row in tree.texts if "shop" in row[1]] == [("", "shop (t2i)"), ("", "shop (i2t)")]
    unknown = results_of(TABLE_2_2, {("clip", "mine"): low, ("x-vlm", "mine"): low}, centric="")
    (remark,) = compare(TABLE_2_2, unknown).further.remarks
    assert "mine has no place in the tree" in remark


Quick = tuple[Path, list[str], Results]


def small(**more):
    fewer = tuple(
        (name, {"scenes": {**section["scenes"], "n_train": 24, "n_test": 24}})
        for name, section in TABLE_2_1.settings["quick"].collections.items()
    )
    return Choices(setting="quick", values={**TINY, "data.scenes.n_train": 96, **more}, collections=fewer)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """The quick setting on fewer pictures, zero-shot rows alone."""
    folder, told = tmp_path_factory.mktemp("study") / TABLE_2_1.name, []
    return folder, told, run_study(TABLE_2_1, folder, small(), tell=told.append, **PAIR)


@pytest.fixture
def copied(quick, tmp_path):
    """Its folder, for tests that change it."""
    return Path(shutil.copytree(quick[0], tmp_path / TABLE_2_1.name))


def test_every_row_is_measured_on_every_collection(quick):
    folder, told, results = quick
    places = [(row, name) for row in MODELS for name in ("objects", "scenes")]
    assert sorted((entry.row, entry.dataset) for entry in results.entries) == places
    trainings = [line for line in told if "training" in line]
    assert trainings == ["row 1 of 2: CLIP: training", "row 2 of 2: X-VLM: training"]
    again = []
    assert run_study(TABLE_2_1, folder, small(), tell=again.append, **PAIR) == results
    assert again == ["row 1 of 2: CLIP: there already", "row 2 of 2: X-VLM: there already"]
    assert collect([folder]) == [results]
    comparison = compare(TABLE_2_1, results)  # of stand-ins, which test no claim about models by name
    assert {statuses(comparison)[claim.name] for claim in TABLE_2_1.claims if claim.about} == {"not tested"}


def test_other_captions_and_another_collection_join_the_folder(copied, scenes_folder):
    more = replace(small(), collections=(("more", {"path": str(scenes_folder)}),))
    assert run_study(TABLE_2_1, copied, more, rows=["clip"]).datasets == ["more", "objects", "scenes"]
    one = run_study(TABLE_2_1, copied, small(**{"measure.captions": "first"}), rows=["clip"])
    on = {entry.dataset: entry.measurements[0].on.captions for entry in one.of("clip")}
    assert on == {"more": 80, "objects": 24, "scenes": 24}
    said = "clip: test, 24 images, 24 captions (first), full; x-vlm: test, 24 images, 120"
    assert [said in remark for remark in compare(TABLE_2_1, one).further.remarks] == [True, True]


def test_an_encoder_is_given_and_another_is_refused(quick, tmp_path):
    def run(given, setting="data", rows=MODELS, **more):
        values = {"clip": str(quick[0] / "rows" / given / "seed-0")} if given else small().values
        chosen = replace(small(), setting=setting, values={**values, **more})
        return run_study(TABLE_2_1, tmp_path / setting / TABLE_2_1.name, chosen, rows=list(rows))

    results = run("clip")
    assert {entry.row for entry in results.entries} == {"clip"}
    assert "--set x-vlm=RUN or ENCODER" in results.left_out["x-vlm"]
    for mine, theirs in zip(results.of("clip"), quick[2].of("clip"), strict=True):
        assert mine.measurements[0].values == theirs.measurements[0].values
        assert (mine.stands_for, bool(mine.given), bool(theirs.stands_for)) == ("", True, True)
    with pytest.raises(UsageError, match=r"fingerprint .*, not"):
        run("x-vlm")
    with pytest.raises(UsageError, match="about the training of clip"):
        run("clip", **{"batches.size": 8})
    run("clip", "quick", ["clip"])
    with pytest.raises(UsageError, match="not a training"):  # where it was given it is not trained
        run("", "quick", ["clip"])


def test_a_row_is_adapted_to_each_collection(copied, tmp_path):
    """The numbers are those of the adapted encoder, although no picture is encoded again."""
    told = []
    chosen = small(**{"adapt.strength": 64.0})
    results = run_study(TABLE_2_1, copied, chosen, rows=["clip+16", "x-vlm+64"], tell=told.append)
    assert "row 4 of 4: X-VLM + 64 pairs: cannot be measured on scenes" in told  # 24 pictures to train on
    (found,) = (entry for entry in results.of("clip+16") if entry.dataset == "objects")
    collection = scenes(24, 0, 24, size=32, objects=1)
    base = DualEncoder.load(copied / "rows" / "clip" / "seed-0" / "best")
    adapted = adapt_linear(base, collection.split("train"), pairs=16, seed=0, strength=64.0)
    by_hand = evaluate_encoder(adapted, collection.split("test"), tmp_path / "by hand", samples=0)
    assert found.measurements[0].values["rsum"] == pytest.approx(by_hand.value("rsum"))
    assert "adapt.strength" in found.changed
    base_row = run_study(TABLE_2_1, copied, chosen, rows=["clip"]).of("clip")
    assert not any("adapt.strength" in entry.changed for entry in base_row)


def test_impossible_wishes(tmp_path):
    """Refused before anything is made."""
    for values, error, said in [
        ({"measure.captions": "five"}, UsageError, "'all', 'first' or 'random'"),
        ({"measure.caption": "all"}, UnknownNameError, "captions, k_test|k_test"),
        ({"measure.k_test": -1}, UsageError, "k_test"),
        ({"measure.split": "dev"}, UnknownNameError, "split of scenes 'dev'.*test, train"),
        ({"measure.split": "train"}, UsageError, "is adapted on the training split"),
        ({"clip": "nowhere"}, UsageError, "neither a folder nor a name"),
        ({"clip": 3}, UsageError, "--set clip=RUN or ENCODER"),
    ]:
        with pytest.raises(error, match=said):
            run_study(
                TABLE_2_1,
                tmp_path / "out",
                small(**values),
                rows=["clip+16" if "adapted" in said else "clip"],
            )
        assert not (tmp_path / "out").exists()


def test_collections_are_called_apart(tmp_path, scenes_folder):
    """Flickr8k's test split has as many images and captions as Flickr30k's."""
    folder = Path(shutil.copytree(scenes_folder, tmp_path / "flickr8k"))
    file = next(folder.glob("*.json"))
    file.write_text(file.read_text().replace('"dataset":"scenes"', '"dataset":"flickr8k"'))
    for names, said in (
        (["flickr30k"], "Flickr8k, not Flickr30k"),
        (["a", "A"], "'a' and 'A', which are one"),
    ):
        data = tuple((name, {"path": str(folder)}) for name in names)
        with pytest.raises(UsageError, match=said):
            run_study(TABLE_2_1, tmp_path / "out", replace(small(), collections=data), rows=["clip"])
