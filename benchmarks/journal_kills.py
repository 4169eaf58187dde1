"""Kill two processes that add to one index in the middle of their adds, and see what is left of what they acknowledged.

    python -m benchmarks.journal_kills --count 20 [--adds 1000] [--engine exact] [--seed 0]

Each add is of two items, so that half of one would be seen, and every hundredth change of a writer is followed by a
compaction. After each trial everything that was acknowledged must be found and no item without its twin.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from diptych.encoders.embeddings import Embeddings, SparseEmbeddings, canonical_rows
from diptych.index import ENGINES, build_index, open_index

WIDTH = 8
WRITER = f"""
import sys, numpy as np
from diptych.index import StoredIndex
folder, name, adds, every = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
stored = StoredIndex(folder)
for number in range(adds):
    ids = [f"{{name}}-{{number}}", f"{{name}}-{{number}}-twin"]
    stored.add(ids, np.full((2, {WIDTH}), number % 7 + 1, np.float32), records=[{{"writer": name}}] * 2)
    print(ids[0], flush=True)
    if number % every == every - 1:
        stored.compact()
"""


def build(folder: Path, engine: str = "exact") -> Path:
    """Save an index of a hundred items in ``folder``."""
    rows = np.random.default_rng(0).random((100, WIDTH)).astype(np.float32)
    ids = [f"item-{row}" for row in range(len(rows))]
    sparse = ENGINES.get(engine).vectors == "sparse"
    terms = [f"term-{column}" for column in range(WIDTH)]
    source = ("encoder", "data", "image", {"dataset": "random rows"})
    made = (
        SparseEmbeddings(ids, canonical_rows(rows), terms, *source)
        if sparse
        else Embeddings(ids, rows, *source)
    )
    return build_index(made, engine).save(folder)


def trial(folder: Path, name: str, adds: int, every: int, acknowledged: int) -> tuple[int, str]:
    """Kill two writers once they acknowledged so many adds together; return their number and what is wrong after."""
    lines = [folder.parent / f"{name}-{writer}.txt" for writer in "ab"]
    writers = []
    for file in lines:
        command = [sys.executable, "-c", WRITER, str(folder), file.stem, str(adds), str(every)]
        with open(file, "w") as out:
            writers.append(subprocess.Popen(command, stdout=out))

    def told() -> list[str]:
        whole = [line for file in lines for line in file.read_text().splitlines(keepends=True)]
        return [line.strip() for line in whole if line.endswith("\n")]

    while len(told()) < acknowledged and any(writer.poll() is None for writer in writers):
        time.sleep(0.005)
    failed = [writer.returncode for writer in writers if writer.poll() not in (None, 0)]
    for writer in writers:
        writer.send_signal(signal.SIGKILL)
        writer.wait()
    if failed:
        return len(told()), f"a writer ended with {failed[0]} before it was killed"
    index = open_index(folder, verify=True)
    ids, found = set(index.ids), told()
    if lost := [one for one in found if one not in ids]:
        return len(found), f"lost {len(lost)} of {len(found)} acknowledged adds, the first {lost[0]}"
    added = {one for one in ids if not one.startswith("item-")}
    halves = [one for one in added if f"{one}-twin" not in added and not one.endswith("-twin")]
    halves += [one for one in added if one.endswith("-twin") and one.removesuffix("-twin") not in added]
    if halves:
        return len(found), f"{len(halves)} items are there without their twin, the first {halves[0]}"
    bare = [one for one in added if not index.records[one]]
    return len(found), f"{bare[0]} has no metadata" if bare else ""


def main() -> int:
    """Run the trials; exit 1 where anything was lost or half there."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--adds", type=int, default=1000)
    parser.add_argument("--engine", default="exact")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance, fallen = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="journal-kills-") as place:
        for number in range(options.count):
            folder = build(Path(place) / str(number) / "index", options.engine)
            until = chance.randrange(1, 2 * options.adds)
            found, problem = trial(folder, "writer", options.adds, 100, until)
            fallen += bool(problem)
            print(
                f"{number + 1:4} killed after {found:5} acknowledged adds: {problem or 'whole'}", flush=True
            )
    print(f"{options.count} times two writers of {options.adds} adds each, {options.engine}: {fallen} fell")
    return bool(fallen)


if __name__ == "__main__":
    sys.exit(main())
