"""Queries to a Qdrant collection, many in one request, and its answers as hits."""

from __future__ import annotations

from typing import Any

import numpy as np

from diptych.index.hits import Hits
from diptych.index.qdrant_connection import Connection, models
from diptych.index.qdrant_forms import Form
from diptych.index.qdrant_points import OWN, read_payload

__all__ = ["find"]


def find(
    connection: Connection,
    form: Form,
    queries: Any,
    k: int,
    *,
    parameters: Any,
    condition: Any,
    batch: int,
) -> Hits:
    """The ``k`` best items for each query, equal scores by insertion.

    Args:
        connection: where to.
        form: how the vectors look.
        queries: (q, width) checked vectors; one without terms finds nothing and is not sent.
        k: how many at most.
        parameters: the server's search parameters; the stand-in in this process is exact and takes none.
        condition: a filter, or None.
        batch: how many queries in one request.

    Raises:
        StorageError: the server failed, or holds points that this package did not write.
    """
    request = models().QueryRequest
    said = {
        "using": form.using,
        "limit": k,
        "with_payload": [f"{OWN}.id", f"{OWN}.order"],
        "params": parameters if connection.remote else None,
        "filter": condition,
    }
    vectors = [vector for vector, _ in form.vectors(queries)]
    if form.using is not None:
        vectors = [vector.get(form.using) for vector in vectors]
    wanted = [(row, vector) for row, vector in enumerate(vectors) if vector is not None]
    answers: list[list[tuple[float, int, str]]] = [[] for _ in range(queries.shape[0])]
    for start in range(0, len(wanted), batch):
        part = wanted[start : start + batch]
        requests = [request(query=query, **said) for _, query in part]
        found = connection.ask("query_batch_points", requests=requests)
        for (row, _), answer in zip(part, found, strict=True):
            answers[row] = sorted(_hit(point, connection.place) for point in answer.points)
    scores = np.full((len(answers), max(map(len, answers))), -np.inf, dtype=np.float32)
    for row, answer in enumerate(answers):
        scores[row, : len(answer)] = [-lower for lower, _, _ in answer]
    return Hits([[name for _, _, name in answer] for answer in answers], scores, k)


def _hit(point: Any, place: str) -> tuple[float, int, str]:
    """What hits are sorted by: best score first, equal ones by insertion."""
    own = read_payload(point.payload, place)
    return -float(point.score), int(own["order"]), str(own["id"])
