from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.core.files import write_json
from diptych.data.extended_positives import ExtendedPositives, Listed, match, read_extended_positives
from diptych.data.judgements import (
    MatchedJudgements,
    match_judgements,
    read_flickr8k_expert,
    read_judgement_table,
    read_judgements,
)

IMAGES = ["a.webp", "b.webp", "c.webp"]
CAPTIONS = ["10", "11", "20", "21", "30"]
HOME = np.array([0, 0, 1, 1, 2])

EXPERT = """a.jpg\tb.jpg#0\t1\t1\t2
a.jpg\ta.jpg#1\t4\t4\t4

b.jpg\ta.jpg#1\t2\t3\t1
c.jpg\tgone.jpg#0\t1\t1\t1
c.jpg\tb.jpg#7\t1\t1\t1
a.jpg\tb.jpg#0\t2\t2\t2
"""
CROWD = "a.jpg\tb.jpg#1\t0.333333333333333\t1\t2\nc.jpg\tc.jpg#0\t1\t3\t0\n"


def read(source: str) -> MatchedJudgements:
    return match_judgements(read_judgements(source), IMAGES, CAPTIONS, HOME)


def ratings_of(found: MatchedJudgements) -> dict[tuple[int, int], float]:
    pairs = zip(found.images.tolist(), found.captions.tolist(), strict=True)
    return dict(zip(pairs, found.ratings.tolist(), strict=True))


def test_judgements_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "ExpertAnnotations.txt"
    file.write_text(EXPERT)
    found = read(f"flickr8k-expert:{file}")
    # Picture a with b's first caption was judged twice: 4/3 and 2.
    assert ratings_of(found) == pytest.approx({(0, 2): (4 / 3 + 2) / 2, (0, 1): 4, (1, 1): 2})
    assert (found.lowest, found.highest) == (1, 4)
    assert found.missing == {"images": 0, "captions": 2, "pairs": 2}
    assert found.repeated == 1
    assert found.line().endswith("not in the collection: 2 captions, 2 pairs)")
    assert ratings_of(read(f"flickr8k-expert:{tmp_path}")) == ratings_of(found)  # the folder
    file = tmp_path / "CrowdFlowerAnnotations.txt.gz"
    file.write_bytes(gzip.compress(CROWD.encode()))
    for source in (file, tmp_path):
        found = read(f"flickr8k-crowd:{source}")
        assert ratings_of(found) == pytest.approx({(0, 3): 1 / 3, (2, 4): 1})
        assert (found.lowest, found.highest) == (0, 1)
    file = tmp_path / "mine.csv"
    file.write_text('\ufeffRating,note,image,caption\n3.5,"good, but",b.webp,21\n-1,,a.webp,10\n')
    found = read(f"csv:{file}")
    assert ratings_of(found) == {(1, 3): 3.5, (0, 0): -1.0}
    assert (found.lowest, found.highest) == (-1, 3.5)
    assert found.what == "judgements of mine.csv"
    file.write_text("image,caption,rating\na.webp,10,2\nb.webp,20,5\n")
    found = read(f"csv:{file}")
    assert (found.lowest, found.highest) == (0, 5)  # a scale without zeros begins at 0 all the same


def test_numbers_of_ids_come_before_places(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(
        "a.jpg\tb.jpg#1\t1\t2\t3\na.jpg\tb.jpg#0\t1\t1\t1\na.jpg\ta.jpg#1\t2\t2\t2\n"
    )
    judged = read_flickr8k_expert(tmp_path / "x.txt")
    # Only b's captions 3 and 1 are there, and c's id says that it is of another picture than it belongs to.
    ids = ["10", "11", "folder/b.webp#3", "folder/b.webp#1", "a.webp#1"]
    found = match_judgements(judged, IMAGES, ids, HOME)
    assert ratings_of(found) == {(0, 3): 2.0, (0, 1): 2.0}
    assert (found.by_place, found.missing["captions"]) == (1, 1)
    (tmp_path / "y.txt").write_text("a.jpg\tc.jpg#0\t1\t1\t1\n")
    other = match_judgements(read_flickr8k_expert(tmp_path / "y.txt"), IMAGES, ids, HOME)
    assert ratings_of(other) == {(0, 4): 1.0}


def test_what_are_no_judgements_is_named(tmp_path: Path) -> None:
    for name, text, words in (
        ("flickr8k-expert", f"{EXPERT[:20]}a.jpg\tb.jpg#0\t1\t5\t2\n", "line 2: not .* ratings"),
        *(
            ("flickr8k-expert", f"{line}\n", "line 1: not image, caption and three ratings")
            for line in ("a.jpg\tb.jpg#0\t1\tx\t2", "a.jpg b.jpg#0 1 1 2", CROWD, "\tb.jpg#0\t1\t1\t2")
        ),
        ("flickr8k-expert", "\n", "is empty"),
        *(
            ("flickr8k-crowd", f"a.jpg\tb.jpg#0\t{line}\n", "line 1: not image, caption, share of yes")
            for line in ("1.5\t3\t0", "0\t0\t0", "nan\t1\t0", "1\t1", "1\t2\t-1")
        ),
        ("flickr8k-crowd", EXPERT, "line 2: not image"),
        ("csv", "image,caption\na,b\n", "no column of the rating"),
        ("csv", "", "is empty"),
        ("csv", "image,caption,rating\na.webp,10,good\n", "line 2: no image, caption and rating: a.webp"),
        ("csv", "image,caption,rating\na.webp,10,1\na.webp,10\n", "line 3: no image, caption and rating"),
        ("csv", "image,caption,rating\na.webp,10,inf\n", "line 2"),
        ("csv", "image,caption,rating\n", "has no judgement"),
        ("csv", "image,caption,rating\nz,99,1\n", "none of its 1 pairs .* in the collection of 3 images"),
    ):
        file = tmp_path / "file.txt"
        file.write_text(text)
        refused(UsageError if "no column" in words else DataError, words, read, f"{name}:{file}")
    refused(UsageError, "not FORMAT:PATH", read, "ExpertAnnotations.txt")
    refused(UnknownNameError, "flickr8k-crowd, flickr8k-expert", read, "flickr:x")
    refused(DataError, r"gone\.txt does not exist", read, f"csv:{tmp_path / 'gone.txt'}")
    refused(DataError, r"no ExpertAnnotations\.txt in", read, f"flickr8k-expert:{tmp_path}")
    refused(DataError, r"no sits_\*\.csv", read, f"cxc:{tmp_path}")
    (tmp_path / "x.csv").write_bytes(b"image,caption,rating\n\xff\xfe,1,2\n")
    refused(DataError, "line 2 is not utf-8", read_judgement_table, tmp_path / "x.csv")


COCO_IMAGES = [f"COCO_val2014_{number:012d}.jpg" for number in (11, 22, 33)]
COCO_CAPTIONS = ["101", "102", "201", "202", "301"]
COCO_HOME = np.array([0, 0, 1, 1, 2])

CXC = """caption,image,agg_score,sampling_method
COCO_val2014:sentid:101,COCO_val2014_000000000011.jpg,5,c2i_original
COCO_val2014:sentid:102,COCO_val2014_000000000011.jpg,2.9,c2i_original
COCO_val2014:sentid:201,COCO_val2014_000000000022.jpg,3.0,c2i_original
COCO_val2014:sentid:202,COCO_val2014_000000000022.jpg,4.5,c2i_original
COCO_val2014:sentid:201,COCO_val2014_000000000011.jpg,3.4,c2i_intrasim
COCO_val2014:sentid:202,COCO_val2014_000000000011.jpg,1.2,c2i_intrasim
COCO_val2014:sentid:101,COCO_val2014_000000000033.jpg,4.1,c2i_intrasim
"""


def read_positives(source: str, **options: Any) -> ExtendedPositives:
    return read_extended_positives(source, COCO_IMAGES, COCO_CAPTIONS, COCO_HOME, **options)


def pairs(given: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return set(zip(given[0].tolist(), given[1].tolist(), strict=True))


@pytest.fixture
def cxc(tmp_path: Path) -> Path:
    (tmp_path / "sits_test.csv").write_text(CXC)
    (tmp_path / "sits_test_raw.csv").write_text("caption,image,score,sampling_method\n")
    (tmp_path / "sts_test.csv").write_text("caption1,caption2,agg_score,sampling_method\na,b,3.5,c2c_isim\n")
    return tmp_path


def test_cxc_by_hand(cxc: Path) -> None:
    found = read_positives(f"cxc:{cxc}")
    expected = {(0, 0), (1, 2), (1, 3), (0, 2), (2, 0)}
    # Caption 301 was never rated: it stays relevant to its image, and does not ask.
    assert pairs(found.i2t) == pairs(found.t2i) == expected | {(2, 4)}
    assert found.evaluated["i2t"].tolist() == [0, 1, 2]
    assert found.evaluated["t2i"].tolist() == [0, 2, 3]  # caption 102 has no positive left
    assert found.silent == {"i2t": 0, "t2i": 1}
    assert (found.before["i2t"], found.added["i2t"], found.removed["i2t"]) == (5, 2, 1)
    assert (found.before["t2i"], found.added["t2i"], found.removed["t2i"]) == (3, 2, 0)
    assert found.missing == {"images": 0, "captions": 0, "pairs": 0}
    line = "cxc, rating ≥ 3 (i2t 5 + 2 − 1, t2i 3 + 2 − 0 pairs; 1 t2i queries lost all)"
    assert found.line() == line


def eccv(folder: Path, name: str, i2t: object, t2i: object) -> Path:
    write_json(folder / f"{name}_image_to_caption.json", i2t)
    write_json(folder / f"{name}_caption_to_image.json", t2i)
    return folder


def test_eccv_captions_two_directions_and_few_queries(tmp_path: Path) -> None:
    eccv(tmp_path, "eccv", {"11": [101, 201, 999]}, {"101": [11, 33], "301": [33]})
    eccv(tmp_path, "original", {"11": [101, 102]}, {"101": [11]})
    found = read_positives(f"eccv:{tmp_path}")
    asking = {image: {text for i, text in pairs(found.i2t) if i == image} for image in range(3)}
    assert asking[0] == {0, 2}  # 102 is no positive here: the list is the whole truth for its query
    assert {image for image, text in pairs(found.t2i) if text == 0} == {0, 2}
    # not evaluated: its own, to no effect
    assert {image for image, text in pairs(found.t2i) if text == 2} == {1}
    assert found.evaluated["i2t"].tolist() == [0]
    assert found.evaluated["t2i"].tolist() == [0, 4]
    assert (found.added, found.removed) == ({"i2t": 1, "t2i": 1}, {"i2t": 1, "t2i": 0})
    assert found.missing == {"images": 0, "captions": 1, "pairs": 1}
    assert found.line() == (
        "eccv of ECCV Caption (i2t 2 + 1 − 1, t2i 2 + 1 − 0 pairs; not in the collection: 1 captions, 1 pairs)"
    )
    other = read_positives(f"eccv:{tmp_path}", variant="original")
    assert pairs(other.t2i) == pairs(read_positives(f"eccv:{tmp_path}/original_caption_to_image.json").t2i)
    assert other.evaluated["t2i"].tolist() == [0]


def test_pairs_of_ones_own(tmp_path: Path) -> None:
    write_json(tmp_path / "mine.json", {"i2t": {COCO_IMAGES[0]: ["101", "202"], "22": ["201"]}})
    found = read_positives(f"pairs:{tmp_path}/mine.json")
    assert found.evaluated["i2t"].tolist() == [0, 1]
    assert found.evaluated["t2i"].tolist() == [0, 2, 3]
    assert {pair for pair in pairs(found.t2i) if pair[1] in (0, 2, 3)} == {(0, 0), (1, 2), (0, 3)}
    kept = read_positives(f"pairs:{tmp_path}/mine.json", originals=True)
    assert pairs(kept.t2i) == {(0, 0), (0, 1), (1, 2), (1, 3), (2, 4), (0, 3)}
    write_json(tmp_path / "both.json", {"i2t": {"11": ["101"]}, "t2i": {"301": ["22", "33"]}})
    both = read_positives(f"pairs:{tmp_path}/both.json")
    assert both.evaluated["i2t"].tolist() == [0]
    assert both.grades is None
    assert {image for image, text in pairs(both.t2i) if text == 4} == {1, 2}


HEAD = "caption,image,agg_score,sampling_method\n"
WRONG_FILES: list[tuple[str, object, str]] = [
    ("cxc", "caption,image,score\n", "no CxC file of sits ratings: its columns are caption,image,score"),
    *(("cxc", f"{HEAD}{line}\n", "line 2: no pair with a rating") for line in ("a,b,six,c", "a,b,7,c", "a")),
    ("pairs", {"i2c": {}}, "has .*i2c.* where 'i2t', 't2i' or both"),
    ("pairs", {}, "has {} where"),
    ("pairs", [1], r"has \[1\] where"),
    ("pairs", {"i2t": [1]}, "i2t is no JSON object"),
    *(("pairs", {"i2t": {"11": ids}}, "belongs to '11' is no list of ids") for ids in ("101", [1.5])),
    ("pairs", {"i2t": {"44": ["101"]}}, "none of its 1 pairs"),
]


def test_what_are_no_positives_is_named(tmp_path: Path) -> None:
    for form, content, message in WRONG_FILES:
        file = tmp_path / "sits_test.csv"
        file.write_text(content if isinstance(content, str) else json.dumps(content))
        refused(DataError, message, read_positives, f"{form}:{file}")
    for source, options, kind, message in (
        ("cxc", {}, UsageError, "positives 'cxc' are not FORMAT:PATH"),
        ("cxc:", {}, UsageError, "are not FORMAT:PATH.*formats: cxc, eccv, pairs"),
        ("cxcc:x", {}, UnknownNameError, "did you mean 'cxc'"),
        ("cxc:none", {}, DataError, "no sits_\\*.csv in none"),
        ("cxc:none/sits_test.csv", {"threshold": 0}, UsageError, "threshold is 0, it must lie above 0"),
        ("cxc:none", {"level": 3}, UsageError, "no option 'level'.*threshold, originals"),
        ("cxc:none", {"originals": "yes"}, UsageError, "originals is 'yes'"),
        ("eccv:none", {}, DataError, "eccv_image_to_caption.json does not exist"),
        ("pairs:none.json", {}, DataError, "none.json does not exist"),
    ):
        refused(kind, message, read_positives, source, **options)


def test_ids_are_recognised_in_the_ways_they_are_written() -> None:
    def rows_of(image: str, caption: str, ids: list[str]) -> set[tuple[int, int]]:
        one = frozenset([(image, caption)])
        listed = Listed("test", one, one, frozenset([image]), frozenset([caption]))
        return {pair for pair in pairs(match(listed, ids, ["7", "8"], np.array([0, 1])).i2t) if pair[0] == 1}

    for own in ("val2014/COCO_val2014_000000000042.jpg", "000000000042.jpg", "42"):
        names = ("42", "COCO_val2014_000000000042.jpg", "COCO_train2014_000000000042", "000000000042.png")
        for image in names:
            assert rows_of(image, "COCO_val2014:sentid:8", ["x.jpg", own]) == {(1, 1)}, (image, own)
    both = ["a/2.jpg", "b/2.jpg"]
    assert rows_of("b/2.jpg", "8", both) == {(1, 1)}  # the same id, though names alone collide
    refused(DataError, "none of its 1 pairs", rows_of, "2.jpg", "8", both)


def test_ratings_are_grades_too_and_of_a_pair_under_two_names_the_mean(cxc: Path) -> None:
    found = [part.tolist() for part in read_positives(f"cxc:{cxc}").grades]
    assert sorted(zip(*found, strict=True)) == [
        *((0, 0, 5.0), (0, 1, 2.9), (0, 2, 3.4), (0, 3, 1.2), (1, 2, 3.0), (1, 3, 4.5), (2, 0, 4.1))
    ]
    # whatever counts as a positive
    assert read_positives(f"cxc:{cxc}", threshold=4.6).grades[2].tolist() == found[2]
    one, other = ("COCO_val2014_000000000011.jpg", "101"), ("11.jpg", "COCO_val2014:sentid:101")
    named, ratings = frozenset([one, other]), {one: 2.0, other: 4.0, ("z", "1"): 5.0}
    listed = Listed("x", named, named, frozenset([one[0]]), frozenset(["101"]), grades=ratings)
    grades = match(listed, COCO_IMAGES, COCO_CAPTIONS, COCO_HOME).grades
    assert [part.tolist() for part in grades] == [[0], [0], [3.0]]
