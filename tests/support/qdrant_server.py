"""A Qdrant server for tests: its REST interface over the client's own stand-in, with faults on request.

It answers what the index engine asks and checks nothing that a real server would check beyond that.
"""

from __future__ import annotations

import json
import threading
import warnings
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class QdrantServer:
    """Attributes:
    url: its address.
    key: the key it wants; None: none.
    requests: (method, path, body) of every request it got.
    upserts_left: after so many it answers 500; None: it never does.
    awake: while it is not set, the server answers nothing.
    """

    def __init__(self):
        from qdrant_client import QdrantClient

        self.store: Any = QdrantClient(":memory:")
        self.key: str | None = None
        self.requests: list[tuple[str, str, Any]] = []
        self.upserts_left: int | None = None
        self.awake = threading.Event()
        self.awake.set()
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                server.awake.wait()
                with server._lock:
                    code, said = server.answer(
                        self.command,
                        urlsplit(self.path).path,
                        json.loads(body) if body else None,
                        self.headers.get("api-key"),
                    )
                content = (said if isinstance(said, str) else json.dumps(said)).encode()
                self.send_response(code)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = _answer

            def log_message(self, format, *args):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def stop(self):
        self.awake.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def count(self, method, ending):
        """How many requests of that method had a path that ends so."""
        return sum(how == method and path.endswith(ending) for how, path, _ in self.requests)

    def answer(self, method, path, body, key):
        self.requests.append((method, path, body))
        if self.key is not None and key != self.key:
            return (
                (401, "Must provide an API key") if key is None else (403, {"status": {"error": "Forbidden"}})
            )
        _, _, name, *rest = path.split("/")
        if rest != ["exists"] and (method, rest) != ("PUT", []) and not self.store.collection_exists(name):
            return 404, {"status": {"error": f"Not found: Collection `{name}` doesn't exist!"}}
        if (method, rest) == ("PUT", ["points"]) and self.upserts_left is not None:
            if self.upserts_left == 0:
                return 500, {"status": {"error": "Service internal error: disk is full"}}
            self.upserts_left -= 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the stand-in says what it does not do
            result = self._result(method, "/".join(rest), name, body)
        return 200, {"result": result, "status": "ok", "time": 0.0}

    def _result(self, method, what, name, body):
        from qdrant_client import models as m

        store = self.store
        if what == "exists":
            return {"exists": store.collection_exists(name)}
        if what == "" and method == "PUT":
            made = m.CreateCollection(**body)
            vectors, sparse = made.vectors or {}, made.sparse_vectors
            return store.create_collection(name, vectors_config=vectors, sparse_vectors_config=sparse)
        if what == "" and method == "DELETE":
            return store.delete_collection(name)
        if what == "":
            return _plain(store.get_collection(name))
        if what == "index":
            return {"operation_id": 0, "status": "completed"}
        if what == "points" and method == "PUT":
            return _plain(store.upsert(name, points=m.PointsList(**body).points))
        if what == "points":
            asked = m.PointRequest(**body)
            found = store.retrieve(name, asked.ids, asked.with_payload, asked.with_vector or False)
            return [_plain(point) for point in found]
        if what == "points/batch":
            return [
                _plain(one) for one in store.batch_update_points(name, m.UpdateOperations(**body).operations)
            ]
        if what == "points/delete":
            return _plain(store.delete(name, points_selector=m.PointIdsList(**body)))
        if what == "points/count":
            return _plain(store.count(name, count_filter=m.CountRequest(**body).filter))
        if what == "points/scroll":
            asked = m.ScrollRequest(**body)
            points, place = store.scroll(
                name,
                scroll_filter=asked.filter,
                limit=asked.limit,
                offset=asked.offset,
                with_payload=asked.with_payload,
                with_vectors=asked.with_vector or False,
            )
            return {"points": [_plain(point) for point in points], "next_page_offset": place}
        if what == "points/query/batch":
            asked = m.QueryRequestBatch(**body).searches
            return [_plain(answer) for answer in store.query_batch_points(name, requests=asked)]
        raise AssertionError(f"the engine asked {method} {what}, which this server does not know")


def _plain(model):
    return json.loads(model.model_dump_json())


@contextmanager
def qdrant_server():
    """A server on a free port of this machine."""
    server = QdrantServer()
    try:
        yield server
    finally:
        server.stop()
