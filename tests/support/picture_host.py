"""A host of pictures on this machine, with the moods that hosts have."""

from __future__ import annotations

import io
import struct
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from PIL import Image


def picture_bytes(form: str = "PNG", colour: int = 0, side: int = 8) -> bytes:
    """A square picture of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (colour % 256, 0, 0)).save(buffer, form)
    return buffer.getvalue()


def bomb_bytes() -> bytes:
    """A small PNG that says it has 60,000 × 60,000 pixels."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


class PictureHost:
    """What it was asked, and how it answers.

    Attributes:
        address: ``http://127.0.0.1:PORT``.
        asked: paths in the order in which they were asked for.
        at: times of those requests.
        agents: the User-Agents that were sent.
        together: the most requests that were answered at the same time.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self.asked: list[str] = []
        self.at: list[float] = []
        self.agents: set[str] = set()
        self.together = 0
        self.busy_for = 0
        self._now = 0
        self._lock = threading.Lock()

    @property
    def counts(self) -> Counter[str]:
        """How often each path was asked for."""
        return Counter(self.asked)

    @contextmanager
    def counted(self, path: str, agent: str) -> Iterator[int]:
        """One request; gives how many there were of its path."""
        with self._lock:
            self.asked.append(path)
            self.at.append(time.monotonic())
            self.agents.add(agent)
            self._now += 1
            self.together = max(self.together, self._now)
            number = self.asked.count(path)
        try:
            yield number
        finally:
            with self._lock:
                self._now -= 1


class _Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: PictureHost

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        with self.host.counted(path, self.headers["User-Agent"]) as number:
            try:
                self._answer(path, number)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def _give(self, content: bytes, kind: str = "image/png", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _answer(self, path: str, number: int) -> None:
        host = self.host
        match path.strip("/").split("/"):
            case ["ok", name]:
                form = {"jpg": "JPEG", "png": "PNG", "webp": "WEBP", "gif": "GIF"}[name.rsplit(".", 1)[1]]
                self._give(picture_bytes(form, zlib.crc32(name.encode())), f"image/{form.lower()}")
            case ["busy", _]:
                if number <= host.busy_for:
                    self._give(b"", status=429)
                else:
                    self._give(picture_bytes())
            case ["broken", _]:
                self._give(b"", status=500)
            case ["gone", _]:
                self._give(b"gone", "text/html", status=404)
            case ["html", _]:
                self._give(b"<html>sorry</html>", "text/html")
            case ["loop", count]:
                self._give(b"", status=302, Location=f"/loop/{int(count) + 1}")
            case ["moved", name]:
                self._give(b"", status=301, Location=f"/ok/{name}")
            case ["away", _]:
                self._give(b"", status=302, Location="file:///etc/passwd")
            case ["cut", _]:
                content = picture_bytes(side=64)
                self._give(content[: len(content) // 2], Content_Length=str(len(content)))
                self.close_connection = True
            case ["once-cut", _]:
                content = picture_bytes(side=64)
                whole = number > 1
                self._give(content if whole else content[:50], Content_Length=str(len(content)))
                self.close_connection = not whole
            case ["bomb", _]:
                self._give(bomb_bytes())
            case ["endless", _]:
                self.send_response(200)
                self.send_header("Content-Type", "image/png")
                self.send_header("Connection", "close")
                self.end_headers()
                while True:
                    self.wfile.write(b"\x89PNG" * 4096)
            case ["large", _]:
                self._give(b"", Content_Length="999999999")
                self.close_connection = True
            case ["dot", _]:
                self._give(picture_bytes("GIF", side=1), "image/gif")
            case ["packed", _]:
                self._give(zlib.compress(picture_bytes()), Content_Encoding="deflate")
            case ["slow", _]:
                time.sleep(0.6)
                self._give(picture_bytes())
            case _:
                self._give(b"", status=404)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that hang up, which is what some moods are about."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextmanager
def picture_host() -> Iterator[PictureHost]:
    """A host that runs while the block does."""
    handler = type("Answers", (_Answers,), {})
    server = _Server(("127.0.0.1", 0), handler)
    host = PictureHost(f"http://127.0.0.1:{server.server_port}")
    handler.host = host  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
