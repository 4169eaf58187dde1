"""Qdrant's own engine (the package qdrant-edge-py, one shard without a server) behind the calls of its client.

Only what the index engine calls; request models of the client are turned into those of the engine.
"""

from __future__ import annotations

import tempfile
import uuid
from types import SimpleNamespace as Answer
from typing import Any

import qdrant_edge as edge
from qdrant_client import models as m

_SCHEMAS = {"keyword": "Keyword", "integer": "Integer", "float": "Float", "bool": "Bool"}


def _ids(numbers: Any) -> list[uuid.UUID]:
    return [uuid.UUID(str(number)) for number in numbers]


def _given(vector: Any) -> Any:
    return edge.SparseVector(vector.indices, vector.values) if isinstance(vector, m.SparseVector) else vector


def _found(vectors: Any) -> Any:
    def one(vector: Any) -> Any:
        if isinstance(vector, edge.SparseVector):
            return m.SparseVector(indices=list(vector.indices), values=list(vector.values))
        return list(vector)

    return {name: one(vector) for name, vector in (vectors or {}).items()}


def _condition(given: Any) -> Any:
    if isinstance(given, m.Filter):
        return _filter(given)
    if isinstance(given, m.IsEmptyCondition):
        return edge.IsEmptyCondition(given.is_empty.key)
    if isinstance(given.match, m.MatchAny):
        return edge.FieldCondition(key=given.key, match=edge.MatchAny(given.match.any))
    if given.match is not None:
        return edge.FieldCondition(key=given.key, match=edge.MatchValue(given.match.value))
    bounds = given.range.model_dump(include={"gt", "gte", "lt", "lte"})
    return edge.FieldCondition(key=given.key, range=edge.RangeFloat(**bounds))


def _filter(given: m.Filter | None) -> Any:
    if given is None:
        return None
    parts = {name: getattr(given, name) for name in ("must", "should", "must_not")}
    return edge.Filter(**{name: part and [_condition(one) for one in part] for name, part in parts.items()})


class EdgeClient:
    """Collections by their names; every method is called as the client's."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[Any, Any, Any]] = {}

    def collection_exists(self, collection_name: str) -> bool:
        return collection_name in self.made

    def create_collection(
        self, collection_name: str, vectors_config: Any, sparse_vectors_config: Any, **_: Any
    ):
        dense = {
            name: edge.EdgeVectorParams(size=one.size, distance=edge.Distance.Dot)
            for name, one in vectors_config.items()
        }
        sparse = {name: edge.EdgeSparseVectorParams() for name in sparse_vectors_config}
        config = edge.EdgeConfig(vectors=dense, sparse_vectors=sparse)
        shard = edge.EdgeShard.create(tempfile.mkdtemp(), config)
        self.made[collection_name] = shard, vectors_config, sparse_vectors_config

    def get_collection(self, collection_name: str) -> Any:
        _, dense, sparse = self.made[collection_name]
        params = Answer(vectors=dense, sparse_vectors=sparse)
        return Answer(status="green", config=Answer(params=params))

    def _update(self, name: str, operation: Any) -> None:
        self.made[name][0].update(operation)

    def create_payload_index(
        self, collection_name: str, field_name: str, field_schema: str, wait: bool
    ) -> None:
        kind = getattr(edge.PayloadSchemaType, _SCHEMAS[field_schema])
        self._update(collection_name, edge.UpdateOperation.create_field_index(field_name, kind))

    def upsert(self, collection_name: str, points: Any, wait: bool) -> None:
        given = [
            edge.Point(uuid.UUID(one.id), {name: _given(v) for name, v in one.vector.items()}, one.payload)
            for one in points
        ]
        self._update(collection_name, edge.UpdateOperation.upsert_points(given))

    def delete(self, collection_name: str, points_selector: Any, wait: bool) -> None:
        self._update(collection_name, edge.UpdateOperation.delete_points(_ids(points_selector.points)))

    def batch_update_points(self, collection_name: str, update_operations: Any, wait: bool) -> None:
        for one in update_operations:
            if isinstance(one, m.DeletePayloadOperation):
                given, make = one.delete_payload, edge.UpdateOperation.delete_payload
                self._update(collection_name, make(_ids(given.points), given.keys))
            else:
                given, make = one.delete_vectors, edge.UpdateOperation.delete_vectors
                self._update(collection_name, make(_ids(given.points), given.vector))

    def retrieve(self, collection_name: str, ids: Any, with_payload: Any = True, with_vectors: Any = False):
        kept = edge.PayloadSelector.Include(with_payload) if isinstance(with_payload, list) else with_payload
        found = self.made[collection_name][0].retrieve(_ids(ids), with_payload=kept, with_vector=with_vectors)
        return [Answer(id=str(one.id), payload=one.payload, vector=_found(one.vector)) for one in found]

    def count(self, collection_name: str, count_filter: Any = None, exact: bool = True) -> Any:
        request = edge.CountRequest(exact=exact, filter=_filter(count_filter))
        return Answer(count=self.made[collection_name][0].count(request))

    def scroll(
        self, collection_name: str, scroll_filter: Any = None, limit: int = 10, offset: Any = None, **how
    ):
        request = edge.ScrollRequest(
            offset=offset,
            limit=limit,
            filter=_filter(scroll_filter),
            with_payload=True,
            with_vector=how.get("with_vectors", False),
        )
        points, place = self.made[collection_name][0].scroll(request)
        return [
            Answer(id=str(one.id), payload=one.payload, vector=_found(one.vector)) for one in points
        ], place

    def query_batch_points(self, collection_name: str, requests: Any) -> Any:
        answers = []
        for one in requests:
            how = edge.SearchParams(hnsw_ef=one.params.hnsw_ef, exact=bool(one.params.exact))
            query = edge.Query.Nearest(_given(one.query), one.using)
            request = edge.QueryRequest(
                limit=one.limit, query=query, filter=_filter(one.filter), with_payload=True, params=how
            )
            found = self.made[collection_name][0].query(request)
            answers.append(
                Answer(points=[Answer(id=str(p.id), score=p.score, payload=p.payload) for p in found])
            )
        return answers
