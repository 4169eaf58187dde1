"""The explorer finds what was done to the numbers; its cells by lists per query."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from itertools import combinations, groupby
from pathlib import Path

import numpy as np
import pytest
from ranking import scored
from refusals import refused
from two_stage import TwoStage, cut_off, folded_recalls, published_recalls, rounded

from diptych.core.errors import DataError, NumericalError, UnknownNameError, UsageError
from diptych.data import Collection
from diptych.data.images import FolderSource
from diptych.evaluation.printed.digits import read_digits
from diptych.evaluation.printed.target import as_target
from diptych.evaluation.variants.axes import AXES, KEPT, Settings
from diptych.evaluation.variants.exploration import Change, Variant, explain
from diptych.evaluation.variants.explore import explore, explore_rows, explore_scores, luck
from diptych.evaluation.variants.recompute import NotPossible, Recompute, Scored
from diptych.metrics import UNSCORED, Candidates, GroundTruth, Reranked, similarity

N, K = 250, 5
CELLS = tuple(f"{side} R@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10))


def rows(model, n, **options):
    source = similarity("cosine").source(model.images, model.texts)
    return Scored(source, GroundTruth.from_caption_image(model.home, n), **options)


@pytest.fixture(scope="module")
def model():
    """What X-VLM is like: a matching head that is much better than the contrastive rows."""
    return TwoStage(N, K)


@pytest.fixture(scope="module")
def sources(model):
    """The model's rows; with the scores of its head; with the 32 best candidates, as evaluations store them."""
    truth = GroundTruth.from_caption_image(model.home, N)
    best = scored(model.images, model.texts, model.matching, 32)
    whole = Scored(model.contrastive, truth, matching=model.matching)
    return {"rows": rows(model, N), "head": whole, "stored": rows(model, N, reranked=best)}


def plain(model):
    return rounded(published_recalls(model.contrastive, None, model.home, 0))


def of_two(model):
    return rounded(published_recalls(model.contrastive, model.matching, model.home, 2))


def first_of_two(model):
    some = model.caption(0)
    return rounded(published_recalls(model.contrastive[:, some], model.matching[:, some], np.arange(N), 2))


def folds(model):
    return rounded(folded_recalls(model.contrastive, model.home, 5))


def rotated(model):
    """Table 5.2 of the thesis prints R@5, R@10, R@1 of hits over possible hits as R@1, R@5, R@10."""
    found = published_recalls(model.contrastive, None, model.home, 0)
    return rounded({**found, **{f"i2t R@{k}": found[f"i2t R@{of}"] for k, of in ((1, 5), (5, 10), (10, 1))}})


def test_it_finds_what_was_done(model, sources):
    for source, done, explanation, depth, text in (
        ("stored", of_two, "k_test = 2", "32", "k_test = 2 explains it"),
        ("head", first_of_two, "captions = first, k_test = 2", "everything", "explain it together"),
        ("rows", folds, "galleries = folds(5)", "none", "no proof of it"),
        ("rows", rotated, "columns = i2t rotated to R@5, R@10, R@1", "none", "It prints every cell alike"),
        ("rows", plain, "the default protocol", "none", "No change of protocol is needed"),
    ):
        found = explore({"test": sources[source]}, as_target(done(model), 2), threads=1)
        best = found.explanations[0]
        assert best == found.exact_explanations[0]
        assert (best.line(), found.default["k_test"]) == (explanation, depth)
        assert text in "\n".join(explain(found))
        if done is first_of_two:
            assert not any(len(one.changes) == 1 for one in found.explanations)
    target, by_threads = as_target(of_two(model), 2), []
    for threads in (1, 2):
        by_threads.append(explore({"test": sources["head"]}, target, threads=threads, changes=1).to_dict())
    one, other = (json.loads(json.dumps(found)) for found in by_threads)
    assert one == other
    assert one["explanations"][0]["changes"] == "k_test = 2"


def test_another_split_digits_cut_off_and_what_nothing_explains(sources):
    """The thesis's CLIP rows were scored on dev, first captions, digits cut off."""
    dev = TwoStage(507, K, seed=7, contrast=0.9)
    printed = cut_off(published_recalls(dev.contrastive[:, dev.caption(0)], None, np.arange(507), 0))
    both = {"test": sources["rows"], "dev": rows(dev, 507)}
    found = explore(both, as_target(printed, 2), threads=1)
    assert found.exact_explanations[0].line() == "captions = first, digits = cut off, source = dev"
    digits = read_digits(found.target, found.galleries)
    assert 507 in [size.n for size in digits.sizes["all recalls"]["truncate"].sizes]
    assert f"cannot be shares of the {N:,} queries given" in "\n".join(digits.sentences())
    # A better model from images and a worse one from texts.
    printed = dict(zip(CELLS, (99.0, 99.6, 99.9, 3.0, 9.0, 13.0), strict=True))
    found = explore({"test": sources["rows"]}, as_target(printed, 2), threads=1, changes=2)
    assert found.explanations == found.exact_explanations == ()
    assert "t2i R@1" in found.out_of_reach
    assert "Nothing that was tried explains it" in "\n".join(explain(found))


def test_luck_is_the_share_of_targets_between_variants_that_one_meets():
    def variants(*values):
        """The default protocol, which explains the target where its value is negative, and single changes."""
        found = []
        for place, value in enumerate(values):
            cells = ("i2t R@1",) if value < 0 else ()
            changes = (Change("axis", str(place)),) if place else ()
            found.append(Variant(changes, {"i2t R@1": abs(value)}, {"i2t R@1": 0.0}, cells, cells, cells))
        return found

    for some, decimals, tolerance, kind, share in (
        # Between 10 and 40 lies 20, between 10 and 20 14.1, between 20 and 40 28.3: one of three is met.
        (variants(-10, 20, 40), 1, 0.05, "explains", 1 / 3),
        (variants(-10, 20, 40), 1, 0.5, "explains", 1),
        # Variants that do the same count for nothing, nor do more changes than are needed.
        (variants(-10, 10.1, 10.2, 10.2), 1, 0.05, "explains", None),
        (variants(-10, 10.1, 10.2, 10.2, 90), 1, 0.05, "explains", 0),
        (variants(10, 40), 1, 0.05, "is_exact", None),
        # 19.6 is within 5 % of the 20 between 10 and 40; 0.5 % are 19.9 to 20.1; in whole numbers it is 20.
        (variants(-10, 19.6, 40), 1, 0.05, "explains", 1 / 3),
        (variants(-10, 19.6, 40), 1, 0.05, "is_near", 0),
        (variants(-10, 19.6, 40), 0, 0.05, "is_near", 1 / 3),
    ):
        found = luck(some, as_target({"i2t R@1": 10}, decimals), tolerance, kind)
        assert found == (None if share is None else pytest.approx(share))


def test_the_page_lists_the_axes():
    text = (Path(__file__).parents[2] / "docs" / "explanation" / "protocols.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)) == set(AXES.names())


@pytest.fixture(scope="module")
def small():
    return TwoStage(100, K)


def cut(scores, matching, k):
    """The matrix that published evaluations hold."""
    found = np.full(scores.shape, UNSCORED)
    for row, best in enumerate(np.argsort(-scores, axis=1)[:, :k]):
        found[row, best] = matching[row, best]
    return found


def test_every_form_of_ground_truth_and_of_matching_scores(small):
    printed = of_two(small)
    positives = small.home[None, :] == np.arange(100)[:, None]
    truth = GroundTruth.from_caption_image(small.home, 100)
    lists = {row: list(range(K * row, K * row + K)) for row in range(100)}
    both = (small.matching, small.matching.T)
    deep = {"i2t": cut(small.contrastive, both[0], 64), "t2i": cut(small.contrastive.T, both[1], 64)}
    for form, matching, depth in (
        *((one, both[0], "everything") for one in (truth, small.home.tolist(), positives, lists, None)),
        *((K, both, "everything"), (K, deep, "64")),
    ):
        found = explore_scores(small.contrastive, form, printed, matching=matching, threads=1, changes=1)
        assert (found.explanations[0].line(), found.default["k_test"]) == ("k_test = 2", depth)
    side = {name: value for name, value in printed.items() if name.startswith("i2t")}
    found = explore_scores(cut(small.contrastive, small.matching, 2), K, side, threads=1, changes=1)
    assert explain(found)[0].startswith("99.6 % of the scores are -100")
    assert found.to_dict()["warnings"] == list(found.warnings)
    of_first = rounded(published_recalls(small.contrastive[:, small.caption(0)], None, np.arange(100), 0))
    found = explore_rows(small.images, small.texts, small.home, of_first, threads=1, changes=2)
    assert found.explanations[0].line() == "captions = first"


def test_what_is_given_wrongly(small, sources):
    target, scores, matching = {"i2t R@1": 10.0}, small.contrastive, small.matching
    broken, nan = matching.copy(), matching.copy()
    broken[0, 1:], nan[3, 7] = UNSCORED, np.nan
    truth = GroundTruth.from_caption_image(small.home, 100)
    some = scored(small.images, small.texts, matching, 4)
    strange = TwoStage(40)
    for_40 = scored(strange.images, strange.texts, strange.matching, 4)
    for error, message, *given, options in (
        (DataError, "no matrix", scores[0], None, target, {}),
        (UsageError, "100 texts of 500 images", scores.T, None, target, {}),
        (DataError, "500 texts for scores of 500 images and 100", scores.T, small.home, target, {}),
        (UsageError, "500 texts of 100 images, 4 of each", scores, 4, target, {}),
        (UsageError, "of type ndarray is not understood", scores, small.home / 2, target, {}),
        (DataError, r"truth of shape \(2, 2\)", scores, np.eye(2, dtype=bool), target, {}),
        (UsageError, "names no cells", scores, target, small.home, {}),
        (UsageError, "499 matching scores are missing", scores, K, target, {"matching": broken}),
        (DataError, "0 has 1 scored", scores, K, target, {"matching": (broken, matching.T)}),
        (DataError, r"t2i of shape \(100, 500\)", scores, K, target, {"matching": (matching, matching)}),
        (UsageError, "give i2t and t2i", scores, K, target, {"matching": {"i2t": matching}}),
    ):
        refused(error, message, explore_scores, *given, **options)
    for error, message, *given, options in (
        (DataError, "candidates of 40 images and 200 texts", scores, truth, {"reranked": for_40}),
        (DataError, "500 image rows for a ground truth of 100", scores.T, truth, {}),
        (DataError, "2 image ids for 100 images", scores, truth, {"image_ids": ["a", "b"]}),
        (UsageError, "give one of them", scores, truth, {"matching": matching, "reranked": some}),
        (NumericalError, "row 3 and text row 7 is nan", scores, truth, {"matching": nan}),
    ):
        refused(error, message, Scored, *given, **options)
    asked, tests = as_target(target, 1), {"test": sources["rows"]}
    refused(UsageError, "tolerance is 5", explore, tests, asked, tolerance=5)
    refused(UnknownNameError, "axis of protocols 'split'", explore, tests, asked, axes=["split"])
    empty = Scored(np.zeros((3, 0)), GroundTruth.from_caption_image(np.array([], dtype=int), 3))
    refused(DataError, "3 images and 0 texts", explore, {"test": empty}, asked)


NOTHING = as_target(dict.fromkeys(CELLS, 10.0), 1)


def chosen(source, target=NOTHING, **wanted):
    """Settings with choices made by axis and name, as the explorer makes them."""
    fields = {}
    for axis in AXES:
        options = {one.name: one for one in axis.choices({"test": source}, target)}
        fields |= options[wanted.get(axis.name, next(iter(options)))].fields
    return Settings(**fields)


def test_map_of_both_kinds_and_random_captions(small):
    """mAP over the positives that are found, and over all five that could be; captions as embedding draws them."""
    source = rows(small, 100)
    target = as_target({"i2t mAP@5": 40.0}, 0)
    hits = small.home[np.argsort(-small.contrastive, axis=1)[:, :5]] == np.arange(100)[:, None]
    sums = np.sum(np.cumsum(hits, axis=1) / np.arange(1, 6) * hits, axis=1)
    recompute = Recompute({"test": source}, ("i2t mAP@5",), 16, threads=1)
    for name, divisor in (("over positives", 5), ("over hits", np.maximum(hits.sum(axis=1), 1))):
        found = recompute.cells(chosen(source, target, mAP=name))["i2t mAP@5"]
        assert found == pytest.approx(100 * np.mean(sums / divisor))
    home = np.repeat(np.arange(60), np.random.default_rng(0).integers(1, 7, 60))
    ids = [f"{row:03d}.jpg" for row in np.random.default_rng(1).permutation(60)]
    names = [str(row) for row in range(len(home))]
    where = ["test"] * 60, FolderSource("nowhere", ids), np.arange(60)
    collection = Collection("made-up", ids, names, names, home, *where)
    source = Scored(np.zeros((60, len(home))), GroundTruth.from_caption_image(home, 60), image_ids=ids)
    for seed in (0, 1, 2):
        settings = chosen(source, captions=f"random, seed {seed}")
        kept = KEPT[settings.captions](source.truth, source.image_keys)
        assert list(map(str, kept)) == list(collection.random_captions(seed=seed).caption_ids)


VARIED = ("captions", "counting", "k_test", "unranked", "ties")


class Case:
    """Whole-number scores of a few pictures with uneven captions, some of which fit other pictures too."""

    def __init__(self, seed, kind):
        draw = np.random.default_rng(seed)
        self.n = int(draw.choice([4, 6, 8]))
        self.home = draw.permutation(np.repeat(np.arange(self.n), draw.integers(1, 8, self.n)))
        shape = (self.n, len(self.home))
        self.scores = draw.integers(0, draw.integers(2, 30), shape).astype(float)
        self.matching = draw.integers(-4, 4, shape).astype(float)
        self.adds = bool(seed % 2)
        own = self.home[None, :] == np.arange(self.n)[:, None]
        i2t, t2i = (own | (draw.random(shape) < 0.08) for _ in range(2))
        self.relevant = {"i2t": i2t, "t2i": t2i.T}
        pairs = np.nonzero(i2t), np.nonzero(t2i)
        self.truth = GroundTruth.from_directions(*pairs, *shape, text_image=self.home)
        self.stored, reranked = {}, None
        if kind == "stored":
            k, sides = int(draw.integers(2, self.n + 1)), []
            for name, *both in self.directions():
                items = self.stored[name] = np.argsort(-both[0], axis=1, kind="stable")[:, :k]
                sides.append(
                    Candidates(items, *(np.take_along_axis(one, items, 1).astype("f4") for one in both))
                )
            reranked = Reranked(*sides, adds_contrastive=self.adds)
        whole = {"matching": self.matching if kind == "whole" else None, "reranked": reranked}
        self.source = Scored(self.scores, self.truth, **whole, adds_contrastive=self.adds)

    def directions(self):
        yield "i2t", self.scores, self.matching
        yield "t2i", self.scores.T, self.matching.T

    def cells(self, wanted, folds, counting):
        """What a variant is, ranked with a list per query; None where there are too few candidates."""
        texts = range(len(self.home))
        if wanted.captions:
            texts = KEPT[wanted.captions](self.truth, self.source.image_keys).tolist()
        found, size = {name: [] for name in CELLS}, self.n // folds
        for fold in range(folds):
            images = list(range(fold * size, (fold + 1) * size))
            here = [text for text in texts if folds == 1 or self.home[text] // size == fold]
            for name, first, second in self.directions():
                queries, gallery = (images, here) if name == "i2t" else (here, images)
                candidates = self.candidates(wanted, name, first, queries, gallery)
                if candidates is None:
                    return None
                hits = {1: [], 5: [], 10: []}
                for query in queries:
                    positives = {item for item in gallery if self.relevant[name][query, item]}
                    if counting == "first caption" and name == "i2t":
                        positives &= set([text for text in here if self.home[text] == query][:1])
                    final = first[query]
                    if wanted.matched:
                        final = second[query] + (first[query] if self.adds else 0.0)
                    order = self.order(wanted, first[query], final, candidates[query], gallery, positives)
                    for cutoff, values in hits.items():
                        values.append(expected(order, cutoff, len(positives), counting))
                for cutoff, values in hits.items():
                    found[f"{name} R@{cutoff}"].append(100 * float(np.mean(values)))
        return {name: float(np.mean(values)) for name, values in found.items()}

    def candidates(self, wanted, name, first, queries, gallery):
        """The candidates of every query of a gallery."""
        if wanted.depth == "everything":
            return dict.fromkeys(queries, gallery)
        depth = min(wanted.depth, len(gallery))
        if not wanted.matched or not self.stored:
            return {q: sorted(gallery, key=lambda item: (-first[q, item], item))[:depth] for q in queries}
        lists = {q: [item for item in self.stored[name][q].tolist() if item in gallery] for q in queries}
        least = min(map(len, lists.values()))
        if not least or least < (min(10, depth) if wanted.shrinks else depth):
            return None
        return {query: items[: min(least, wanted.depth)] for query, items in lists.items()}

    def order(self, wanted, first, final, candidates, gallery, positives):
        """Positives and negatives of every group of which the order is open, best group first."""
        keyed = [(0, -final[item], item) for item in candidates]
        others = [item for item in gallery if item not in candidates]
        if wanted.depth != "everything" and wanted.unranked_rule == "contrastive":
            keyed += [(1, -first[item], item) for item in others]
        elif wanted.depth != "everything" and wanted.unranked_rule == "published":
            keyed += [(0, 100.0 if wanted.matched else 1e9, item) for item in others]
        found = []
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


def expected(order, cutoff, positives, counting):
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


@pytest.mark.parametrize("kind", ["contrastive only", "whole", "stored"])
def test_every_pair_of_choices(kind):
    for case in (Case(0, kind), Case(1, kind)):
        most, default, options, compared = case.source.most_matched, chosen(case.source), [], 0
        depth = 256 if most is None else most or 16
        recompute = Recompute({"test": case.source}, CELLS, depth, threads=1)
        for axis in AXES:
            _, *others = axis.choices({"test": case.source}, NOTHING)
            options += [(axis.name, one) for one in others if axis.name in VARIED]
        pairs = [(), *((one,) for one in options)]
        pairs += [(one, other) for one, other in combinations(options, 2) if one[0] != other[0]]
        for number, pair in enumerate(pairs):
            wanted, folds = default, 1 + number % 2
            for _, choice in pair:
                wanted = replace(wanted, **choice.fields)
            if not all(choice.applies(wanted) for _, choice in pair):
                continue
            wanted = replace(wanted, partition="full" if folds == 1 else "folds(2)")
            counting = next((choice.name for axis, choice in pair if axis == "counting"), "")
            by_hand = case.cells(wanted, folds, counting)
            if by_hand is None:
                refused(NotPossible, ".", recompute.cells, wanted)
                continue
            compared += 1
            tried = [(axis, one.name) for axis, one in pair]
            assert recompute.cells(wanted) == pytest.approx(by_hand), tried
        assert compared > 20
