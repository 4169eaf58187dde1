"""Measuring captions: means, what is skipped, blocks, folders, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from counted_language import counted

from diptych.analysis.granularity import Granularity, granularity
from diptych.core.artifact import encode
from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.data.collection import Collection
from diptych.data.language import Language
from diptych.metrics.bootstrap import Bootstrap

LANGUAGE = counted()
CAPTIONS = ["a dog", "three small dogs on grass", "running", "the happy man in a hat with two boys"]


def collection_of(captions, images, name="made up"):
    n = max(images) + 1
    return Collection(
        name=name,
        image_ids=[f"{row}.png" for row in range(n)],
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


@pytest.mark.parametrize("block", [1, 2, 3])
def test_blocks_change_nothing(block):
    whole = granularity(CAPTIONS, language=LANGUAGE)
    parts = granularity(CAPTIONS, language=LANGUAGE, block=block)
    np.testing.assert_array_equal(whole.values, parts.values)
    assert encode(whole, {}) == encode(parts, {})


def test_an_interval_is_of_images_with_their_captions():
    """Two images whose captions are alike: as captions of their own they would vary less."""
    same = ["a dog"] * 5 + ["the happy man in a hat with two boys"] * 5
    together = granularity(collection_of(same, [0] * 5 + [1] * 5), language=LANGUAGE, features=["words"])
    alone = granularity(same, language=LANGUAGE, features=["words"])
    (wide,), (narrow,) = together.features, alone.features
    assert wide.mean == narrow.mean == pytest.approx(5.5)
    assert (wide.low, wide.high) == (2.0, 9.0)
    assert narrow.low is not None
    assert narrow.low > 2
    (none,) = granularity(same, language=LANGUAGE, features=["words"], bootstrap=Bootstrap(0)).features
    assert (none.low, none.high) == (None, None)


def test_an_image_without_captions_has_no_part_in_it():
    captions = collection_of(["a dog", "a red dog"], [0, 2])
    found = granularity(captions, language=LANGUAGE, features=["words"])
    assert found.about["images"] == 2
    assert found.feature("words").mean == 2.5


def test_captions_at_the_extremes():
    found = granularity(CAPTIONS, language=LANGUAGE)
    assert found.most[0].text == CAPTIONS[3]
    assert found.least[0].text == "running"
    assert found.most[0].score > 0 > found.least[0].score
    assert not {one.id for one in found.most} & {one.id for one in found.least}
    alike = granularity(["a dog"] * 4, language=LANGUAGE)
    assert (alike.most, alike.least) == ((), ())  # nobody stands out


def test_a_folder_holds_all_of_it(tmp_path):
    captions = collection_of(CAPTIONS, [0, 0, 1, 1])
    plain = granularity(captions, language=LANGUAGE, split="test")
    written = granularity(captions, language=LANGUAGE, split="test", folder=tmp_path / "g", block=2)
    opened = Granularity.open(tmp_path / "g")
    for found in (written, opened):
        np.testing.assert_array_equal(found.values, plain.values)
        np.testing.assert_array_equal(found.nouns, plain.nouns)
        np.testing.assert_array_equal(found.caption_image, plain.caption_image)
        assert list(found.image_ids) == ["0.png", "1.png"]
        assert list(found.caption_ids) == ["c0", "c1", "c2", "c3"]
        assert encode(found, {}) == encode(plain, {})
        assert found.line() == plain.line()
    granularity(captions, language=LANGUAGE, folder=tmp_path / "g", features=["words"])
    assert [one.name for one in Granularity.open(tmp_path / "g").features] == ["words"]


def test_what_a_language_lacks_is_said_before_anything_is_counted():
    half = replace(LANGUAGE, wordnet=None)
    with pytest.raises(UsageError, match="concept-depth needs a WordNet"):
        granularity(CAPTIONS, language=half)
    assert granularity(CAPTIONS, language=half, features=["articles"]).feature("articles").mean == 0.75
    with pytest.raises(UsageError, match="adjectives needs a part-of-speech tagger"):
        granularity(CAPTIONS, language=Language("none"))
    found = granularity(CAPTIONS, language=Language("none"), features=["words", "characters"])
    assert found.feature("words").mean == 4.25
    assert np.isnan(found.nouns).all()


def test_no_captions():
    with pytest.raises(DataError, match="no caption"):
        granularity([], language=LANGUAGE)
    with pytest.raises(UnknownNameError, match="measured feature"):
        granularity(["a dog"], language=LANGUAGE, features=["words"]).feature("adjectives")


def test_one_caption_alone():
    found = granularity(["running"], language=LANGUAGE)
    assert found.feature("words").sd is None
    assert found.feature("concept-depth").mean is None
    assert found.feature("adjectives").per_noun is None
