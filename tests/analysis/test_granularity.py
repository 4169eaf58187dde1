"""Every feature on sentences counted by hand, in both definitions, and on captions nobody expects."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest
from counted_language import counted, tagged
from everyday_language import DictWordNet
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.analysis.granularity.compare import compare_granularity
from diptych.analysis.granularity.features import FEATURES, Lexicon
from diptych.analysis.granularity.measure import granularity
from diptych.analysis.granularity.result import Granularity
from diptych.analysis.perturbations.caption import Caption
from diptych.core.artifact import encode
from diptych.core.errors import MismatchError, UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.metrics.bootstrap import Bootstrap

LANGUAGE = counted()
LEXICON = Lexicon(LANGUAGE)
LONG = "Three small dogs run in front of a tennis player and several boys, wearing red hats."


def value(name, text, compat="none"):
    caption = Caption(text, tags=tagged(text), language=LANGUAGE)
    return FEATURES.get(name).counted_by(compat)(caption, LEXICON)


def test_counted_by_hand():
    for name, text, right, published in [
        ("adjectives", LONG, 3, 3),  # small, several, red
        ("adjectives", "the largest dog is larger", 2, 2),
        # "front of"; before "wearing" there is a comma
        ("complement-phrases", LONG, 1, 1),
        ("complement-phrases", "a man with a hat on the street sitting", 3, 3),
        ("complement-phrases", "boys wearing hats", 1, 1),
        ("complement-phrases", "on the street", 0, 0),
        ("articles", LONG, 1, 1),
        ("articles", "The dog and an orchid in this house", 2, 3),
        ("articles", "A dog, a cat", 2, 2),
        ("quantifiers", LONG, 2, 1),  # three, several
        ("quantifiers", "both dogs and a couple of cats and 2 boys", 3, 1),
        ("quantifiers", "a couple in love", 0, 0),
        # dogs 4, front 0, tennis player 4, boys 4, hats 0; a tennis alone is none
        ("concept-depth", LONG, 12 / 5, None),
        ("concept-depth", "poodle person", 7 / 2, 7 / 2),
        # dog is a canine, a frump and a verb: the greatest of 4, 0 and 0; red is an adjective at its root
        ("concept-depth", "red dogs", 4, 2),
        ("concept-depth", "dogs.", 4, None),
        ("characters", " a  dog ", 5, 8),
        ("characters", "a dog.", 6, 6),
        ("words", LONG, 16, 16),
        ("words", "a dog . ", 2, 4),
        ("words", "don't sit-in", 2, 2),
        ("concept-diversity", LONG, 7, None),
        ("concept-diversity", "dogs and a dog and red dogs", 2, 7 / 7),
        ("concept-diversity", "dogs dog", 1, 5 / 2),  # dog, domestic dog, Canis familiaris, frump, chase
        ("concept-diversity", "dogs dog ", 1, 5 / 3),
        ("concept-diversity", "a dog is red", 2, None),  # an auxiliary names no concept
        ("concept-diversity", "a hot dog", 1, None),
        ("concept-diversity", "a hot, dog", 2, None),
    ]:
        assert value(name, text) == pytest.approx(right)
        if published is not None:
            assert value(name, text, "published") == pytest.approx(published)


def test_a_noun_of_three_words_is_one_concept_and_ends_with_a_noun():
    members = {"pick up truck.n": ["pick up truck"], "truck.n": ["truck"], "do.n": ["do"], "do.v": ["do"]}
    language = Language("trucks", None, DictWordNet(members, {}))
    lexicon, content = Lexicon(language), frozenset({"noun", "verb"})

    def concepts(text, tags):
        return lexicon.concepts(Caption(text, tags=tags.split(), language=language), content)

    assert concepts("a pick up truck", "DT NN IN NN") == ["pick up truck.n"]
    assert concepts("they pick up truck", "PRP VBP RP VB") == []
    assert concepts("a do", "DT NN") == ["do.n"]  # it carries tense only as a verb
    assert concepts("they do", "PRP VBP") == []


@given(text=st.text(max_size=60))
def test_counts_are_no_more_than_there_is(text):
    words = value("words", text)
    for name in ("adjectives", "complement-phrases", "articles", "quantifiers", "concept-diversity"):
        assert 0 <= value(name, text) <= words
    assert words <= value("characters", text) <= value("characters", text, "published")


CAPTIONS = ["a dog", "three small dogs on grass", "running", "the happy man in a hat with two boys"]


def collection_of(captions, images, name="made up", ids=None):
    n = max(images) + 1
    return Collection(
        name=name,
        image_ids=ids or [f"{row}.png" for row in range(n)],
        captions=captions,
        caption_ids=[f"c{row}" for row in range(len(captions))],
        caption_image=np.array(images),
        splits=["test"] * n,
        source=None,
        source_rows=np.arange(n),
    )


def test_means_deviations_and_what_is_per_noun():
    found = granularity(CAPTIONS, language=LANGUAGE, name="four")
    assert found.n_captions == 4
    words = found.feature("words")
    assert words.mean == pytest.approx((2 + 5 + 1 + 9) / 4)
    assert words.sd == pytest.approx(np.std([2, 5, 1, 9], ddof=1))
    assert words.per_noun is None
    assert found.column("words").tolist() == [2, 5, 1, 9]
    adjectives = found.feature("adjectives")
    assert adjectives.mean == pytest.approx(2 / 4)
    # dog; dogs, grass; none; man, hat, boys
    assert found.nouns.tolist() == [1, 2, 0, 3]
    assert adjectives.per_noun == pytest.approx(2 / 6)
    depth = found.feature("concept-depth")
    assert (depth.n, dict(depth.skipped)) == (3, {"no noun that the WordNet has": 1})
    assert depth.mean == pytest.approx((4 + 2 + (4 + 0 + 4) / 3) / 3)
    assert np.isnan(found.column("concept-depth")[2])
    assert "four: 4 images, 4 captions" in found.line()
    assert "language counted: dict tagger, dict wordnet" in found.line()


def test_a_folder_holds_all_of_it_and_blocks_change_nothing(tmp_path):
    captions, folder = collection_of(CAPTIONS, [0, 0, 1, 1]), tmp_path / "g"
    plain = granularity(captions, language=LANGUAGE, split="test")
    written = [
        granularity(captions, language=LANGUAGE, split="test", folder=folder, block=n) for n in (1, 2, 3)
    ]
    for found in (*written, Granularity.open(folder)):
        for name in ("values", "nouns", "caption_image"):
            np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
        assert (list(found.image_ids), list(found.caption_ids)) == (
            ["0.png", "1.png"],
            ["c0", "c1", "c2", "c3"],
        )
        assert encode(found, {}) == encode(plain, {})
        assert found.line() == plain.line()
    granularity(captions, language=LANGUAGE, folder=folder, features=["words"])
    assert [one.name for one in Granularity.open(folder).features] == ["words"]


def test_what_a_language_lacks_is_said_before_anything_is_counted():
    half, none = replace(LANGUAGE, wordnet=None), Language("none")
    refused(UsageError, "concept-depth needs a WordNet", granularity, CAPTIONS, language=half)
    refused(UsageError, "adjectives needs a part-of-speech tagger", granularity, CAPTIONS, language=none)
    assert granularity(CAPTIONS, language=half, features=["articles"]).feature("articles").mean == 0.75
    found = granularity(CAPTIONS, language=none, features=["words", "characters"])
    assert found.feature("words").mean == 4.25
    assert np.isnan(found.nouns).all()


# Two collections.

COARSE = ["a dog", "a dog on grass", "a man", "a man in a hat", "boys", "three boys on the street"]
FINE = [
    "a small dog", "a red dog on the grass", "a happy man", "a man in a large hat", "two boys",
    "three boys on the old street",
]  # fmt: skip
IMAGES = [0, 0, 1, 1, 2, 2]


def measured(captions, images, name, ids=None, **options):
    return granularity(collection_of(captions, images, name, ids), language=LANGUAGE, **options)


def of_lengths(first, second, shared=False):
    """Captions of so many words, each of an image of its own."""
    found = []
    for name, lengths in (("first", first), ("second", second)):
        ids = [f"{row}.png" if shared else f"{name}-{row}" for row in range(len(lengths))]
        captions, images = ["dog " * n for n in lengths], list(range(len(lengths)))
        found.append(measured(captions, images, name, ids, features=["words"]))
    return found


def test_the_same_images_are_paired_by_id():
    coarse, fine = measured(COARSE, IMAGES, "coarse"), measured(FINE, IMAGES, "fine")
    found = compare_granularity(coarse, fine)
    assert found.paired == 3
    words = next(one for one in found.differences if one.name == "words")
    first, second = (np.reshape([len(text.split()) for text in texts], (3, 2)) for texts in (COARSE, FINE))
    apart = second.mean(axis=1) - first.mean(axis=1)
    assert words.difference.value == pytest.approx(second.mean() - first.mean())
    assert words.relative.value == pytest.approx(second.mean() / first.mean() - 1)
    # Two images gain a word a caption, one gains one and a half.
    assert words.paired_delta.value == pytest.approx(np.mean(np.sign(apart)))
    assert words.paired_d.value == pytest.approx(np.mean(apart) / np.std(apart, ddof=1))
    assert (words.p, words.verdict) == (
        pytest.approx(2 / 8),
        "",
    )  # of all 8 swaps the one observed and its mirror
    assert "paired: 3 images" in found.notes[0]
    turned = measured(FINE[2:] + FINE[:2], IMAGES, "fine", ["1.png", "2.png", "0.png"])
    assert compare_granularity(coarse, turned) == found
    lengths = ([2, 4, 3, 6, 5], [3, 4, 5, 6, 9])
    (found,) = compare_granularity(*of_lengths(*lengths, shared=True)).differences
    apart = np.subtract(lengths[1], lengths[0])
    swaps = [abs(np.dot(signs, apart)) for signs in itertools.product((-1, 1), repeat=5)]
    assert found.p == pytest.approx(np.mean(np.array(swaps) >= abs(apart.sum())))


def test_which_images_are_paired_and_what_cannot_be_compared():
    coarse, fine = measured(COARSE, IMAGES, "coarse"), measured(FINE[:4], IMAGES[:4], "fine")
    found = compare_granularity(coarse, fine)  # every image of the finer is in the coarser
    assert (found.paired, found.notes[1]) == (2, "left out: 1 images that only one collection has")
    words = next(one for one in found.differences if one.name == "words")
    assert words.first == pytest.approx(np.mean([len(text.split()) for text in COARSE[:4]]))
    strange = measured(FINE, IMAGES, "strange", ["0.png", "x.png", "y.png"])
    found = compare_granularity(coarse, strange)
    assert (found.paired, found.notes[0]) == (0, "not paired: 1 of 3 and 3 images in common")
    assert compare_granularity(coarse, strange, pairing="images").paired == 1
    apart = compare_granularity(coarse, fine, pairing="none", bootstrap=Bootstrap(0))
    assert (apart.paired, apart.notes[0], apart.notes[2]) == (0, "not paired: as requested", "no intervals")
    assert apart.differences[0].difference.low is None
    whole = measured(FINE, IMAGES, "fine")
    for error, message, second, options in (
        (
            MismatchError,
            "no image in common",
            measured(FINE, IMAGES, "other", list("abc")),
            {"pairing": "images"},
        ),
        (MismatchError, "other features", measured(FINE, IMAGES, "fine", features=["words"]), {}),
        (MismatchError, "other definitions", measured(FINE, IMAGES, "fine", compat="published"), {}),
        (MismatchError, "other languages", replace(whole, about={**whole.about, "language": "another"}), {}),
        (UnknownNameError, "pairing", coarse, {"pairing": "captions"}),
    ):
        refused(error, message, compare_granularity, coarse, second, **options)


def test_intervals_are_of_images_with_their_captions():
    """Two images whose captions are alike: as captions of their own they would vary less."""
    same = ["a dog"] * 5 + ["the happy man in a hat with two boys"] * 5
    together, apart = collection_of(same, [0] * 5 + [1] * 5), {"language": LANGUAGE, "features": ["words"]}
    (wide,), (narrow,) = (granularity(one, **apart).features for one in (together, same))
    assert wide.mean == narrow.mean == pytest.approx(5.5)
    assert (wide.low, wide.high) == (2.0, 9.0)
    assert narrow.low > 2
    (none,) = granularity(same, bootstrap=Bootstrap(0), **apart).features
    assert (none.low, none.high) == (None, None)
    # The interval of δ, made of placements, against the δ of every resample.
    random = np.random.default_rng(0)
    a, b = random.integers(1, 8, 60), random.integers(2, 10, 60)
    (found,) = compare_granularity(
        *of_lengths(a.tolist(), b.tolist()), bootstrap=Bootstrap(400, seed=1)
    ).differences
    slow = []
    for _ in range(400):
        x, y = random.choice(a, len(a)), random.choice(b, len(b))
        slow.append(np.sign(y[None, :] - x[:, None]).mean())
    assert (found.delta.low, found.delta.high) == pytest.approx(
        tuple(np.quantile(slow, [0.025, 0.975])), abs=0.05
    )
    assert found.difference.low < b.mean() - a.mean() < (found.difference.high or 0)
    assert found.verdict == "finer"
    # How many captions an image has is no difference in what they say, nor is where values begin to count.
    sides = []
    for name, numbers, mean in zip(
        ("first", "second"), random.integers(1, 6, (2, 40)), (10, 11), strict=True
    ):
        images = np.repeat(np.arange(40), numbers).tolist()
        one = measured(["dog"] * len(images), images, name, features=["words"])
        sides.append(replace(one, values=random.normal(mean, 1, (len(images), 1))))
    far = [replace(one, values=np.asarray(one.values) + 1000) for one in sides]
    (found,), (moved,) = (compare_granularity(*two).differences for two in (sides, far))
    assert found.difference.low > 0
    assert found.p == moved.p == pytest.approx(1 / 10_001)


@settings(max_examples=40, deadline=None)
@given(
    first=st.lists(st.integers(1, 6), min_size=2, max_size=9),
    second=st.lists(st.integers(1, 6), min_size=2, max_size=9),
)
def test_unpaired_as_others_compute_it(first, second):
    from scipy import stats

    (found,) = compare_granularity(*of_lengths(first, second), bootstrap=Bootstrap(20)).differences
    a, b = np.array(first, dtype=float), np.array(second, dtype=float)
    assert found.difference.value == pytest.approx(b.mean() - a.mean())
    pairs = [np.sign(y - x) for x in a for y in b]
    assert found.delta.value == pytest.approx(np.mean(pairs))
    pooled = ((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2)
    if pooled > 0:
        assert found.d.value == pytest.approx((b.mean() - a.mean()) / np.sqrt(pooled))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = stats.ttest_ind(a, b, equal_var=False).pvalue
        assert found.p == pytest.approx(expected)
    else:
        assert found.d.value == (0 if a.mean() == b.mean() else None)
        assert found.p == (1.0 if a.mean() == b.mean() else None)
    assert (found.paired_d, found.paired_delta) == (None, None)
