from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from refusals import refused

from diptych.core.errors import DataError, UnknownNameError, UsageError
from diptych.data.judgements import (
    MatchedJudgements,
    match_judgements,
    read_cxc_judgements,
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


def said(found: MatchedJudgements) -> dict[tuple[int, int], float]:
    pairs = zip(found.images.tolist(), found.captions.tolist(), strict=True)
    return dict(zip(pairs, found.ratings.tolist(), strict=True))


def test_experts_by_hand(tmp_path: Path) -> None:
    file = tmp_path / "ExpertAnnotations.txt"
    file.write_text(EXPERT)
    found = read(f"flickr8k-expert:{file}")
    # Picture a with b's first caption was judged twice: 4/3 and 2.
    assert said(found) == pytest.approx({(0, 2): (4 / 3 + 2) / 2, (0, 1): 4, (1, 1): 2})
    assert (found.lowest, found.highest) == (1, 4)
    assert found.missing == {"images": 0, "captions": 2, "pairs": 2}
    assert found.repeated == 1
    assert found.line().endswith("not in the collection: 2 captions, 2 pairs)")
    assert said(read(f"flickr8k-expert:{tmp_path}")) == said(found)  # the folder


def test_the_crowd_by_hand_and_gzipped(tmp_path: Path) -> None:
    file = tmp_path / "CrowdFlowerAnnotations.txt.gz"
    file.write_bytes(gzip.compress(CROWD.encode()))
    for source in (file, tmp_path):
        found = read(f"flickr8k-crowd:{source}")
        assert said(found) == pytest.approx({(0, 3): 1 / 3, (2, 4): 1})
        assert (found.lowest, found.highest) == (0, 1)


def test_numbers_of_ids_are_asked_before_places(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(
        "a.jpg\tb.jpg#1\t1\t2\t3\na.jpg\tb.jpg#0\t1\t1\t1\na.jpg\ta.jpg#1\t2\t2\t2\n"
    )
    judged = read_flickr8k_expert(tmp_path / "x.txt")
    # Only b's captions 3 and 1 are there, and c's id says that it is of another picture than it belongs to.
    ids = ["10", "11", "folder/b.webp#3", "folder/b.webp#1", "a.webp#1"]
    found = match_judgements(judged, IMAGES, ids, HOME)
    assert said(found) == {(0, 3): 2.0, (0, 1): 2.0}
    assert (found.by_place, found.missing["captions"]) == (1, 1)
    (tmp_path / "y.txt").write_text("a.jpg\tc.jpg#0\t1\t1\t1\n")
    assert said(match_judgements(read_flickr8k_expert(tmp_path / "y.txt"), IMAGES, ids, HOME)) == {
        (0, 4): 1.0
    }


def test_places_say_nothing_where_captions_were_drawn(tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text(EXPERT)
    judged = read_flickr8k_expert(tmp_path / "x.txt")
    with pytest.raises(DataError, match=r"none of its 6 pairs .* evaluate with all captions"):
        match_judgements(judged, IMAGES, CAPTIONS, HOME, in_order=False)
    found = match_judgements(judged, IMAGES, ["a.webp#1", *CAPTIONS[1:]], HOME, in_order=False)
    assert said(found) == {(0, 0): 4.0, (1, 0): 2.0}
    assert found.by_place == 0


def test_cxc_as_judgements(tmp_path: Path) -> None:
    file = tmp_path / "sits_test.csv"
    file.write_text(
        "caption,image,agg_score,sampling_method\n"
        "COCO_val2014:sentid:101,COCO_val2014_000000000011.jpg,4.2,c2i_original\n"
        "COCO_val2014:sentid:202,COCO_val2014_000000000011.jpg,0,c2i_intrasim\n"
    )
    for source in (file, tmp_path):
        judged = read_cxc_judgements(source)
        found = match_judgements(judged, ["11.jpg", "22.jpg"], ["101", "202"], np.array([0, 1]))
        assert said(found) == {(0, 0): 4.2, (0, 1): 0.0}
        assert found.highest == 5
    (tmp_path / "sts_test.csv").write_text("caption1,caption2,agg_score,sampling_method\na,b,3.5,x\n")
    with pytest.raises(DataError, match=r"is no CxC file of sits ratings"):
        read_cxc_judgements(tmp_path / "sts_test.csv")


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text('\ufeffRating,note,image,caption\n3.5,"good, but",b.webp,21\n-1,,a.webp,10\n')
    found = read(f"csv:{file}")
    assert said(found) == {(1, 3): 3.5, (0, 0): -1.0}
    assert (found.lowest, found.highest) == (-1, 3.5)
    assert found.what == "judgements of mine.csv"
    file.write_text("image,caption,rating\na.webp,10,2\nb.webp,20,5\n")
    found = read(f"csv:{file}")
    assert (found.lowest, found.highest) == (0, 5)  # a scale without zeros begins at 0 all the same


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("flickr8k-expert", "a.jpg\tb.jpg#0\t1\t1\t2\na.jpg\tb.jpg#0\t1\t5\t2\n", "line 2: not .* ratings"),
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
    ],
)
def test_what_is_not_as_it_should_be_is_named(tmp_path: Path, name: str, text: str, words: str) -> None:
    file = tmp_path / "file.txt"
    file.write_text(text)
    refused(UsageError if "no column" in words else DataError, words, read, f"{name}:{file}")


def test_names_that_do_not_exist(tmp_path: Path) -> None:
    refused(UsageError, "not FORMAT:PATH", read, "ExpertAnnotations.txt")
    refused(UnknownNameError, "flickr8k-crowd, flickr8k-expert", read, "flickr:x")
    refused(DataError, r"gone\.txt does not exist", read, f"csv:{tmp_path / 'gone.txt'}")
    refused(DataError, r"no ExpertAnnotations\.txt in", read, f"flickr8k-expert:{tmp_path}")
    refused(DataError, r"no sits_\*\.csv", read, f"cxc:{tmp_path}")
    (tmp_path / "x.csv").write_bytes(b"image,caption,rating\n\xff\xfe,1,2\n")
    refused(DataError, "line 2 is not utf-8", read_judgement_table, tmp_path / "x.csv")
