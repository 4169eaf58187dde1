"""Send a service what nobody would: requests made of its OpenAPI document, mutated images, two writers.

    python -m fuzz.service INDEX [--cases 10000] [--images 2000] [--seed 0]

A copy of the index is served as users serve it. Requests come from schemathesis (pip install schemathesis): no answer
may be a 5xx, and each must be one that the document names. Mutated images may be read or refused; memory stays bounded.
"""

from __future__ import annotations

import argparse
import base64
import io
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
from PIL import Image

from benchmarks.service import served

_MOST_GROWTH = 200  # MB while images are decoded


def main() -> int:
    """Run both campaigns; exit 1 where an answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("index", type=Path)
    parser.add_argument("--cases", type=int, default=14_000, help="of which about three quarters can be sent")
    parser.add_argument("--images", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    flags = ("--writable", "--max-body", "4", "--max-pixels", "4")
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        copy = shutil.copytree(given.index, Path(folder) / "index")
        with (
            served(copy, *flags) as (process, port),
            httpx.Client(base_url=f"http://localhost:{port}") as client,
        ):
            wrong = images(client, process.pid, given.images, given.seed)
            wrong += requests(client, given.cases, given.seed) if given.cases else []
            if process.poll() is not None:
                wrong.append(f"the service ended: {process.returncode}")
    print(*wrong[:20], sep="\n")
    print(f"{len(wrong)} wrong answers")
    return bool(wrong)


def images(client: httpx.Client, pid: int, count: int, seed: int) -> list[str]:
    """Search with mutated images; return what was wrong."""
    chance, wrong, statuses = random.Random(seed), [], Counter[int]()
    originals = []
    for kind in ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF"):
        buffer = io.BytesIO()
        Image.effect_noise((64, 48), 80).convert("RGB").save(buffer, kind)
        originals.append(buffer.getvalue())
    client.post(
        "/v1/search/image", files={"image": ("x", originals[0])}, timeout=60
    )  # what only images need is loaded
    before = _peak(pid)
    for number in range(count):
        content = bytearray(chance.choice(originals))
        for _ in range(chance.randint(1, 12)):
            place = chance.randrange(len(content) if chance.random() < 0.5 else min(64, len(content)))
            what = chance.random()
            if what < 0.6:
                content[place] = chance.randrange(256)
            elif what < 0.8:
                content[place : place + 4] = chance.choice(
                    [b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x7f\xff\xff\xff"]
                )
            else:
                del content[place : place + chance.randrange(1, 400)]
            content = content or bytearray(b"\0")
        if number % 2:
            body = {"image": base64.b64encode(bytes(content)).decode(), "k": 1}
            answer = client.post("/v1/search", json=body)
        else:
            answer = client.post(
                "/v1/search/image", files={"image": ("x", bytes(content))}, data={"request": '{"k": 1}'}
            )
        statuses[answer.status_code] += 1
        if answer.status_code not in (200, 422, 413):
            wrong.append(f"image {number} of seed {seed}: {answer.status_code} {answer.text[:200]}")
    grown = _peak(pid) - before
    print(f"{count:,} mutated images: {dict(statuses)}, peak memory {grown:+.0f} MB")
    return wrong + ([f"memory grew by {grown:.0f} MB"] if grown > _MOST_GROWTH else [])


def requests(client: httpx.Client, count: int, seed: int) -> list[str]:
    """Send requests that schemathesis makes of the document; return what was wrong."""
    import schemathesis
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    schema = schemathesis.openapi.from_dict(client.get("/openapi.json").json())
    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    operations = [one.ok() for one in schema.get_all_operations()]
    wrong, statuses = [], Counter[int]()
    for operation in operations:
        quick = settings(
            max_examples=-(-count // len(operations)),
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.generate],
        )

        def send(case: Any) -> None:
            try:
                answer = case.call(base_url=str(client.base_url))
            except (UnicodeError, ValueError):  # what no client can send
                return
            statuses[answer.status_code] += 1
            try:
                case.validate_response(answer, checks=checks)
            except BaseExceptionGroup as failures:
                wrong.extend(f"{case.method} {case.path}: {one!r}"[:400] for one in failures.exceptions)
            except Exception as failure:
                wrong.append(f"{case.method} {case.path}: {failure!r}"[:400])

        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            try:
                strategy = operation.as_strategy(generation_mode=mode)
            except Exception as error:
                print(f"{operation.label}: no {mode} cases: {error}")
                continue
            half = settings(quick, max_examples=max(1, quick.max_examples // 2))
            try:
                seeded(seed)(half(given(strategy)(send)))()
            except Exception as error:
                print(f"{operation.label}: {error!r}"[:300])
    print(
        f"{sum(statuses.values()):,} requests to {len(operations)} operations: {dict(sorted(statuses.items()))}"
    )
    return wrong


def _peak(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
