"""The only file of the pins that knows the package: its command line, its front door, and what its verbs write.

Where the package moves, this file follows; what is pinned stays.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from pins.numbers import numbers_in

Scores = dict[str, list[float | None]]
"""Per direction and measure: value, lower and upper end of its interval, chance."""


def diptych(*args: str, code: int = 0, stdin: str | None = None) -> str:
    """Run the command line in this process and return what it prints; another exit code than ``code`` is an error."""
    from diptych.cli import main

    out, err = io.StringIO(), io.StringIO()
    before = sys.argv, sys.stdin
    sys.argv = ["diptych", *map(str, args)]
    if stdin is not None:
        sys.stdin = io.StringIO(stdin)
    ended = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stop:
        ended = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    finally:
        sys.argv, sys.stdin = before
    if ended != code:
        raise RuntimeError(
            f"diptych {' '.join(map(str, args))} ended with {ended}:\n{out.getvalue()}{err.getvalue()}"
        )
    return out.getvalue()


# Evaluation


def measure_names() -> set[str]:
    """The names of all measures, with ``@k`` where a cut-off is part of the name."""
    from diptych.metrics.measuring import MEASURES

    return {one.name for one in MEASURES}


def tie_rules() -> tuple[str, ...]:
    """The names of all tie rules."""
    from diptych.metrics.ranks import TIE_RULES

    return tuple(TIE_RULES)


def ground_truth(caption_image: Sequence[int], n_images: int, further: Sequence[tuple[int, int]] = ()) -> Any:
    """Each caption describes one image; ``further`` are more (image, caption) pairs that are relevant."""
    from diptych import GroundTruth

    if not further:
        return GroundTruth.from_caption_image(np.asarray(caption_image), n_images)
    images = [*caption_image, *(image for image, _ in further)]
    texts = [*range(len(caption_image)), *(text for _, text in further)]
    homes = np.asarray(caption_image)
    return GroundTruth.from_pairs(
        np.asarray(images), np.asarray(texts), n_images, len(caption_image), text_image=homes
    )


def evaluated(
    images: np.ndarray,
    texts: np.ndarray,
    truth: Any,
    measures: Sequence[str],
    *,
    samples: int = 0,
    relevance: tuple[np.ndarray, np.ndarray] | None = None,
    **options: Any,
) -> Any:
    """The result of evaluating embeddings."""
    from diptych.evaluation import evaluate
    from diptych.metrics import Relevance
    from diptych.metrics.bootstrap import Bootstrap

    if relevance is not None:
        options["relevance"] = Relevance(*relevance, "another model")
    bootstrap = Bootstrap(samples=samples, seed=0) if samples else None
    return evaluate(images, texts, truth, list(measures), bootstrap=bootstrap, **options)


def evaluated_scores(scores: np.ndarray, truth: Any, measures: Sequence[str], **options: Any) -> Any:
    """The result of evaluating a score matrix (n_images, n_texts)."""
    from diptych.evaluation import evaluate

    return evaluate(scores, None, truth, list(measures), **options)


def evaluated_sparse(
    images: csr_array, texts: csr_array, truth: Any, measures: Sequence[str], **options: Any
) -> Any:
    """The result of evaluating sparse rows."""
    from diptych.evaluation import evaluate

    return evaluate(images, texts, truth, list(measures), **options)


def evaluated_reranked(
    i2t: tuple[np.ndarray, np.ndarray, np.ndarray],
    t2i: tuple[np.ndarray, np.ndarray, np.ndarray],
    images: np.ndarray,
    texts: np.ndarray,
    truth: Any,
    measures: Sequence[str],
    **options: Any,
) -> Any:
    """The result of evaluating candidates, per direction their items, contrastive and matching scores."""
    from diptych.evaluation import evaluate
    from diptych.evaluation.evaluate import rows_source
    from diptych.evaluation.reranking import RerankedScores
    from diptych.metrics.candidates import Candidates, Reranked

    reranked = Reranked(Candidates(*i2t), Candidates(*t2i))
    how = {name: options.pop(name) for name in ("k", "unranked") if name in options}
    first = rows_source(images, texts, options.pop("similarity", None))
    return evaluate(
        RerankedScores(reranked, truth, first=first, **how), None, truth, list(measures), **options
    )


def scores_of(result: Any) -> Scores:
    """Every number of a result."""
    return {
        name if direction == "both" else f"{direction} {name}": [
            score.value,
            score.low,
            score.high,
            score.chance,
        ]
        for direction, given in result.scores.items()
        for name, score in given.items()
    }


def per_query(result: Any) -> dict[str, np.ndarray]:
    """The values per query of a result."""
    return {
        f"{direction} {name}": values
        for direction, given in result.per_query.items()
        for name, values in given.items()
    }


def compared(results: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    """Differences between results, with intervals and p-values."""
    import diptych

    comparison = diptych.compare(results, **options)
    return {
        f"{one.run} {one.direction} {one.measure}": [
            one.difference,
            one.low,
            one.high,
            one.p_randomisation,
            one.p_t,
            one.p,
            one.verdict,
        ]
        for one in comparison.differences
    }


def evaluation_of(folder: Path) -> Scores:
    """The numbers that ``diptych evaluate`` left in a folder, or below it."""
    return _scores_in(json.loads(_only(folder, "evaluation.json").read_text())["content"])


# Indices


def engines() -> dict[str, str]:
    """Engines whose library is here and which need no server, and whether they are dense or sparse."""
    from diptych.index import ENGINES

    names = {one.name: one.vectors for one in ENGINES}
    return {name: kind for name, kind in names.items() if not name.startswith("qdrant")}


def searched(
    engine: str, rows: Any, queries: Any, k: int, options: Mapping[str, Any], search: Mapping[str, Any]
) -> tuple[list[list[str]], np.ndarray]:
    """Ids and scores of the ``k`` best rows per query."""
    from diptych.encoders.embeddings import SparseEmbeddings
    from diptych.index import build_index

    ids = [f"item-{row}" for row in range(rows.shape[0])]
    if isinstance(rows, np.ndarray):
        from diptych.encoders.embeddings import Embeddings

        embeddings: Any = Embeddings(ids, rows, "encoder", "data", "image", {})
    else:
        terms = [f"term-{column}" for column in range(rows.shape[1])]
        embeddings = SparseEmbeddings(ids, rows, terms, "encoder", "data", "image", {})
    hits = build_index(embeddings, engine, sample=queries, **options).search(queries, k, **search)
    return [list(one) for one in hits.ids], np.asarray(hits.scores)


# Training


@contextlib.contextmanager
def interrupted_at(step: int, sent: signal.Signals = signal.SIGINT) -> Iterator[None]:
    """Send this process a signal, an interrupt by default, after an optimizer's ``step``-th step."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    done = 0

    def count(*_: Any) -> None:
        nonlocal done
        done += 1
        if done == step:
            os.kill(os.getpid(), sent)

    handle = register_optimizer_step_post_hook(count)
    try:
        yield
    finally:
        handle.remove()
    if done < step:
        raise RuntimeError(f"no step {step}: the optimizer made {done}")


def steps_of(run: Path) -> list[dict[str, Any]]:
    """The numbers of a run's steps and validations, without seconds."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{key: value for key, value in line.items() if "second" not in key} for line in lines]


def epochs_of(run: Path) -> list[dict[str, Any]]:
    """The numbers of a category run's epochs; steps were not counted in the first edition."""
    return [{key: value for key, value in line.items() if key != "step"} for line in steps_of(run)]


def encoded(model: Path, data: Path, split: str = "test") -> tuple[np.ndarray, np.ndarray]:
    """Image and caption embeddings of a split by a run's best encoder."""
    import diptych

    encoder, collection = diptych.load(model / "best"), diptych.read(data, split)
    return np.asarray(encoder.encode_images(collection.images())), np.asarray(
        encoder.encode_texts(collection.captions)
    )


def objective_names() -> set[str]:
    """The names of all objectives."""
    from diptych import OBJECTIVES

    return {one.name for one in OBJECTIVES}


def objective_values(
    name: str, options: Mapping[str, Any], scores: np.ndarray, positives: np.ndarray, within: Any
) -> tuple[float, np.ndarray, np.ndarray]:
    """Loss, gradient by the scores and values per query of an objective on given scores."""
    import torch

    from diptych import OBJECTIVES
    from diptych.objectives import Within

    objective = OBJECTIVES.get(name)(**options)
    given = torch.tensor(scores, requires_grad=True)
    inner = Within(*map(torch.tensor, within)) if objective.needs_within else None
    truth = torch.tensor(positives)
    loss = objective(given, truth, inner) if inner else objective(given, truth)
    loss.backward()
    with torch.no_grad():
        each = objective.per_query(given, truth, inner.images) if inner else objective.per_query(given, truth)
    assert given.grad is not None
    return float(loss), given.grad.numpy(), each.numpy()


# Sparse heads


def sparse_measures_of(head: Path) -> dict[str, Any]:
    """What a head's measurement says, dense and sparse."""
    from diptych.core.artifact import encode
    from diptych.sparse.evaluate import SparseMeasures

    given = encode(SparseMeasures.open(head / "measures" / "test.npz"), {})
    found = {name: _scores_in(given[name]) for name in ("dense", "sparse")}
    rest = ("flops", "nonzeros", "empty", "deviation", "faithful", "p")
    return {**found, **{name: _numbers(given[name]) for name in rest}}


def sparse_rows_of(head: Path, split: str = "test") -> tuple[csr_array, csr_array]:
    """The sparse rows of a split's images and captions."""
    from diptych.encoders.embeddings import SparseEmbeddings

    rows = head / "rows" / split
    return SparseEmbeddings.open(rows / "images").rows, SparseEmbeddings.open(rows / "texts").rows


def found_in(index: Path, queries: Any, k: int) -> tuple[list[list[str]], np.ndarray]:
    """Ids and scores of the ``k`` best items of a stored index."""
    from diptych.index import open_index

    hits = open_index(index).search(queries, k)
    return [list(one) for one in hits.ids], np.asarray(hits.scores)


def printed_hits(text: str) -> list[list[str]]:
    """Rank, score and id of each line that ``diptych search`` prints."""
    return [list(found) for found in re.findall(r"^\s*(\d+)\s+(-?\d+\.\d+)\s+(\S+)", text, re.MULTILINE)]


def printed_weights(text: str) -> list[list[str]]:
    """Terms and weights that ``diptych sparse terms`` prints."""
    return [list(found) for found in re.findall(r"(\S+) (\d+\.\d+)", text)]


def printed_numbers(text: str) -> list[str]:
    """The numbers of a printed text, without the lines that name folders or what to do next."""
    lines = [line for line in text.splitlines() if "/" not in line and not line.startswith("next")]
    return numbers_in("\n".join(lines))


# Analyses


def stress_of(folder: Path) -> dict[str, Any]:
    """The numbers of a stress run: clean values, and per perturbation what it changed and what that cost.

    A drop is clean, perturbed, difference, low, high, relative, p, corrected p; of changed queries the first six.
    """
    given = json.loads((folder / "stress.json").read_text())["content"]
    names = ("clean", "perturbed", "difference", "low", "high", "relative")
    rows = {
        f"{row['direction']} {row['name']}": {
            "queries": row["queries"],
            "changed": row["changed"],
            "drops": {
                name: [drop[key] for key in (*names, "p", "corrected")] for name, drop in row["drops"].items()
            },
            "changed drops": {
                name: [drop[key] for key in names] for name, drop in row["changed_drops"].items()
            },
        }
        for row in given["rows"]
    }
    agreement = {
        direction: [one[key] for key in ("decreased", "increased", "unchanged")]
        for direction, one in given["agreement"].items()
    }
    return {"clean": given["clean"], "perturbations": rows, "agreement": agreement}


def audit_of(folder: Path) -> dict[str, Any]:
    """Per condition and side: what each group of facts holds by each probe, and all questions' values."""
    given = json.loads(_only(folder, "audit.json").read_text())["content"]
    return {
        f"{condition} {side}": {
            "groups": {
                group["name"]: {probe: _columns(held) for probe, held in group["held"].items()}
                | {"control": group["control"]}
                for group in audit["groups"]
            },
            "questions": {
                question["key"]: {
                    probe: [value["held"]["raw"], value["accuracy"], value["control"]]
                    for probe, value in question["probes"].items()
                }
                for question in audit["questions"]
            },
        }
        for condition, sides in given["conditions"].items()
        for side, audit in sides.items()
        if isinstance(audit, dict) and "groups" in audit
    }


def cocos_of(folder: Path) -> dict[str, Any]:
    """Per direction and count: mean and standard deviation over batches."""
    given = json.loads(_only(folder, "cocos.json").read_text())["content"]
    return {
        f"{direction} {name}": [value["mean"], value["sd"], value["batches"]]
        for direction, counts in given["counts"].items()
        for name, value in counts.items()
    }


def granularity_of(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Features of collections, their extremes, and the differences of two."""
    found: dict[str, Any] = {}
    for name in names:
        given = json.loads((folder / name / "granularity.json").read_text())["content"]
        found[name] = {one["name"]: _columns(one) for one in given["features"]}
        found[f"{name} extremes"] = [[one["id"], one["score"]] for one in (*given["most"], *given["least"])]
    comparison = json.loads((folder / "comparison.json").read_text())["content"]
    found["differences"] = {
        one["name"]: _numbers({key: value for key, value in one.items() if key != "name"})
        for one in comparison["differences"]
    }
    return found


def comparison_of(file: Path) -> dict[str, Any]:
    """The differences that ``diptych compare`` wrote."""
    return _differences([{**one, "run": "other"} for one in json.loads(file.read_text())["differences"]])


def explored(images: np.ndarray, texts: np.ndarray, truth: Any, target: Mapping[str, str]) -> dict[str, Any]:
    """Which choices of protocol explain printed cells: every variant that does, and the nearest."""
    import diptych

    found = diptych.explore_rows(images, texts, truth, target, changes=2, threads=1)
    words = {
        name: [[f"{change.axis} {change.choice}" for change in one.changes], one.mean_error]
        for name, one in (("as given", found.as_given), ("nearest", found.nearest))
    }
    tried = sorted(
        [" and ".join(f"{change.axis} {change.choice}" for change in one.changes), one.mean_error]
        for one in found.variants
    )
    explanations = [
        [f"{change.axis} {change.choice}" for change in one.changes] for one in found.explanations
    ]
    return {**words, "explanations": explanations, "luck": found.luck, "tried": tried}


def perturbed_of(folder: Path) -> dict[str, str]:
    """Per file of ``diptych data perturb`` the changed captions, one per line."""
    return {
        path.stem: "\n".join(json.loads(line)["perturbed"] or "" for line in path.read_text().splitlines())
        for path in sorted(folder.rglob("*.jsonl"))
    }


# Purchase intent


def tables_of(description: Path) -> dict[str, list[list[str]]]:
    """The tables of ``diptych intent describe``: a header and rows, as in their CSV files."""
    return {
        path.stem: list(csv.reader(io.StringIO(path.read_text())))
        for path in sorted(description.rglob("*.csv"))
    }


def ingested(log: Path) -> dict[str, Any]:
    """How many events an imported log has, and how many rows each rule dropped."""
    given = json.loads((log / "log.json").read_text())["content"]["about"]
    return {
        "events": given["events"],
        "rows": given["rows_read"],
        "dropped": {rule["rule"]: rule["dropped"] for rule in given["rules"]},
    }


def feature_columns(features: Path) -> dict[str, list[Any]]:
    """The exported features, by column."""
    import polars

    return polars.read_parquet(features / "steps.parquet").to_dict(as_series=False)


def intent_cells(evaluation: Path) -> dict[str, Any]:
    """The measures of every cell of an evaluation, the gains of the extended features, and importances."""
    given = json.loads((evaluation / "results.json").read_text())["content"]
    cell = ("setting", "set", "step", "model")
    of = {tuple(one[key] for key in cell): one for one in given["cells"]}
    cells = {
        " ".join(map(str, place)): {
            key: value
            for key, value in one.items()
            if isinstance(value, int | float) and key not in cell and "_gain" not in key
        }
        for place, one in of.items()
    }
    measures = ("f1", "average_precision", "roc_auc", "best_f1", "brier_calibrated")
    gains = {
        f"{place[0]} {place[2]} {place[3]} {name}": [
            of[place[0], "baseline", place[2], place[3]][name],
            *(one[key] for key in (name, f"{name}_gain", f"{name}_gain_low", f"{name}_gain_high")),
        ]
        for place, one in of.items()
        for name in measures
        if f"{name}_gain" in one
    }
    importance = {
        " ".join(str(one[key]) for key in (*cell, "feature")): [one["impurity"], one["permutation"]]
        for one in given["importance"]
    }
    return {"cells": cells, "gains": gains, "importance": importance}


def scorer_cells(scores: Path) -> dict[str, Any]:
    """What a scorer is worth on a table of sessions."""
    given = json.loads((scores / "scores.json").read_text())["content"]["about"]
    return {f"{one['setting']} {one['step']}": _numbers(one["measures"]) for one in given["cells"]}


def scores_table(scores: Path) -> list[list[str]]:
    """The scores of a table of sessions, as in the CSV file."""
    return list(csv.reader(io.StringIO((scores / "scores.csv").read_text())))


# Categories


def category_evaluation(folder: Path) -> dict[str, Any]:
    """Per setting: the table with intervals and chance, differences, levels, errors."""
    given = json.loads((folder / "results.json").read_text())
    found = {}
    for name, setting in given["settings"].items():
        found[name] = {
            "table": {
                row["model"]: {
                    measure: [value["mean"], value["low"], value["high"], value["chance"], value["values"]]
                    for measure, value in row["values"].items()
                    if measure not in ("mAP", "MRR", "nDCG@10", "R@1")  # stood elsewhere before
                }
                for row in setting["scores"]
                if row["part"] == "all"
            },
            "differences": _differences(setting["differences"]),
            **{part: _groups(setting, part) for part in ("levels", "seen")},
            **{part: _numbers(setting[part]) for part in ("errors", "siblings")},
        }
    return found


def _groups(setting: Mapping[str, Any], part: str) -> dict[str, Any]:
    """The scores of a part's groups of categories, by model."""
    models = [row["model"] for row in setting["scores"] if row["part"] == "all"]
    return {
        model: [_numbers(row) for row in setting["scores"] if (row["model"], row["part"]) == (model, part)]
        for model in models
    }


def picks_of(folder: Path) -> dict[str, Any]:
    """Per category the products that were picked, with their scores."""
    given = json.loads((folder / "picks.json").read_text())
    return {
        one["category"]: [[product["id"], product["score"]] for product in one["products"]]
        for one in given["categories"]
    }


def filled(file: Path) -> list[dict[str, Any]]:
    """The suggestions of ``diptych categories fill``."""
    keys = ("id", "path", "confidence", "levels", "alternatives", "verdict")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [{key: line[key] for key in keys if key in line} for line in lines]


# Studies


def study_names() -> set[str]:
    """The names of all studies."""
    from diptych import STUDIES

    return {one.name for one in STUDIES}


def published() -> dict[str, Any]:
    """Every printed cell, and what every study's claims say of the printed numbers."""
    from diptych.studies import STUDIES, judged_in_the_paper

    tables = {f"{table.paper.key}.{table.name}": table for study in STUDIES for table in study.published}
    cells = {
        name: {
            f"{row.row} | {row.on.key}": {
                column: cell.value if cell.sd is None else [cell.value, cell.sd]
                for column, cell in row.cells.items()
            }
            for row in table.rows
        }
        for name, table in tables.items()
    }
    claims = {
        study.name: {
            claim.name: {by: [one.status, *numbers_in(one.figure)] for by, one in judged.items()}
            for claim, judged in judged_in_the_paper(study)
        }
        for study in STUDIES
    }
    return {"cells": cells, "claims": claims}


def _number(row: Any) -> str:
    """The paper's number of a row; empty where it prints none, or where the label says the same."""
    printed = "" if row.printed is None or not row.printed.cells else row.printed.row
    return "" if printed.lower() == row.row.label.lower() else str(printed)


def study_of(folder: Path, timed: tuple[str, ...]) -> dict[str, Any]:
    """What ``diptych study verdict FOLDER`` shows, in numbers and verdicts, and the measured values behind it.

    Args:
        timed: how columns begin that measure time; where there are any, claims are left out too.
    """
    from diptych.studies import STUDIES, collect, compare

    (results,) = collect([folder])
    comparison = compare(STUDIES.get(results.study), results)
    names = {name for entry in results.entries for one in entry.measurements for name in one.values}
    is_timed = any(name.startswith(timed) for name in names)
    measured = {}
    for entry in results.entries:
        for one in entry.measurements:
            key = (entry.row, f"seed {entry.seed}", one.on.dataset, one.on.positives)
            values = {name: value for name, value in one.values.items() if not name.startswith(timed)}
            measured[", ".join(map(str, key))] = values
    blocks = {
        f"{number} {block.on.key or 'own'}": {
            f"{row.row.name} {_number(row)}": {
                cell.column: [*_figure(cell.measured), cell.verdict]
                for cell in row.cells
                if not cell.column.startswith(timed)
            }
            for row in block.rows
            if any(cell.measured is not None for cell in row.cells)
        }
        for number, block in enumerate(comparison.blocks, 1)
    }
    claims = [
        [claim.name, judgement.status, *numbers_in(judgement.figure)]
        for claim, judgement, _ in comparison.claims
    ]
    tables = [
        [[row[0], *numbers_in(" | ".join(row[1:]))] for row in table.texts]
        for table in comparison.further.tables
    ]
    return {
        "measured": measured,
        "verdicts": {name: rows for name, rows in blocks.items() if rows},
        "claims": "timed" if is_timed else claims,
        "further tables": tables,
    }


def _figure(figure: Any) -> list[float | None]:
    return [None, None] if figure is None else [figure.mean, figure.sd]


# What files hold


def _only(folder: Path, name: str) -> Path:
    found = sorted(folder.rglob(name))
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} files {name} in {folder}")
    return found[0]


def _scores_in(evaluation: Mapping[str, Any]) -> Scores:
    return {
        name if direction == "both" else f"{direction} {name}": [
            score[key] for key in ("value", "low", "high", "chance")
        ]
        for direction, given in evaluation["scores"].items()
        for name, score in given.items()
    }


def _columns(row: Mapping[str, Any]) -> dict[str, Any]:
    """The numbers of a flat record."""
    return {key: value for key, value in row.items() if isinstance(value, int | float)}


def _numbers(value: Any) -> Any:
    """Numbers, nulls and their names; without texts, and without what measures time."""
    if isinstance(value, Mapping):
        kept = {key: _numbers(inner) for key, inner in value.items() if "second" not in key}
        return {key: inner for key, inner in kept.items() if inner is not _TEXT}
    if isinstance(value, list):
        return [inner for inner in map(_numbers, value) if inner is not _TEXT]
    return _TEXT if isinstance(value, str) else value


_TEXT = object()


def _differences(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Differences of runs: by run, direction and measure."""
    names = ("difference", "low", "high", "p_randomisation", "p_t", "p", "better")
    return {f"{row['run']} {row['direction']} {row['measure']}": [row[key] for key in names] for row in rows}
