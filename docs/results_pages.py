"""Generate the pages of results from the files of studies and what ``pins/stored`` holds of their quick runs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))
from generate import add_pages, table  # noqa: E402

STORED = DOCS.parent / "pins" / "stored"
STATUSES = ("holds", "fails", "undecided", "not tested")


@cache
def pages() -> dict[str, str]:
    """Return the overview of studies, and a page of each paper with its claims, by name."""
    from diptych.studies import STUDIES

    claims = _stored("study.published")["claims"]
    papers: dict[str, list[Any]] = {}
    for study in STUDIES:
        papers.setdefault(study.name.partition(".")[0], []).append(study)
    found = {}
    index = [(DOCS / "results" / "introduction.md").read_text("utf-8")]
    for name, studies in papers.items():
        rows, details = [], []
        for study in studies:
            printed = {
                key: sorted({one[0] for one in by.values()}) for key, by in claims.get(study.name, {}).items()
            }
            run = _stored(f"study.{study.name}")
            pinned = run.get("claims", [])  # a text: why it is not pinned
            quick = {one[0]: one[1] for one in pinned} if isinstance(pinned, list) else {}
            blocks = run.get("verdicts", {}).values()
            cells = (one[2] for block in blocks for columns in block.values() for one in columns.values())
            counts = (one for each in printed.values() for one in each), quick.values(), cells
            link = f"[{study.name}]({name}.md#{_anchor(study.name)})"
            rows.append((link, study.asks, *(_counted(Counter(one)) for one in counts)))
            listed = [
                (claim.name, claim.text, ", ".join(printed.get(claim.name, [])), quick.get(claim.name, ""))
                for claim in study.claims
            ]
            details.append(f"## {study.name} {{#{_anchor(study.name)}}}\n\n{study.asks}\n")
            details.append(
                f"```console\ndiptych study show {study.name}\ndiptych study run {study.name} --quick\n```\n"
            )
            details.append(
                table(("claim", "text", "by the printed numbers", "quick run"), listed) if listed else ""
            )
        paper = studies[0].paper
        heading = (
            f"{paper.authors}, *{paper.title}*, {paper.venue}."
            if not studies[0].ours
            else "Studies of our own."
        )
        columns = ("study", "question", "claims, printed numbers", "claims, quick run", "cells, quick run")
        index.append(f"## {name}\n\n{heading}\n\n{table(columns, rows)}")
        found[f"results/{name}.md"] = "\n".join(
            [f"# {name}: claims\n\n{heading} [All papers](index.md).\n", *details]
        )
    return {"results/index.md": "\n".join(index), **found}


def _stored(name: str) -> dict[str, Any]:
    file = STORED / f"{name}.json"
    values: dict[str, Any] = json.loads(file.read_text("utf-8"))["values"] if file.is_file() else {}
    return values


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{one} {counts[one]}" for one in sorted(counts, key=[*STATUSES, *counts].index))


def _anchor(name: str) -> str:
    return name.replace(".", "-")


def on_files(files: Any, config: Any) -> Any:
    return add_pages(files, config, pages())
