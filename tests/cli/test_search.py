"""Searches: files of queries, a prompt, a least score, paths, and what is imported for them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from qdrant_server import qdrant_server

from diptych.index import open_index


def tables(diptych, line):
    found = json.loads(diptych(f"search {line} --json").out)["tables"]
    return found


def test_files_of_queries_and_of_vectors(diptych, index, tmp_path):
    """Each line or row is a query; what a sentence's own vector finds is what the sentence finds."""
    from diptych.encoders.dual_encoder import DualEncoder

    texts = ("a red star", "a blue cross")
    (tmp_path / "queries.txt").write_text("a red star\n\na blue cross\n")
    encoder = DualEncoder.load(Path(open_index(index).about["origin"]["model"]) / "best")
    np.save(tmp_path / "two.npy", [encoder.encode_texts([query])[0] for query in texts])
    lines = tables(diptych, f"{index} --queries {tmp_path}/queries.txt -k 3 --paths")
    rows = tables(diptych, f"{index} {tmp_path}/two.npy -k 3 --paths")
    for place, query in enumerate(texts):
        assert lines[place]["caption"] == f"images for {query!r}"
        assert rows[place]["caption"] == f"images for {f'{tmp_path}/two.npy[{place}]'!r}"
        (one,) = tables(diptych, f"{index} '{query}' -k 3")
        assert [row[:-1] for row in lines[place]["rows"]] == one["rows"]
        assert [row[:3] for row in rows[place]["rows"]] == [row[:3] for row in one["rows"]]
        assert all(Path(row[-1]).is_file() and row[-1].endswith(row[2]) for row in lines[place]["rows"])
    diptych(f"search {index} --queries {tmp_path}/queries.txt --sheet {tmp_path}/sheet.html")
    page = (tmp_path / "sheet.html").read_text("utf-8")
    assert all(query in page for query in texts)


def test_a_least_score_leaves_out_what_scores_less(diptych, index):
    (table,) = tables(diptych, f"{index} 'a red star' -k 5")
    scores = [row[1] for row in table["rows"]]
    (kept,) = tables(diptych, f"{index} 'a red star' -k 5 --least {scores[2]}")
    assert [row[1] for row in kept["rows"]] == [score for score in scores if score >= scores[2]]
    assert "hits score less than" in kept["after"]
    diptych(f"search {index} 'a red star' --least 2").shows("10 of 10 hits score less than 2")


def test_a_prompt_reads_until_an_empty_line(diptych, index, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("a red star\ngone.jpg\na blue cross\n\nnever\n"))
    done = diptych(f"search {index} --interactive -k 1")
    done.shows("images for 'a red star'", "images for 'a blue cross'", "note: a small encoder")
    done.hides("never")
    assert "gone.jpg does not exist" in done.err


def test_a_search_imports_what_it_needs(index, diptych, head_folder, tmp_path):
    """By words no library of images; by vectors, or by own terms of few rows, neither networks nor a compiler."""
    diptych(f"index {head_folder} --out {tmp_path}/sparse")
    np.save(tmp_path / "query.npy", np.ones(16))
    code = "import sys; from diptych.cli import main\ntry: main()\nexcept SystemExit: print(*sorted(sys.modules))"
    heavy = {
        "timm",
        "torchvision",
        "matplotlib",
        "jinja2",
        "diptych.report.document",
        "diptych.cli.categories",
    }
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


def test_an_index_keeps_the_captions_that_it_shows(diptych, index, tmp_path):
    """Without them the dataset is read; both show the same, and a dataset that is gone is not missed."""
    opened = open_index(index)
    assert opened.captions is not None
    assert opened.captions.get("no such id") is None
    assert list(opened.captions) == opened.ids
    rows = diptych(f"search {index} 'a red star'").out.split("next:")[0]
    opened.about["origin"]["data"]["path"] = str(tmp_path / "gone")
    opened.save(tmp_path / "moved")
    assert diptych(f"search {tmp_path}/moved 'a red star'").out.split("next:")[0] == rows
    assert ".png" in diptych(f"search {tmp_path}/moved 'a red star' --paths").out  # the index knows the files
    opened = open_index(index)
    opened.captions = None
    opened.save(tmp_path / "bare")
    assert not (tmp_path / "bare" / "captions.utf8").exists()
    assert diptych(f"search {tmp_path}/bare 'a red star'").out.split("next:")[0] == rows


def test_an_address_is_searched_like_a_folder(diptych, embedded, index, tmp_path):
    pytest.importorskip("qdrant_client", reason="qdrant-client (the extra 'qdrant') is not installed")
    with qdrant_server() as server:
        options = f"--option url={server.url} --option collection=shop"
        diptych(f"index {embedded} --engine qdrant {options} --out {tmp_path}/index")
        (found,) = tables(diptych, f"qdrant:{server.url}/shop 'a red star' -k 3")
        (expected,) = tables(diptych, f"{index} 'a red star' -k 3")
        assert [row[2:] for row in found["rows"]] == [row[2:] for row in expected["rows"]]
        done = diptych(f"search qdrant:{server.url}/shop 'a red star' --where split=test")
        done.shows(f"next: diptych search qdrant:{server.url}/shop 'a red star'")
        diptych(f"search qdrant:{server.url}/none kayak", failed="no Qdrant collection 'none'")
