"""Thesis chapter 2: encoders measured as they are on several collections side by side, their orders, the tree."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_matching import FakeMatching
from ranking import evaluate_reranked
from study_runs import TINY, run_study

from diptych.core.context import stop_when
from diptych.core.errors import Interrupted, UnknownNameError, UsageError
from diptych.data import read_collection
from diptych.data.collection import Collection
from diptych.data.scenes import scenes
from diptych.encoders.dual_encoder import DualEncoder
from diptych.encoders.encode import encode_collection
from diptych.encoders.rerank import rerank
from diptych.evaluation import Result
from diptych.evaluation.evaluate_encoder import evaluate_encoded, evaluate_encoder, ground_truth_of
from diptych.studies import STUDIES, Choices, Entry, Measurement, Results, collect, compare
from diptych.studies.compare import Comparison
from diptych.studies.orders import orders
from diptych.studies.published import published_table
from diptych.studies.sources import GivenEncoder, Subject
from diptych.studies.verdict import Measured
from diptych.studies.zero_shot import ZeroShot
from diptych.training.adaptation import adapt_linear

TABLE_2_1, TABLE_2_2 = (STUDIES.get(f"reproducibility.table-2.{n}") for n in (1, 2))
RECALLS = ("R@1", "R@5", "R@10")
MODELS = {"clip": "CLIP", "x-vlm": "X-VLM"}
COLUMNS = published_table("reproducibility", "table-2.1").columns
Values = dict[tuple[str, str], dict[str, float]]

# One encoder ------------------------------------------------------------------------------------


class Given(GivenEncoder):
    """A row's encoder that need not be loaded."""

    encoder = FakeMatching()


@pytest.fixture(scope="module")
def collection(scenes_folder: Path) -> Collection:
    return replace(read_collection(str(scenes_folder)), name="flickr30k")


def measured(collection: Collection, folder: Path, **values: object) -> Measurement:
    (found,) = ZeroShot()(Subject(Given(folder, "fake"), collection, None, measuring=values))
    return found


CAPTIONS = [
    ({}, ("all", 80), ""),
    ({"captions": "first"}, ("first", 16), "captions first"),
    ({"captions": "random", "seed": 3}, ("random", 16), "captions random, seed 3"),
]


@pytest.mark.parametrize(("values", "asked", "said"), CAPTIONS, ids=["all", "first", "random"])
@pytest.mark.parametrize("k", [0, 2])
def test_an_encoder_is_measured_as_by_hand(
    collection: Collection, tmp_path: Path, values: dict[str, Any], asked: tuple[str, int], said: str, k: int
) -> None:
    found, on = (one := measured(collection, tmp_path / "row", k_test=k, **values)).values, one.on
    part = collection.split("test")
    fewer = {"all": part, "first": part.first_captions(), "random": part.random_captions(seed=3)}[asked[0]]
    encoded = encode_collection(FakeMatching(), fewer, tmp_path / "by hand", "test")
    by_hand = evaluate_encoded(encoded, None, RECALLS, samples=0)
    if k:
        by_hand = evaluate_reranked(rerank(FakeMatching(), fewer, encoded, k), ground_truth_of(encoded))
    for way in ("i2t", "t2i"):
        recalls = [100 * by_hand.value(name, way) for name in RECALLS]
        assert [found[f"{way} {name}"] for name in RECALLS] == pytest.approx(recalls)
        assert found[f"{way} rsum"] == pytest.approx(sum(recalls))
    assert found["rsum"] == pytest.approx(found["i2t rsum"] + found["t2i rsum"])
    assert (on.dataset, on.split, on.images, on.chosen, on.captions) == ("flickr30k", "test", 16, *asked)
    assert (on.reranked, on.unranked, on.centric) == (k, "miss" if k else "", "scene")
    assert said in one.protocol
    kept = Result.open(tmp_path / "row" / one.kept)
    assert len(kept.per_query["t2i"]["R@5"]) == asked[1]
    assert 100 * kept.value("R@5", "t2i") == pytest.approx(found["t2i R@5"])


def test_a_matching_head_re_ranks_as_many_as_is_usual(collection: Collection, tmp_path: Path) -> None:
    assert measured(collection, tmp_path / "row").on.reranked == 128
    assert measured(replace(collection, name="coco"), tmp_path / "coco").on.reranked == 256
    two, published = (
        measured(collection, tmp_path / "row", k_test=2, unranked=how) for how in ("miss", "published")
    )
    assert two.values["t2i R@5"] == two.values["t2i R@10"] < published.values["t2i R@10"]  # found among ties
    assert two.kept != published.kept


def test_re_ranking_stops_and_goes_on(collection: Collection, tmp_path: Path) -> None:
    """What was scored is not scored again."""
    subject = Subject(Given(tmp_path, "fake"), collection, None, measuring={"k_test": 3})
    scored = tmp_path / "reranked"
    with stop_when(lambda: any(scored.rglob("*.npy"))), pytest.raises(Interrupted, match="8 of 16 images"):
        ZeroShot()(subject)
    (found,) = ZeroShot()(subject)
    assert found.values == measured(collection, tmp_path / "at once", k_test=3).values


# Orders -----------------------------------------------------------------------------------------


def results_of(study: Any, numbers: Values, **on: Any) -> Results:
    """Results on the paper's own test sets: (row, dataset) → values."""
    sizes = {"coco": (5_000, 25_010, 256, "scene"), "flickr30k": (1_000, 5_000, 128, "scene")}
    entries = []
    for (row, dataset), values in numbers.items():
        images, captions, k, centric = sizes.get(dataset, (100, 100, 128, "object"))
        how = {"reranked": k if row == "x-vlm" else 0, "centric": centric}
        measurement = Measurement(
            values, replace(Measured(dataset, "test", images, captions, **how), **on), "protocol"
        )
        given = f"models/{row} (fingerprint 0123)"
        entries.append(
            Entry(study.name, row, 0, "paper", (measurement,), "", "", dataset, (0, 0), 0.0, given=given)
        )
    return Results(study.name, tuple(entries), several=True)


def printed(who: str, dataset: str, factor: float = 1.0) -> Values:
    """What table 2.1 prints of ``Orig.`` or ``Repr.`` models, times a factor."""
    title = {"coco": "COCO", "flickr30k": "Flickr30k"}[dataset]
    rows = {row.row: row.cells for row in published_table("reproducibility", "table-2.1").rows}
    return {
        (row, dataset): {name: cell.value * factor for name, cell in rows[f"{who} {label}, {title}"].items()}
        for row, label in MODELS.items()
    }


def verdicts(comparison: Comparison, dataset: str, by: str) -> dict[str, set[str]]:
    (block,) = (one for one in comparison.blocks if (one.on.dataset, one.on.by) == (dataset, by))
    return {row.row.name: {cell.verdict for cell in row.cells} for row in block.rows}


def statuses(comparison: Comparison) -> dict[str, str]:
    return {claim.name: judgement.status for claim, judgement, _ in comparison.claims}


def test_the_tree_and_the_table_of_the_thesis() -> None:
    """Leaf by leaf as section 2.6 tells it, then up; an original is not found again in itself."""
    relative, tree = compare(TABLE_2_1, Results(TABLE_2_1.name, (), several=True)).further.tables
    found = {row[0]: dict(zip(tree.columns, row, strict=True)) for row in tree.texts}
    thesis = {number: row["thesis"] for number, row in found.items()}
    leaves = {7: "✗ 0 of 6", 8: "✗ 0 of 6", 9: "✗ 0 of 6", 10: "✓ 3 of 3", 11: "✗ 0 of 3"}
    leaves |= {12: "◐ 2 of 6", 13: "◐ 2 of 6", 14: "◐ 2 of 6", 15: "✓ 3 of 3", 16: "◐ 2 of 3"}
    kinds = {3: "✓ 9 of 9", 4: "✗ 0 of 3", 5: "✓ 9 of 9", 6: "✗ 0 of 3"}
    roots = {1: "◐ 9 of 18", 2: "◐ 9 of 18", 0: "◐ 18 of 36"}
    assert list(thesis.items()) == [(str(n), said) for n, said in {**leaves, **kinds, **roots}.items()]
    own = [found[number]["original"] for number in ("10", "16", "4", "6", "0")]
    assert own == ["–", "–", "✓ 3 of 3", "◐ 1 of 3", "–"]
    rows = {(row[0], row[1]): dict(zip(relative.columns, row, strict=True)) for row in relative.texts}
    assert rows["coco", "thesis"]["i2t R@1"] == "X-VLM 40.24 ✓"
    assert rows["flickr30k", "thesis"]["t2i R@1"] == "CLIP 37.13 ✗"
    assert rows["flickr30k", "original"]["i2t R@1"] == "CLIP ~2.70"
    assert ("cub", "original") not in rows


def test_originals_are_reproduced_by_themselves() -> None:
    numbers = {**printed("Orig.", "coco"), **printed("Orig.", "flickr30k", 0.8)}
    results = results_of(TABLE_2_1, {**numbers, ("clip+16", "coco"): {"t2i R@1": 30.0}})
    changed = tuple(
        replace(one, changed=("adapt.strength",)) if one.row == "clip+16" else one for one in results.entries
    )
    comparison = compare(TABLE_2_1, replace(results, entries=changed))
    assert comparison.reproduces
    said = verdicts(comparison, "coco", "original")  # what changes adapted rows leaves the others theirs
    assert said == {"clip": {"reproduced"}, "x-vlm": {"reproduced"}} | {"clip+16": said["clip+16"]}
    assert set().union(*verdicts(comparison, "flickr30k", "original").values()) == {"not reproduced"}
    # Other captions, another split, other candidates: nothing is held against the thesis's.
    assert verdicts(comparison, "coco", "thesis")["x-vlm"] == {"other data"}
    block = next(one for one in comparison.blocks if (one.on.dataset, one.on.by) == ("coco", "thesis"))
    assert "X-VLM: 256 candidates re-ranked, not 2 or 4" in block.differences
    assert "models/clip (fingerprint 0123)" in comparison.label
    assert "changes of adapt.strength" in comparison.label
    found = statuses(comparison)
    names = ("COCO, relative", "COCO, absolute", "Flickr30k, X-VLM", "lower")
    assert [found[name] for name in names] == ["holds", "fails", "holds", "fails"]


CLIPS = {"split": "val", "images": 1_014, "captions": 1_014, "chosen": "first", "reranked": 0}
X_VLMS = {"reranked": 2, "unranked": "published"}


@pytest.mark.parametrize(
    ("on", "row"),
    [
        (CLIPS, "clip"),
        ({**CLIPS, "chosen": "random"}, ""),
        ({**CLIPS, "split": "test"}, ""),
        (X_VLMS, "x-vlm"),
        ({**X_VLMS, "reranked": 4}, "x-vlm"),
        ({**X_VLMS, "reranked": 3}, ""),
        ({**X_VLMS, "unranked": "miss"}, ""),
        ({**X_VLMS, "captions": 1_000, "chosen": "random"}, ""),
    ],
)
def test_a_verdict_is_on_the_printed_evaluation_alone(on: dict[str, Any], row: str) -> None:
    """How what is not re-ranked counts matters where little is: with 2 or 4 candidates."""
    said = verdicts(
        compare(TABLE_2_1, results_of(TABLE_2_1, printed("Repr.", "flickr30k"), **on)), "flickr30k", "thesis"
    )
    assert {name: said[name] for name in MODELS} == {
        name: {"reproduced" if name == row else "other data"} for name in MODELS
    }
    results = results_of(TABLE_2_1, printed("Orig.", "coco"), unranked="published")
    assert verdicts(compare(TABLE_2_1, results), "coco", "original")["x-vlm"] == {"reproduced"}


def test_another_collection_is_held_against_the_originals() -> None:
    low = dict.fromkeys(COLUMNS, 1.0)
    numbers = {**printed("Orig.", "coco"), ("clip", "shop"): {**low, "i2t R@1": 2.0}, ("x-vlm", "shop"): low}
    comparison = compare(TABLE_2_2, results_of(TABLE_2_2, numbers))
    found = statuses(comparison)
    names = ("absolute", "RQ1.3", "objects", "CUB-200, named")  # no order is found again: clip's, and ties
    assert [found[name] for name in names] == ["holds", "fails", "fails", "not tested"]
    relative, tree = comparison.further.tables
    (here,) = (dict(zip(relative.columns, row, strict=True)) for row in relative.texts if row[0] == "shop")
    assert (here["source"], here["i2t R@1"].replace("~", "")) == ("here", "CLIP 1.00")
    assert here["t2i R@1"].replace("~", "") == "tie 0.00"
    assert [row[:2] for row in tree.texts if row[1].startswith("shop")] == [
        ("", "shop (t2i)"),
        ("", "shop (i2t)"),
    ] or [row[1] for row in tree.texts if "shop" in row[1]] == ["shop (Text-to-image)", "shop (Image-to-text)"]
    unknown = results_of(TABLE_2_2, {("clip", "mine"): low, ("x-vlm", "mine"): low}, centric="")
    (remark,) = orders(TABLE_2_2, unknown.evidence()).remarks
    assert "mine has no place in the tree" in remark
    with pytest.raises(UsageError, match="differ"):  # a part of a collection is another one
        Results(TABLE_2_1.name, (*unknown.entries, replace(unknown.entries[0], data="a part")), several=True)


# Running it -------------------------------------------------------------------------------------

Quick = tuple[Path, list[str], Results]
PAIR = {"rows": ["clip", "x-vlm"]}


def small(**more: Any) -> Choices:
    sections = TABLE_2_1.settings["quick"].collections
    fewer = tuple(
        (name, {"scenes": {**section["scenes"], "n_train": 24, "n_test": 24}})
        for name, section in sections.items()
    )
    return Choices(setting="quick", values={**TINY, "data.scenes.n_train": 96, **more}, collections=fewer)


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Quick:
    """The quick setting on fewer pictures, zero-shot rows alone."""
    folder, told = tmp_path_factory.mktemp("study") / TABLE_2_1.name, []
    return folder, told, run_study(TABLE_2_1, folder, small(), tell=told.append, **PAIR)


@pytest.fixture
def copied(quick: Quick, tmp_path: Path) -> Path:
    """Its folder, for tests that change it."""
    return Path(shutil.copytree(quick[0], tmp_path / TABLE_2_1.name))


def test_every_row_is_measured_on_every_collection(quick: Quick) -> None:
    folder, told, results = quick
    places = {(row, name) for row in MODELS for name in ("scenes", "objects")}
    assert {(entry.row, entry.dataset) for entry in results.entries} == places
    trainings = [line for line in told if "training" in line]
    assert trainings == ["row 1 of 2: CLIP: training", "row 2 of 2: X-VLM: training"]
    assert results.evidence().centric == {"objects": "object", "scenes": "scene"}
    again: list[str] = []
    assert run_study(TABLE_2_1, folder, small(), tell=again.append, **PAIR) == results
    assert again == ["row 1 of 2: CLIP: there already", "row 2 of 2: X-VLM: there already"]
    assert collect([folder]) == [results]
    comparison = compare(TABLE_2_1, results)
    assert not comparison.further.remarks
    assert "stand-ins: " in comparison.label  # and no claim about models by name is tested
    assert {statuses(comparison)[claim.name] for claim in TABLE_2_1.claims if claim.about} == {"not tested"}
    with pytest.raises(UsageError, match="holds setting 'quick', not 'data'") as caught:
        run_study(TABLE_2_1, folder, replace(small(clip=str(folder)), setting="data"), rows=["clip"])
    assert "--setting quick" in str(caught.value.fix)


def test_other_captions_and_another_collection_join_the_same_folder(
    copied: Path, scenes_folder: Path
) -> None:
    more = replace(small(), collections=(("more", {"path": str(scenes_folder)}),))
    results = run_study(TABLE_2_1, copied, more, rows=["clip"])
    assert results.datasets == ["more", "objects", "scenes"]
    one = run_study(TABLE_2_1, copied, small(**{"measure.captions": "first"}), rows=["clip"])
    on = {entry.dataset: entry.measurements[0].on for entry in one.of("clip")}
    assert (on["scenes"].captions, on["scenes"].chosen) == (24, "first")
    assert (on["more"].captions, on["more"].chosen) == (80, "all")
    comparison = compare(TABLE_2_1, one)  # rows that were asked other things are said to be
    said = "clip: test, 24 images, 24 captions (first), full; x-vlm: test, 24 images, 120"
    assert [said in remark for remark in comparison.further.remarks] == [True, True]


def test_an_encoder_is_given_and_another_is_refused(quick: Quick, tmp_path: Path) -> None:
    runs = {name: quick[0] / "rows" / name / "seed-0" for name in MODELS}
    folder = tmp_path / TABLE_2_1.name

    def run(first: str, **more: Any) -> Results:
        chosen = replace(small(), setting="data", values={"clip": str(runs[first]), **more})
        return run_study(TABLE_2_1, folder, chosen, **PAIR)

    results = run("clip")
    assert {entry.row for entry in results.entries} == {"clip"}
    assert "--set x-vlm=RUN or ENCODER" in results.left_out["x-vlm"]
    for mine, theirs in zip(results.of("clip"), quick[2].of("clip"), strict=True):
        assert mine.measurements[0].values == theirs.measurements[0].values
        assert mine.given.startswith(str(runs["clip"]))
        assert (mine.stands_for, bool(theirs.stands_for)) == ("", True)
    with pytest.raises(UsageError, match=r"fingerprint .*, not"):
        run("x-vlm")
    with pytest.raises(UsageError, match="about the training of clip"):
        run("clip", **{"batches.size": 8})
    other = tmp_path / "other" / TABLE_2_1.name  # where it was given it is not trained
    run_study(TABLE_2_1, other, replace(small(), values={"clip": str(runs["clip"])}), rows=["clip"])
    with pytest.raises(UsageError, match="not a training"):
        run_study(TABLE_2_1, other, small(), rows=["clip"])


def test_a_row_is_adapted_to_each_collection(copied: Path, tmp_path: Path) -> None:
    """The numbers are those of the adapted encoder, although no picture is encoded again."""
    told: list[str] = []
    chosen = small(**{"adapt.strength": 64.0})
    results = run_study(TABLE_2_1, copied, chosen, rows=["clip+16", "x-vlm+64"], tell=told.append)
    assert "adapting to 16 pairs of objects" in told
    assert "row 4 of 4: X-VLM + 64 pairs: cannot be measured on scenes" in told  # 24 pictures to train on
    assert not results.of("x-vlm+64")
    found = {entry.dataset: entry for entry in results.of("clip+16")}
    collection = scenes(24, 0, 24, size=32, objects=1)
    base = DualEncoder.load(copied / "rows" / "clip" / "seed-0" / "best")
    adapted = adapt_linear(base, collection.split("train"), pairs=16, seed=0, strength=64.0)
    by_hand = evaluate_encoder(adapted, collection.split("test"), tmp_path / "by hand", samples=0)
    values = found["objects"].measurements[0].values
    assert values["rsum"] == pytest.approx(by_hand.value("rsum"))
    assert values["i2t R@5"] == pytest.approx(100 * by_hand.value("R@5", "i2t"))
    assert found["objects"].changed == ("adapt.strength",)
    block = next(block for block in compare(TABLE_2_1, results).blocks if block.on.dataset == "objects")
    assert [row.row.name for row in block.rows] == ["clip", "x-vlm", "clip+16"]


def named(*names: str, **section: Any) -> Choices:
    scene = {**small().collections[0][1]["scenes"], **section}
    return replace(small(), collections=tuple((name, {"scenes": scene}) for name in names))


@pytest.mark.parametrize(
    ("choices", "error", "said"),
    [
        (Choices(setting="data"), UsageError, "no data given"),
        (small(**{"measure.captions": "five"}), UsageError, "'?all'?, '?first'? or '?random'?|all, first"),
        (small(**{"measure.caption": "all"}), UnknownNameError, "captions, k_test|k_test"),
        (small(**{"measure.k_test": -1}), UsageError, "k_test"),
        (small(**{"measure.seed": 1.5}), UsageError, "seed"),
        (small(clip="nowhere"), UsageError, "neither a folder nor a name"),
        (small(clip=3), UsageError, "--set clip=RUN or ENCODER"),
        (named("scenes", "scenes"), UsageError, "two collections"),
        (named("scenes", "Scenes"), UsageError, "'scenes' and 'Scenes', which are one"),
        (small(**{"measure.split": "dev"}), UnknownNameError, "split of scenes 'dev'.*test, train"),
        (named("a", n_test=0), UnknownNameError, "split of a 'test'"),
        (small(**{"measure.split": "train"}), UsageError, "is adapted on the training split"),
    ],
)
def test_impossible_wishes(choices: Choices, error: type[Exception], said: str, tmp_path: Path) -> None:
    """Refused before anything is made."""
    with pytest.raises(error, match=said):
        run_study(TABLE_2_1, tmp_path / "out", choices, rows=["clip+16" if "adapted" in said else "clip"])
    assert not (tmp_path / "out").exists()


def test_a_known_dataset_is_not_called_another(tmp_path: Path, scenes_folder: Path) -> None:
    """Flickr8k's test split has as many images and captions as Flickr30k's."""
    folder = Path(shutil.copytree(scenes_folder, tmp_path / "flickr8k"))
    file = next(folder.glob("*.json"))
    file.write_text(json.dumps({**json.loads(file.read_text()), "dataset": "flickr8k"}))
    chosen = replace(small(), collections=(("flickr30k", {"path": str(folder)}),))
    with pytest.raises(UsageError, match=r"calls itself 'flickr8k': Flickr8k, not Flickr30k"):
        run_study(TABLE_2_1, tmp_path / "out", chosen, rows=["clip"])
