"""TREC run and qrels files, for every tool that reads them.

A run line is ``query Q0 document rank score tag``, a qrels line ``query 0 document relevance``. Tools order a run
by its scores, which trec_eval and pytrec_eval keep in float32, and put the tied in descending order of document
id. The scores written here are therefore float32 numbers near the exact scores that differ, and are equal,
wherever these are: measures of other tools agree with ours where nothing ties.

Our any-of-k R@k is their Success@k, MRR is RR, mAP@k with k at least the positives of every query is AP@k,
R-precision is Rprec.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from diptych.core.errors import DataError, StorageError
from diptych.core.files import atomic_path
from diptych.core.reading import read_lines
from diptych.metrics.candidates import Reranked
from diptych.metrics.ground_truth import DIRECTIONS, Direction, GroundTruth, Positives
from diptych.metrics.sources import ScoreSource
from diptych.metrics.topk import best_of


def _check_ids(what: str, ids: Sequence[str], size: int) -> None:
    if len(ids) != size:
        raise DataError(f"{len(ids)} {what} ids for {size} {what}s")
    for row, name in enumerate(ids):
        if not name or len(name.split()) != 1 or name.strip() != name:
            raise DataError(
                f"{what} id {name!r} (row {row}) is empty or holds white space, which TREC files cannot hold",
                "replace the white space, for example by '_'",
            )
    if len(set(ids)) != len(ids):
        raise DataError(f"{what} ids are not unique", "make them unique")


def _written_scores(scores: np.ndarray) -> np.ndarray:
    """Float32 scores, not rising along each row, that tie exactly where ``scores`` tie."""
    written = scores.astype(np.float32)
    for column in range(1, scores.shape[1]):
        before = written[:, column - 1]
        below = np.minimum(written[:, column], np.nextafter(before, np.float32(-np.inf)))
        written[:, column] = np.where(scores[:, column] == scores[:, column - 1], before, below)
    return written


def write_run(
    path: Path | str,
    query_ids: Sequence[str],
    gallery_ids: Sequence[str],
    rows: np.ndarray,
    scores: np.ndarray,
) -> None:
    """Write a ranking, best first, as :func:`~diptych.metrics.topk.top_k` gives it, as a TREC run."""
    _check_ids("query", query_ids, len(rows))
    _check_ids("document", gallery_ids, len(gallery_ids))
    written = _written_scores(scores)
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for name, documents, values in zip(query_ids, rows.tolist(), written, strict=True):
            file.writelines(
                f"{name} Q0 {gallery_ids[document]} {rank} {value:.9g} diptych\n"
                for rank, (document, value) in enumerate(zip(documents, values, strict=True), start=1)
            )


def write_qrels(
    path: Path | str, query_ids: Sequence[str], gallery_ids: Sequence[str], positives: Positives
) -> None:
    """Write one direction as TREC qrels; a query without a positive gets a line of relevance 0, and so stays."""
    _check_ids("query", query_ids, positives.n_queries)
    _check_ids("document", gallery_ids, positives.gallery)
    with atomic_path(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        for query, name in enumerate(query_ids):
            relevant = positives.of(query).tolist()
            file.writelines(f"{name} 0 {gallery_ids[row]} 1\n" for row in relevant)
            if not relevant:
                file.write(f"{name} 0 {gallery_ids[0]} 0\n")


def write_trec(
    folder: Path | str,
    source: ScoreSource | Reranked,
    ground_truth: GroundTruth,
    image_ids: Sequence[str],
    text_ids: Sequence[str],
    *,
    k: int = 100,
) -> dict[str, Path]:
    """Write the runs, of ``k`` items per query, and the qrels of the evaluated queries in both directions."""
    paths: dict[str, Path] = {}
    _check_ids("image", image_ids, ground_truth.n_images)
    _check_ids("text", text_ids, ground_truth.n_texts)
    for name in DIRECTIONS:
        query_ids, gallery_ids = (image_ids, text_ids) if name == "i2t" else (text_ids, image_ids)
        evaluated, positives = ground_truth.queries(name), ground_truth.positives(name)
        rows, scores = _first_items(source, name, evaluated, positives, k)
        names = [query_ids[row] for row in evaluated.tolist()]
        paths |= {f"{name}.{kind}": Path(folder) / f"{name}.{kind}" for kind in ("run", "qrels")}
        write_run(paths[f"{name}.run"], names, gallery_ids, rows, scores)
        write_qrels(paths[f"{name}.qrels"], names, gallery_ids, positives.taken(evaluated))
    return paths


def _first_items(
    source: ScoreSource | Reranked, name: Direction, queries: np.ndarray, positives: Positives, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return (q, k) gallery rows and scores of some queries, best first; of candidates, ties as they stand."""
    if isinstance(source, Reranked):
        final = source.final(name)[queries].astype(np.float64)
        order = np.argsort(-final, axis=1, kind="stable")[:, :k]
        items = source.candidates(name).items[queries]
        return np.take_along_axis(items, order, axis=1), np.take_along_axis(final, order, axis=1)
    if len(queries) < positives.n_queries:
        every = slice(0, positives.gallery)
        source = source.part(*((queries, every) if name == "i2t" else (every, queries)))
    return best_of(source, name, k)


def _fields(path: Path | str, count: int, number: int) -> Iterator[tuple[list[str], float]]:
    for line, text in read_lines(path, fix="write it again"):
        fields = text.split()
        if not fields:
            continue
        if len(fields) != count:
            raise StorageError(f"{path}, line {line}: {count} fields expected, got {len(fields)}")
        try:
            yield fields, float(fields[number])
        except ValueError:
            raise StorageError(f"{path}, line {line}: {fields[number]!r} is not a number") from None


def read_run(path: Path | str) -> dict[str, list[tuple[str, float]]]:
    """Read a run: per query its documents and scores, best first, the tied by descending id."""
    run: dict[str, list[tuple[str, float]]] = {}
    for (query, _, document, *_), score in _fields(path, 6, 4):
        run.setdefault(query, []).append((document, score))
    for documents in run.values():
        documents.sort(key=lambda item: item[0], reverse=True)
        documents.sort(key=lambda item: item[1], reverse=True)
    return run


def read_qrels(path: Path | str) -> dict[str, dict[str, int]]:
    qrels: dict[str, dict[str, int]] = {}
    for (query, _, document, _), relevance in _fields(path, 4, 3):
        qrels.setdefault(query, {})[document] = int(relevance)
    return qrels
