"""The only file of the pins that knows the package: its command line, its front door, and what its verbs write.

Where the package moves, this file follows; what is pinned stays.
"""

from __future__ import annotations

import contextlib
import io
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

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
    from diptych.evaluation import MEASURES

    return {one.name for one in MEASURES}


def tie_rules() -> tuple[str, ...]:
    """The names of all tie rules."""
    from diptych.evaluation import TIE_RULES

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
    import diptych
    from diptych.evaluation import Bootstrap, Relevance

    if relevance is not None:
        options["relevance"] = Relevance(*relevance, "another model")
    bootstrap = Bootstrap(samples=samples, seed=0) if samples else None
    return diptych.evaluate(images, texts, truth, list(measures), bootstrap=bootstrap, **options)


def evaluated_scores(scores: np.ndarray, truth: Any, measures: Sequence[str], **options: Any) -> Any:
    """The result of evaluating a score matrix (n_images, n_texts)."""
    from diptych.evaluation import evaluate_scores

    return evaluate_scores(scores, truth, list(measures), **options)


def evaluated_sparse(
    images: csr_array, texts: csr_array, truth: Any, measures: Sequence[str], **options: Any
) -> Any:
    """The result of evaluating sparse rows."""
    from diptych.evaluation import evaluate_sparse

    return evaluate_sparse(images, texts, truth, list(measures), **options)


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
    from diptych.evaluation import Candidates, Reranked, evaluate_reranked

    reranked = Reranked(Candidates(*i2t), Candidates(*t2i))
    return evaluate_reranked(reranked, truth, list(measures), images=images, texts=texts, **options)


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
    found = sorted(folder.rglob("evaluation.json"))
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} evaluations in {folder}")
    scores = json.loads(found[0].read_text())["scores"]
    return {
        name if direction == "both" else f"{direction} {name}": [
            score[key] for key in ("value", "low", "high", "chance")
        ]
        for direction, given in scores.items()
        for name, score in given.items()
    }


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
    from diptych.encoders.sparse_embeddings import SparseEmbeddings
    from diptych.index import build_index

    ids = [f"item-{row}" for row in range(rows.shape[0])]
    if isinstance(rows, np.ndarray):
        from diptych import Embeddings

        embeddings: Any = Embeddings(ids, rows, "encoder", "data", "image", {})
    else:
        terms = [f"term-{column}" for column in range(rows.shape[1])]
        embeddings = SparseEmbeddings(ids, rows, terms, "encoder", "data", "image", {})
    hits = build_index(embeddings, engine, sample=queries, **options).search(queries, k, **search)
    return [list(one) for one in hits.ids], np.asarray(hits.scores)


# Training


@contextlib.contextmanager
def interrupted_at(step: int) -> Iterator[None]:
    """Send this process an interrupt after an optimizer's ``step``-th step."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    done = 0

    def count(*_: Any) -> None:
        nonlocal done
        done += 1
        if done == step:
            signal.raise_signal(signal.SIGINT)

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


def encoded(model: Path, data: Path, split: str = "test") -> tuple[np.ndarray, np.ndarray]:
    """Image and caption embeddings of a split by a run's best encoder."""
    from diptych import DualEncoder, read_collection

    encoder, collection = DualEncoder.load(model / "best"), read_collection(data).split(split)
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
