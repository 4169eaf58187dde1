"""The explorer is not told what was done to the numbers, and has to find it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import combinations, groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ranking import scored
from refusals import refused
from two_stage import TwoStage, cut_off, folded_recalls, published_recalls, rounded

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.data import Collection
from diptych.data.images import FolderSource
from diptych.evaluation.printed import Target, read_digits
from diptych.evaluation.variants import (
    AXES,
    Change,
    Choice,
    Exploration,
    NotPossible,
    Recompute,
    Scored,
    Settings,
    Variant,
    explain,
    explore,
    explore_rows,
    explore_scores,
)
from diptych.evaluation.variants.axes import KEPT
from diptych.evaluation.variants.explore import luck
from diptych.metrics import UNSCORED, Candidates, GroundTruth, Reranked, similarity

N, K = 250, 5
Recalls = dict[str, float]


def rows(model: TwoStage, n: int, **options: Any) -> Scored:
    source = similarity("cosine").source(model.images, model.texts)
    return Scored(source, GroundTruth.from_caption_image(model.home, n), **options)


@pytest.fixture(scope="module")
def model() -> TwoStage:
    """What X-VLM is like: a matching head that is much better than the contrastive rows."""
    return TwoStage(N, K)


@pytest.fixture(scope="module")
def sources(model: TwoStage) -> dict[str, Scored]:
    """The model's rows; with the scores of its head; with the 32 best candidates, as evaluations store them."""
    truth = GroundTruth.from_caption_image(model.home, N)
    best = scored(model.images, model.texts, model.matching, 32)
    return {
        "rows": rows(model, N),
        "head": Scored(model.contrastive, truth, matching=model.matching),
        "stored": rows(model, N, reranked=best),
    }


def tried(sources: dict[str, Scored], printed: Recalls, decimals: int = 2) -> Exploration:
    return explore(sources, Target.of(printed, decimals), threads=1)


def lines(found: Exploration) -> list[str]:
    return [one.line() for one in found.explanations]


def plain(model: TwoStage) -> Recalls:
    return published_recalls(model.contrastive, None, model.home, 0)


def of_two(model: TwoStage) -> Recalls:
    return published_recalls(model.contrastive, model.matching, model.home, 2)


def first_of_two(model: TwoStage) -> Recalls:
    some = model.caption(0)
    return published_recalls(model.contrastive[:, some], model.matching[:, some], np.arange(N), 2)


def rotated(model: TwoStage) -> Recalls:
    """Table 5.2 of the thesis prints R@5, R@10, R@1 of hits over possible hits as R@1, R@5, R@10."""
    found = plain(model)
    return {**found, **{f"i2t R@{k}": found[f"i2t R@{other}"] for k, other in ((1, 5), (5, 10), (10, 1))}}


def shares(model: TwoStage) -> Recalls:
    right = model.home[np.argsort(-model.contrastive, axis=1)] == np.arange(N)[:, None]
    found = {f"i2t R@{k}": 100 * float(np.mean(right[:, :k].sum(axis=1) / min(k, K))) for k in (1, 5, 10)}
    return {**plain(model), **found}


@pytest.mark.parametrize(
    ("source", "done", "explanation", "signs"),
    [
        ("stored", of_two, "k_test = 2", ["truncated", "truncated"]),
        ("head", first_of_two, "captions = first, k_test = 2", None),
        (
            "rows",
            lambda model: folded_recalls(model.contrastive, model.home, 5),
            "galleries = folds(5)",
            None,
        ),
        ("rows", rotated, "columns = i2t rotated to R@5, R@10, R@1", ["impossible"]),
        ("rows", shares, "counting = share of possible", None),
        ("rows", plain, "", None),
    ],
)
def test_it_finds_what_was_done(
    source: str,
    done: Callable[[TwoStage], Recalls],
    explanation: str,
    signs: list[str] | None,
    model: TwoStage,
    sources: dict[str, Scored],
) -> None:
    found = tried({"test": sources[source]}, rounded(done(model)))
    best = found.explanations[0]
    assert found.exact_explanations[0] == best
    said = "\n".join(explain(found))
    if not explanation:
        assert best is found.as_given
        assert "No change of protocol is needed" in said
        assert "no proof" not in said
        return
    assert best.line() == found.exact_explanations[0].line() == explanation
    assert best.is_exact
    assert found.default["k_test"] == {"stored": "32", "head": "everything"}.get(source, "none")
    if done is first_of_two:
        assert not any(len(one.changes) == 1 for one in found.explanations)
        assert f"{explanation} explain it together" in said
    else:
        assert f"{explanation} explains it" in said
        assert found.single_changes[0].line() == explanation
    assert "It prints every cell alike" in said
    assert "no proof of it" in said
    if signs:
        assert [one.kind for one in read_digits(found.target, found.galleries).signs] == signs


def test_another_split_and_digits_cut_off(sources: dict[str, Scored]) -> None:
    """What the thesis's CLIP rows look like: scored on dev, first captions, digits cut off."""
    dev = TwoStage(507, K, seed=7, contrast=0.9)
    other = rows(dev, 507)
    recalls = published_recalls(dev.contrastive[:, dev.caption(0)], None, np.arange(507), 0)
    printed = cut_off(recalls)
    assert printed != rounded(recalls)
    found = tried({"test": sources["rows"], "dev": other}, printed)
    assert "captions = first, source = dev" in lines(found)
    assert found.exact_explanations[0].line() == "captions = first, digits = cut off, source = dev"
    digits = read_digits(found.target, found.galleries)
    assert 507 in [size.n for size in digits.sizes["all recalls"]["truncate"].sizes]
    assert f"cannot be shares of the {N:,} queries given" in "\n".join(digits.sentences())


def test_nothing_explains_it(sources: dict[str, Scored]) -> None:
    """A better model from images and a worse one from texts."""
    printed = dict(zip([f"i2t R@{k}" for k in (1, 5, 10)], (99.0, 99.6, 99.9), strict=True))
    printed |= dict(zip([f"t2i R@{k}" for k in (1, 5, 10)], (3.0, 9.0, 13.0), strict=True))
    found = tried({"test": sources["head"]}, printed)
    assert found.explanations == found.exact_explanations == ()
    assert found.luck is None
    assert "t2i R@1" in found.out_of_reach
    said = "\n".join(explain(found))
    assert "Nothing that was tried explains it" in said
    assert "No variant comes within tolerance of" in said
    assert "explains it:" not in said


def test_the_same_inputs_give_the_same_result(model: TwoStage, sources: dict[str, Scored]) -> None:
    printed = rounded(of_two(model))
    target = Target.of(printed, 2)
    one, other = (
        explore({"test": sources["head"]}, target, threads=threads, changes=1) for threads in (1, 2)
    )
    written = json.loads(json.dumps(one.to_dict()))
    assert written == json.loads(json.dumps(other.to_dict()))
    assert written["explanations"][0]["changes"] == "k_test = 2"
    assert written["target"]["i2t R@1"] == f"{printed['i2t R@1']:.2f}"
    assert written["galleries"]["i2t"] == [N * K, K, N]
    assert {one["changes"].split(" = ")[0] for one in written["single_changes"]} <= set(AXES.names())


def test_what_is_asked_wrongly(sources: dict[str, Scored]) -> None:
    target = Target.of({"i2t R@1": 10.0}, 1)
    some = {"test": sources["rows"]}
    refused(UsageError, "tolerance is 5", explore, some, target, tolerance=5)
    refused(UnknownNameError, "axis of protocols 'split'", explore, some, target, axes=["split"])
    empty = Scored(np.zeros((3, 0)), GroundTruth.from_caption_image(np.array([], dtype=int), 3))
    refused(DataError, "3 images and 0 texts", explore, {"test": empty}, target)


TENTHS = Target.of({"i2t R@1": 10}, 1)


def variant(value: float, choice: str = "", explains: bool = False) -> Variant:
    changes = (Change("axis", choice),) if choice else ()
    cells = ("i2t R@1",) if explains else ()
    return Variant(changes, {"i2t R@1": value}, {"i2t R@1": 0.0}, cells, cells, cells)


SOME = [variant(10, "", True), variant(20, "a"), variant(40, "b")]
NEAR = [variant(10, "", True), variant(19.6, "a"), variant(40, "b")]
ALIKE = [variant(10, "", True), variant(10.1, "a"), variant(10.2, "b"), variant(10.2, "c")]
DEEPER = Variant((Change("a", "1"), Change("b", "2")), {"i2t R@1": 20.0}, {"i2t R@1": 1.0}, (), (), ())


@pytest.mark.parametrize(
    ("some", "target", "tolerance", "kind", "expected"),
    [
        # Between 10 and 40 lies 20, between 10 and 20 14.1, between 20 and 40 28.3: one of three is met.
        (SOME, TENTHS, 0.05, "explains", 1 / 3),
        (SOME, TENTHS, 0.5, "explains", 1),
        (SOME, TENTHS, 0.05, "is_exact", 1 / 3),
        # Variants that do the same count for nothing, nor do more changes than are needed.
        (ALIKE, TENTHS, 0.05, "explains", None),
        ([*ALIKE, variant(90, "d")], TENTHS, 0.05, "explains", 0),
        ([variant(10, "a", True), variant(40, "b")], TENTHS, 0.05, "explains", 0),
        ([variant(10, "a", True), variant(40, "b"), DEEPER], TENTHS, 0.05, "explains", 0),
        ([variant(10), variant(40, "b")], TENTHS, 0.05, "explains", None),
        ([variant(10), variant(40, "b")], TENTHS, 0.05, "is_exact", None),
        # 19.6 is within 5 % of the 20 between 10 and 40; 0.5 % are 19.9 to 20.1; in whole numbers it is 20.
        (NEAR, TENTHS, 0.05, "explains", 1 / 3),
        (NEAR, TENTHS, 0.05, "is_near", 0),
        ([NEAR[0], variant(19.95, "a"), NEAR[2]], TENTHS, 0.05, "is_near", 1 / 3),
        (NEAR, Target.of({"i2t R@1": 10}, 0), 0.05, "is_near", 1 / 3),
    ],
)
def test_luck_is_the_share_of_targets_between_variants_that_one_of_them_meets(
    some: list[Variant], target: Target, tolerance: float, kind: str, expected: float | None
) -> None:
    found = luck(some, target, tolerance, kind)
    assert found == (None if expected is None else pytest.approx(expected))


PAGE = Path(__file__).parents[2] / "docs" / "protocols.md"


def test_the_axes_and_their_choices_are_those_that_there_are() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(AXES.names())


N_SMALL = 100


@pytest.fixture(scope="module")
def small_model() -> TwoStage:
    return TwoStage(N_SMALL, K)


@pytest.fixture(scope="module")
def printed(small_model: TwoStage) -> dict[str, float]:
    """Two candidates re-ranked, as published."""
    return rounded(published_recalls(small_model.contrastive, small_model.matching, small_model.home, 2))


def cut(first: np.ndarray, matching: np.ndarray, k: int) -> np.ndarray:
    """The matrix that published evaluations hold."""
    scores = np.full(first.shape, UNSCORED)
    for row, chosen in enumerate(np.argsort(-first, axis=1)[:, :k]):
        scores[row, chosen] = matching[row, chosen]
    return scores


def first(found: Any) -> str:
    return str(found.explanations[0].line())


def test_every_form_of_ground_truth(small_model: TwoStage, printed: dict[str, float]) -> None:
    target = {name: value for name, value in printed.items() if name.startswith("t2i")}
    positives = small_model.home[None, :] == np.arange(N_SMALL)[:, None]
    forms: list[object] = [
        GroundTruth.from_caption_image(small_model.home, N_SMALL),
        small_model.home.tolist(),
        positives,
        {row: np.flatnonzero(positives[row]) for row in range(N_SMALL)},
        {row: list(range(K * row, K * row + K)) for row in range(N_SMALL)},
        K,
        None,
    ]
    options: dict[str, Any] = {"matching": small_model.matching, "threads": 1, "changes": 1}
    found = [explore_scores(small_model.contrastive, form, target, **options) for form in forms]
    assert {first(one) for one in found} == {"k_test = 2"}
    assert len({one.as_given.mean_error for one in found}) == 1
    assert found[-1].about["given"]["ground truth"] == "5 texts of each image, next to each other (assumed)"
    assert "ground truth" not in found[0].about["given"]


def test_matrices_of_each_direction_that_are_cut(small_model: TwoStage, printed: dict[str, float]) -> None:
    """As evaluations save them: -100 where nothing was scored, texts as rows of the second."""
    options: dict[str, Any] = {"threads": 1, "changes": 2}
    deep = (
        cut(small_model.contrastive, small_model.matching, 64),
        cut(small_model.contrastive.T, small_model.matching.T, 64),
    )
    found = explore_scores(small_model.contrastive, K, printed, matching=deep, **options)
    assert found.default["k_test"] == "64"
    assert first(found) == "k_test = 2"
    two = {
        "i2t": cut(small_model.contrastive, small_model.matching, 2),
        "t2i": cut(small_model.contrastive.T, small_model.matching.T, 2),
    }
    found = explore_scores(small_model.contrastive, K, printed, matching=two, **options)
    assert found.explanations[0].is_exact
    assert "By default all 2 stored candidates of each query are re-ranked, so that R@5 and R@10" in str(
        found
    )
    whole = explore_scores(
        small_model.contrastive,
        K,
        printed,
        matching=(small_model.matching, small_model.matching.T),
        **options,
    )
    assert whole.default["k_test"] == "everything"
    assert first(whole) == "k_test = 2"


def test_from_embeddings(small_model: TwoStage) -> None:
    of_first = small_model.caption(0)
    printed = rounded(published_recalls(small_model.contrastive[:, of_first], None, np.arange(N_SMALL), 0))
    found = explore_rows(
        small_model.images, small_model.texts, small_model.home, printed, threads=1, changes=2
    )
    assert first(found) == "captions = first"


def test_what_is_given_wrongly(small_model: TwoStage) -> None:
    target = {"i2t R@1": 10.0}
    scores = small_model.contrastive
    broken = small_model.matching.copy()
    broken[0, 1:] = UNSCORED
    cut, twice = (broken, small_model.matching.T), (small_model.matching, small_model.matching)
    turned = "500 texts for scores of 500 images and 100 texts"
    refused(DataError, "no matrix", explore_scores, scores[0], None, target)
    refused(UsageError, "100 texts of 500 images", explore_scores, scores.T, None, target)
    refused(DataError, turned, explore_scores, scores.T, small_model.home, target)
    refused(UsageError, "500 texts of 100 images, 4 of each", explore_scores, scores, 4, target)
    refused(
        UsageError, "of type ndarray is not understood", explore_scores, scores, small_model.home / 2, target
    )
    refused(DataError, r"truth of shape \(2, 2\)", explore_scores, scores, np.eye(2, dtype=bool), target)
    refused(UsageError, "names no cells", explore_scores, scores, target, small_model.home)
    refused(UsageError, "499 matching scores are missing", explore_scores, scores, K, target, matching=broken)
    refused(DataError, "0 has 1 scored items, others 500", explore_scores, scores, K, target, matching=cut)
    refused(DataError, r"t2i of shape \(100, 500\)", explore_scores, scores, K, target, matching=twice)
    refused(
        UsageError,
        "give i2t and t2i",
        explore_scores,
        scores,
        K,
        target,
        matching={"i2t": small_model.matching},
    )


CELLS = tuple(f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10))
NOTHING = Target.of(dict.fromkeys(CELLS, 10.0), 1)


@pytest.fixture(scope="module")
def model_of_100() -> TwoStage:
    return TwoStage(100, k=5)


@pytest.fixture(scope="module")
def truth(model_of_100: TwoStage) -> GroundTruth:
    return GroundTruth.from_caption_image(model_of_100.home, 100)


def cosine(images: np.ndarray, texts: np.ndarray, truth: GroundTruth, **options: Any) -> Scored:
    return Scored(similarity("cosine").source(images, texts), truth, **options)


def chosen(source: Scored, target: Target = NOTHING, **wanted: str) -> Settings:
    """Settings with choices made by axis and name, as the explorer makes them."""
    fields: dict[str, Any] = {}
    for axis in AXES:
        options = {one.name: one for one in axis.choices({"test": source}, target)}
        fields |= options[wanted.get(axis.name, next(iter(options)))].fields
    return Settings(**fields)


def cells(source: Scored, wanted: Settings, names: tuple[str, ...] = CELLS) -> dict[str, float]:
    return Recompute({"test": source}, names, 16, threads=1).cells(wanted)


def test_what_cannot_be(model_of_100: TwoStage, truth: GroundTruth) -> None:
    images, texts, scores = model_of_100.images, model_of_100.texts, model_of_100.contrastive
    some = scored(images, texts, model_of_100.matching, 4)
    other = TwoStage(40)
    broken = model_of_100.matching.copy()
    broken[3, 7] = np.nan
    matched: dict[str, Any] = {"depth": 2, "matched": True}
    stranger = scored(other.images, other.texts, other.matching, 4)
    plain = cosine(images, texts, truth)
    few = cosine(images, texts, truth, reranked=some)
    both: dict[str, Any] = {"matching": model_of_100.matching, "reranked": some}
    of_40 = "candidates of 40 images and 200 texts for a ground truth of 100 images and 500 texts"
    refused(DataError, of_40, cosine, images, texts, truth, reranked=stranger)
    refused(DataError, "40 image rows for a ground truth of 100", cosine, images[:40], texts, truth)
    refused(DataError, "500 image rows for a ground truth of 100", Scored, scores.T, truth)
    refused(DataError, "2 image ids for 100 images", Scored, scores, truth, image_ids=["a", "b"])
    refused(UsageError, "give one of them", Scored, scores, truth, **both)
    refused(NumericalError, "row 3 and text row 7 is nan", Scored, scores, truth, matching=broken)
    refused(NotPossible, "no matching scores", cells, plain, Settings("test", **matched))
    refused(NotPossible, "only some candidates", cells, few, Settings("test", matched=True))


def test_two_measures_called_map(model_of_100: TwoStage, truth: GroundTruth) -> None:
    """Over the positives that are found, and over all five that could be."""
    source = cosine(model_of_100.images, model_of_100.texts, truth)
    target = Target.of({"i2t mAP@5": 40.0}, 0)
    plain, over_hits = (chosen(source, target, mAP=name) for name in ("over positives", "over hits"))
    order = np.argsort(-model_of_100.contrastive, axis=1)[:, :5]
    hits = model_of_100.home[order] == np.arange(100)[:, None]
    precision = np.cumsum(hits, axis=1) / np.arange(1, 6)
    sums = np.sum(precision * hits, axis=1)
    names = ("i2t mAP@5", "i2t R@5")
    found = [cells(source, one, names) for one in (plain, over_hits)]
    assert found[0]["i2t mAP@5"] == pytest.approx(100 * np.mean(sums / 5))
    assert found[1]["i2t mAP@5"] == pytest.approx(100 * np.mean(sums / np.maximum(hits.sum(axis=1), 1)))
    assert found[0]["i2t R@5"] == found[1]["i2t R@5"]
    assert len(list(AXES.get("mAP").choices({"test": source}, NOTHING))) == 1


def test_random_captions_are_those_that_embedding_draws() -> None:
    """``diptych embed --captions random:1`` and ``captions = random, seed 1`` mean the same captions."""
    counts = np.random.default_rng(0).integers(1, 7, 60)
    home = np.repeat(np.arange(60), counts)
    ids = [f"{row:03d}.jpg" for row in np.random.default_rng(1).permutation(60)]
    collection = Collection(
        name="made-up",
        image_ids=ids,
        captions=[f"caption {row}" for row in range(len(home))],
        caption_ids=[str(row) for row in range(len(home))],
        caption_image=home,
        splits=["test"] * 60,
        source=FolderSource("nowhere", ids),
        source_rows=np.arange(60),
    )
    scores = np.zeros((60, len(home)))
    source = Scored(scores, GroundTruth.from_caption_image(home, 60), image_ids=ids)
    for seed in (0, 1, 2):
        settings = chosen(source, captions=f"random, seed {seed}")
        kept = KEPT[settings.captions](source.truth, source.image_keys)
        assert list(map(str, kept)) == list(collection.random_captions(seed=seed).caption_ids)


VARIED = ("captions", "counting", "k_test", "unranked", "ties")


class Case:
    """Whole-number scores of a few pictures with uneven captions, some of which fit other pictures too."""

    def __init__(self, seed: int, kind: str) -> None:
        draw = np.random.default_rng(seed)
        self.n = int(draw.choice([4, 6, 8]))
        self.home = draw.permutation(np.repeat(np.arange(self.n), draw.integers(1, 8, self.n)))
        shape = (self.n, len(self.home))
        self.scores = draw.integers(0, draw.integers(2, 30), shape).astype(float)
        self.matching = draw.integers(-4, 4, shape).astype(float)
        self.adds = bool(seed % 2)
        own = self.home[None, :] == np.arange(self.n)[:, None]
        self.relevant = {
            "i2t": own | (draw.random(shape) < 0.08),
            "t2i": (own | (draw.random(shape) < 0.08)).T,
        }
        self.truth = GroundTruth.from_directions(
            np.nonzero(self.relevant["i2t"]),
            np.nonzero(self.relevant["t2i"])[::-1],
            *shape,
            text_image=self.home,
        )
        self.stored: dict[str, np.ndarray] = {}
        reranked = None
        if kind == "stored":
            k = int(draw.integers(2, self.n + 1))
            sides = []
            for name, first, second in self.directions():
                items = np.argsort(-first, axis=1, kind="stable")[:, :k]
                self.stored[name] = items
                sides.append(
                    Candidates(
                        items, *(np.take_along_axis(one, items, 1).astype("f4") for one in (first, second))
                    )
                )
            reranked = Reranked(*sides, adds_contrastive=self.adds)
        whole = self.matching if kind == "whole" else None
        self.source = Scored(
            self.scores, self.truth, matching=whole, reranked=reranked, adds_contrastive=self.adds
        )

    def directions(self) -> Iterable[tuple[str, np.ndarray, np.ndarray]]:
        yield "i2t", self.scores, self.matching
        yield "t2i", self.scores.T, self.matching.T

    def cells(self, wanted: Settings, folds: int, counting: str) -> dict[str, float] | None:
        """What a variant is, ranked with a list per query; None where there are too few candidates."""
        texts: Iterable[int] = range(len(self.home))
        if wanted.captions:
            texts = KEPT[wanted.captions](self.truth, self.source.image_keys).tolist()
        found: dict[str, list[float]] = {name: [] for name in CELLS}
        size = self.n // folds
        for fold in range(folds):
            images = list(range(fold * size, (fold + 1) * size))
            here = [text for text in texts if folds == 1 or self.home[text] // size == fold]
            for name, first, second in self.directions():
                queries, gallery = (images, here) if name == "i2t" else (here, images)
                chosen = self.chosen(wanted, name, first, queries, gallery)
                if chosen is None:
                    return None
                hits: dict[int, list[float]] = {1: [], 5: [], 10: []}
                for query in queries:
                    positives = {item for item in gallery if self.relevant[name][query, item]}
                    if counting == "first caption" and name == "i2t":
                        positives &= set([text for text in here if self.home[text] == query][:1])
                    final = (
                        second[query] + (first[query] if self.adds else 0.0)
                        if wanted.matched
                        else first[query]
                    )
                    order = self.order(wanted, first[query], final, chosen[query], gallery, positives)
                    for cutoff, values in hits.items():
                        values.append(expected(order, cutoff, len(positives), counting))
                for cutoff, values in hits.items():
                    found[f"{name} R@{cutoff}"].append(100 * float(np.mean(values)))
        return {name: float(np.mean(values)) for name, values in found.items()}

    def chosen(
        self, wanted: Settings, name: str, first: np.ndarray, queries: list[int], gallery: list[int]
    ) -> dict[int, list[int]] | None:
        """The candidates of every query of a gallery."""
        if wanted.depth == "everything":
            return {query: gallery for query in queries}
        depth = min(wanted.depth, len(gallery))
        if not wanted.matched or not self.stored:
            return {q: sorted(gallery, key=lambda item: (-first[q, item], item))[:depth] for q in queries}
        lists = {q: [item for item in self.stored[name][q].tolist() if item in gallery] for q in queries}
        least = min(map(len, lists.values()))
        if not least or least < (min(10, depth) if wanted.shrinks else depth):
            return None
        return {query: items[: min(least, wanted.depth)] for query, items in lists.items()}

    def order(
        self,
        wanted: Settings,
        first: np.ndarray,
        final: np.ndarray,
        chosen: list[int],
        gallery: list[int],
        positives: set[int],
    ) -> list[tuple[int, int]]:
        """Positives and negatives of every group of which the order is open, best group first."""
        keyed = [(0, -final[item], item) for item in chosen]
        if wanted.depth != "everything":
            others = [item for item in gallery if item not in chosen]
            if wanted.unranked_rule == "contrastive":
                keyed += [(1, -first[item], item) for item in others]
            elif wanted.unranked_rule == "published":
                keyed += [(0, 100.0 if wanted.matched else 1e9, item) for item in others]
        found: list[tuple[int, int]] = []
        for _, group in groupby(sorted(keyed), key=lambda one: one[:2]):
            right = [item in positives for _, _, item in group]
            hits, misses = sum(right), len(right) - sum(right)
            found += {
                "expected": [(hits, misses)],
                "pessimistic": [(0, 1)] * misses + [(1, 0)] * hits,
                "optimistic": [(1, 0)] * hits + [(0, 1)] * misses,
                "compat": [(int(one), int(not one)) for one in reversed(right)],
            }[wanted.tie_rule]
        return found


def expected(order: list[tuple[int, int]], cutoff: int, positives: int, counting: str) -> float:
    """R@cutoff of one query, over all orders of what is tied."""
    before, hits = 0, 0.0
    for right, wrong in order:
        places = max(0, min(cutoff - before, right + wrong))
        if counting not in ("share of all", "share of possible"):
            if right:
                return 1 - math.comb(wrong, places) / math.comb(right + wrong, places)
        elif places:
            hits += places * right / (right + wrong)
        before += right + wrong
    return hits / max(1, positives if counting == "share of all" else min(positives, cutoff))


@pytest.mark.parametrize("kind", ["contrastive alone", "whole", "stored"])
@pytest.mark.parametrize("seed", range(6))
def test_every_pair_of_choices(seed: int, kind: str) -> None:
    case = Case(seed, kind)
    most = case.source.most_matched
    recompute = Recompute({"test": case.source}, CELLS, 256 if most is None else most or 16, threads=1)
    default, options = chosen(case.source), []
    for axis in AXES:
        _, *others = axis.choices({"test": case.source}, NOTHING)
        options += [(axis.name, one) for one in others if axis.name in VARIED]
    pairs: list[tuple[tuple[str, Choice], ...]] = [()]
    pairs += [(one,) for one in options]
    pairs += [(one, other) for one, other in combinations(options, 2) if one[0] != other[0]]
    compared = 0
    for number, pair in enumerate(pairs):
        wanted = default
        for _, choice in pair:
            wanted = replace(wanted, **choice.fields)
        if not all(choice.applies(wanted) for _, choice in pair):
            continue
        folds = 1 + number % 2
        wanted = replace(wanted, partition="full" if folds == 1 else "folds(2)")
        counting = next((choice.name for axis, choice in pair if axis == "counting"), "")
        by_hand = case.cells(wanted, folds, counting)
        if by_hand is None:
            with pytest.raises(NotPossible):
                recompute.cells(wanted)
            continue
        compared += 1
        assert recompute.cells(wanted) == pytest.approx(by_hand), [(axis, one.name) for axis, one in pair]
    assert compared > 20
