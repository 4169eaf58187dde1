"""The numbers of a finished evaluation as one JSON file: what tables, pages and studies read."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from diptych.commerce.catalogue import Catalogue
from diptych.commerce.category_to_image.errors import KINSHIPS, ErrorCounts, choose_examples, kinship
from diptych.commerce.category_to_image.evaluation.measure import CATEGORY_MEASURES
from diptych.commerce.category_to_image.evaluation.protocol import FORMAT, RESULTS
from diptych.commerce.category_to_image.evaluation.rows import GroupValue, ModelRow, Value, comparison_line
from diptych.core.context import track
from diptych.core.files import write_json
from diptych.metrics.bootstrap import Bootstrap

if TYPE_CHECKING:
    from diptych.commerce.category_to_image.evaluation.result import ModelsEvaluation

_SIBLINGS = 20
_EXAMPLES = 6


def write_results(found: ModelsEvaluation, test: Catalogue, bootstrap: Bootstrap | None = None) -> None:
    """Compute everything from the cells and write ``results.json``."""
    how = bootstrap or Bootstrap()
    settings = {
        name: _setting(found, name, test, how) for name in track(found.settings, "numbers", unit="settings")
    }
    write_json(
        found.folder / RESULTS,
        {
            "format": FORMAT,
            "key": found.protocol.key,
            "line": found.line(),
            "intervals": asdict(how),
            "settings": settings,
        },
    )


def _setting(found: ModelsEvaluation, setting: str, test: Catalogue, how: Bootstrap) -> dict[str, Any]:
    models = found.models
    differences = found.compare(setting, bootstrap=how) if len(models) > 1 else []
    return {
        "line": found.setting_line(setting),
        "categories": len(found.judged(setting).nodes),
        "products": len(found.judged(setting).products),
        "table": [_row(row) for row in found.table(setting, bootstrap=how)],
        "baseline": found.baseline if differences else None,
        "comparison": comparison_line(found.baseline, len(differences), bootstrap=how)
        if differences
        else None,
        "differences": [{**asdict(one), "verdict": one.verdict} for one in differences],
        "levels": {model: _groups(found, setting, model, seen=False) for model in models},
        "seen": {model: _groups(found, setting, model, seen=True) for model in models},
        "errors": {model: _errors(found, setting, model) for model in models},
        "siblings": {model: _siblings(found, setting, model) for model in models},
        "examples": {model: _examples(found, setting, model, test) for model in models},
        "seconds": {
            model: [cell.about["seconds"] for cell in found.cells(setting, model)] for model in models
        },
    }


def _row(row: ModelRow) -> dict[str, Any]:
    return {
        "model": row.model,
        "label": row.label,
        "trained": row.trained,
        "values": {name: _value(one) for name, one in row.values.items()},
        "products": {name: _value(one) for name, one in row.products.items()},
    }


def _value(one: Value) -> dict[str, Any]:
    return {
        "mean": one.mean,
        "sd": one.spread.sd,
        "values": list(one.spread.values),
        "chance": one.chance,
        "low": one.low,
        "high": one.high,
    }


def _groups(found: ModelsEvaluation, setting: str, model: str, *, seen: bool) -> list[dict[str, Any]]:
    """One entry per group, with all measures."""
    entries: dict[int, dict[str, Any]] = {}
    for name in CATEGORY_MEASURES:
        groups: list[GroupValue] = (found.seen if seen else found.levels)(setting, model, name)
        for one in groups:
            entry = entries.setdefault(
                one.group, {"group": one.group, "categories": one.categories, "values": {}}
            )
            entry["values"][name] = {"mean": one.spread.mean, "sd": one.spread.sd}
    return [entries[group] for group in sorted(entries)]


def _errors(found: ModelsEvaluation, setting: str, model: str) -> dict[str, Any]:
    cells = found.cells(setting, model)
    known = all(cell.about.get("seen_known") for cell in cells)
    return {
        "runs": len(cells),
        "all": _counts(found.errors(setting, model)),
        "seen": _counts(found.errors(setting, model, seen=True)) if known else None,
        "unseen": _counts(found.errors(setting, model, seen=False)) if known else None,
    }


def _counts(counts: ErrorCounts) -> dict[str, Any]:
    return {**asdict(counts), "wrong": counts.wrong, "same_tree_share": counts.same_tree_share}


def _siblings(found: ModelsEvaluation, setting: str, model: str) -> list[dict[str, Any]]:
    return [
        {
            "left": list(found.tree.paths[one.left]),
            "right": list(found.tree.paths[one.right]),
            "left_as_right": one.left_as_right,
            "right_as_left": one.right_as_left,
            "confused": one.confused,
            "products": one.products,
        }
        for one in found.siblings(setting, model, _SIBLINGS)
    ]


def _examples(found: ModelsEvaluation, setting: str, model: str, test: Catalogue) -> list[dict[str, Any]]:
    """Of the first seed: right ones, then wrong ones of every kind."""
    tree, judged, cell = found.tree, found.judged(setting), found.cells(setting, model)[0]
    category, right = found.first_categories(setting, cell)
    shown = []
    for wrong in (False, True):
        rows = choose_examples(tree, judged.nodes, category, right, cell.scores[:, 0], _EXAMPLES, wrong=wrong)
        kinds = kinship(tree, judged.nodes[rows], category[rows])
        for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
            product = int(judged.products[cell.first[row, 0]])
            shown.append(
                {
                    "category": list(tree.paths[int(judged.nodes[row])]),
                    "found": list(tree.paths[int(category[row])]),
                    "kind": KINSHIPS[kind],
                    "right": not wrong,
                    "product": str(test.ids[product]),
                    "row": product,
                    "title": str(test.titles[product]),
                    "score": float(cell.scores[row, 0]),
                    "relevant": int(np.asarray(judged.truth.t2i.counts)[row]),
                    "seen": bool(cell.seen[row]) if cell.about.get("seen_known") else None,
                }
            )
    return shown
