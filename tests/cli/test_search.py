"""Searches: files of queries, a prompt, a least score, paths, and what is imported for them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Command


def test_a_file_of_queries_is_as_many_searches(diptych: Command, index: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("a red star\n\na blue cross\n")
    both = json.loads(diptych(f"search {index} --queries {queries} -k 3 --paths --json").out)["tables"]
    for table, query in zip(both, ("a red star", "a blue cross"), strict=True):
        assert table["caption"] == f"images for {query!r}"
        (alone,) = json.loads(diptych(f"search {index} -k 3 --json", query).out)["tables"]
        assert [row[:-1] for row in table["rows"]] == alone["rows"]
        assert all(Path(row[-1]).is_file() and row[-1].endswith(row[2]) for row in table["rows"])
    diptych(f"search {index} --queries {queries} --sheet {tmp_path}/sheet.html")
    page = (tmp_path / "sheet.html").read_text("utf-8")
    assert "a red star" in page
    assert "a blue cross" in page


def test_a_least_score_leaves_out_what_scores_less(diptych: Command, index: Path) -> None:
    (table,) = json.loads(diptych(f"search {index} 'a red star' -k 5 --json").out)["tables"]
    scores = [row[1] for row in table["rows"]]
    (kept,) = json.loads(diptych(f"search {index} 'a red star' -k 5 --least {scores[2]} --json").out)[
        "tables"
    ]
    assert [row[1] for row in kept["rows"]] == [score for score in scores if score >= scores[2]]
    assert "hits score less than" in kept["after"]
    diptych(f"search {index} 'a red star' --least 2").shows("10 of 10 hits score less than 2")


def test_a_prompt_reads_until_an_empty_line(
    diptych: Command, index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a red star\ngone.jpg\na blue cross\n\nnever\n"))
    done = diptych(f"search {index} --interactive -k 1")
    done.shows("images for 'a red star'", "images for 'a blue cross'")
    done.hides("never")
    assert "gone.jpg does not exist" in done.err


def test_a_small_encoder_is_named(diptych: Command, index: Path) -> None:
    diptych(f"search {index} 'a red star' -k 1").shows("note: a small encoder", "parameters")


def test_one_source_of_queries(diptych: Command, index: Path, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n")
    diptych(f"search {index}", refused="one source of queries")
    diptych(f"search {index} x --interactive", refused="one source of queries")
    diptych(f"search {index} --queries {tmp_path}/empty.txt", refused="holds no query")
    diptych(f"search {index} --queries {tmp_path}/none.txt", failed="none.txt does not exist")


def test_a_search_imports_what_it_needs(
    index: Path, diptych: Command, head_folder: Path, tmp_path: Path
) -> None:
    """By words no library of images; by vectors, or by own terms of few rows, neither networks nor a compiler."""
    diptych(f"index {head_folder} --out {tmp_path}/sparse")
    np.save(tmp_path / "query.npy", np.ones(16))
    code = (
        "import sys; from diptych.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sorted(sys.modules))"
    )
    heavy = {"timm", "torchvision", "matplotlib", "jinja2", "diptych.report", "diptych.cli.categories"}
    heavy |= {"diptych.commerce", "transformers", "diptych.data.scenes"}
    for arguments, never in (
        ([index, "a red star"], heavy),
        ([index, tmp_path / "query.npy"], {*heavy, "torch", "numba", "tokenizers"}),
        ([tmp_path / "sparse", "a red star", "--model", "none"], {*heavy, "torch", "numba"}),
    ):
        line = [sys.executable, "-c", code, "search", *map(str, arguments), "-k", "1"]
        done = subprocess.run(line, capture_output=True, text=True, check=True)
        assert "images for " in done.stdout
        assert not set(done.stdout.splitlines()[-1].split()) & never


def test_vectors_search_without_an_encoder(diptych: Command, index: Path, tmp_path: Path) -> None:
    """Each row of the file is a query, and what a sentence's own vector finds is what the sentence finds."""
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.index import open_index

    model = open_index(index).about["origin"]["model"]
    encoder = DualEncoder.load(Path(model) / "best")
    np.save(
        tmp_path / "two.npy", [encoder.encode_texts([query])[0] for query in ("a red star", "a blue cross")]
    )
    found = json.loads(diptych(f"search {index} {tmp_path}/two.npy -k 3 --paths --json").out)["tables"]
    for place, query in enumerate(("a red star", "a blue cross")):
        assert found[place]["caption"] == f"images for {f'{tmp_path}/two.npy[{place}]'!r}"
        (alone,) = json.loads(diptych(f"search {index} -k 3 --json", query).out)["tables"]
        assert [row[:3] for row in found[place]["rows"]] == [row[:3] for row in alone["rows"]]
    np.save(tmp_path / "wide.npy", np.ones(7))
    diptych(f"search {index} {tmp_path}/wide.npy", failed="width 7")
    diptych(f"search {index} {tmp_path}/two.npy --own-terms", refused="no terms of their own")
    diptych(f"search {index} 'a red star' --model none", refused="has no terms of its own")


def test_an_index_keeps_the_captions_that_it_shows(diptych: Command, index: Path, tmp_path: Path) -> None:
    """Without them the dataset is read; both show the same, and a dataset that is gone is not missed."""
    from diptych.index import open_index

    opened = open_index(index)
    assert opened.captions is not None
    assert opened.captions.get("nobody") is None
    assert list(opened.captions) == sorted(opened.ids)  # type: ignore[attr-defined]
    shown = diptych(f"search {index} 'a red star'").out
    opened.about["origin"]["data"]["path"] = str(tmp_path / "gone")
    opened.save(tmp_path / "moved")
    rows = shown.split("next:")[0]
    assert diptych(f"search {tmp_path}/moved 'a red star'").out.split("next:")[0] == rows
    diptych(f"search {tmp_path}/moved 'a red star' --paths", code=None)
    opened = open_index(index)
    opened.captions = None
    opened.save(tmp_path / "bare")
    assert not (tmp_path / "bare" / "captions.utf8").exists()
    assert diptych(f"search {tmp_path}/bare 'a red star'").out.split("next:")[0] == rows
