"""``python -m benchmarks.qdrant_upload 1000000 512``: upload embeddings to a server that only keeps content marks.

It measures what this package does and not what a server does: rows per second, the process's memory, and that a
build which is killed (kill -9) in the middle sends nothing again that is there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.memory import peak_mb


class Sink:
    """Answers what a build asks, and keeps of each point no more than its content mark."""

    def __init__(self) -> None:
        self.marks: dict[str, Any] = {}
        self.sent = 0
        self.exists = False
        sink = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                content = json.dumps(
                    {"result": sink.result(self.command, self.path.split("?")[0], body)}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = answer

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.handle_error = lambda *_: None  # of a client that is killed
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def result(self, method: str, path: str, body: bytes) -> Any:
        done = {"operation_id": 0, "status": "completed"}
        what = path.split("/", 3)[3] if path.count("/") > 2 else ""
        if what == "exists":
            return {"exists": self.exists}
        if what == "" and method == "PUT":
            self.exists = True
            return True
        if what == "":
            graph = {"m": 16, "ef_construct": 100, "full_scan_threshold": 10}
            dense = {"dense": {"size": int(sys.argv[2]), "distance": "Dot"}}
            wal, optimizer = {"wal_capacity_mb": 1, "wal_segments_ahead": 1}, {"deleted_threshold": 0.2}
            optimizer |= {"vacuum_min_vector_number": 1, "default_segment_number": 1, "flush_interval_sec": 1}
            config = {"params": {"vectors": dense, "sparse_vectors": {"terms": {}}}, "hnsw_config": graph}
            config |= {"optimizer_config": optimizer, "wal_config": wal}
            known = {"status": "green", "optimizer_status": "ok", "segments_count": 1, "payload_schema": {}}
            return {**known, "config": config}
        if what == "points" and method == "PUT":
            for point in json.loads(body)["points"]:
                own = point["payload"]["diptych"]
                self.marks[point["id"]] = {"diptych": own}
                self.sent += "dense" in own
            return done
        if what == "points":
            ids = json.loads(body)["ids"]
            return [{"id": name, "payload": self.marks[name]} for name in ids if name in self.marks]
        if what == "points/count":
            return {"count": len(self.marks) - 1}
        if what == "points/query/batch":
            return [{"points": []} for _ in json.loads(body)["searches"]]
        return done


def build(folder: Path, url: str, batch: int) -> None:
    """Upload the embeddings of a folder as ``diptych index`` does."""
    from diptych.encoders.embeddings import Embeddings
    from diptych.index import build_index

    embeddings = Embeddings.open(folder)
    before = peak_mb(forget=True)
    began, began_cpu = time.perf_counter(), time.process_time()
    build_index(embeddings, "qdrant", sample=embeddings.rows[:1], url=url, batch=batch)
    seconds, cpu = time.perf_counter() - began, time.process_time() - began_cpu
    print(
        f"{len(embeddings):,} rows in {seconds:.0f} s ({len(embeddings) / seconds:,.0f} rows/s, {cpu:.0f} s of "
        f"processor time); peak {peak_mb():,.0f} MB, before the build {before:,.0f} MB"
    )


def main(items: int, width: int, batch: int = 256) -> None:
    from diptych.core.files import create_array
    from diptych.encoders.embeddings import Embeddings

    sink = Sink()
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "embeddings"
        folder.mkdir()
        rows = create_array(folder / "rows.npy", "float32", (items, width))
        for start in range(0, items, 10_000):
            draws = np.random.default_rng(start).standard_normal((min(10_000, items - start), width))
            rows[start : start + 10_000] = draws
        Embeddings(
            [f"image-{row}" for row in range(items)], rows, "bench", "bench", "image", {}
        ).write_header(folder)
        words = [sys.executable, "-m", "benchmarks.qdrant_upload", str(items), str(width), str(batch)]
        where = {**os.environ, "SINK": sink.url, "EMBEDDINGS": str(folder)}
        killed = subprocess.Popen(words, env=where)
        while sink.sent < items // 3:
            time.sleep(0.05)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        time.sleep(1)  # what was on its way
        there = sink.sent
        subprocess.run(words, env=where, check=True)
        again = sink.sent - items
        print(f"killed after {there:,} rows and resumed: {again:,} rows were sent twice (batches of {batch})")
        sink.marks.clear()
        sink.exists, sink.sent = False, 0
        subprocess.run(words, env=where, check=True)


if __name__ == "__main__":
    if "SINK" in os.environ:
        build(Path(os.environ["EMBEDDINGS"]), os.environ["SINK"], int(sys.argv[3]))
    else:
        main(*map(int, sys.argv[1:]))
