"""Searches: files of queries, a prompt, a least score, paths, and what is imported for them."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

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


def test_a_search_by_words_imports_what_it_needs(index: Path) -> None:
    code = (
        "import sys; from diptych.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sorted(sys.modules))"
    )
    line = [sys.executable, "-c", code, "search", str(index), "a red star", "-k", "1"]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert "images for 'a red star'" in done.stdout
    modules = set(done.stdout.splitlines()[-1].split())
    heavy = {"timm", "torchvision", "matplotlib", "jinja2", "diptych.report", "diptych.cli.categories"}
    assert not modules & {*heavy, "diptych.commerce", "transformers"}
