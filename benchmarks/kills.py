"""Kill every writing verb at a random moment, run it again, and compare everything on disk with an undisturbed run.

    python -m benchmarks.kills --count 100 [--seed 0] [--verb train --verb embed]

A trial copies the folder as it was before the verb, kills the verb with SIGKILL (its workers end by themselves), runs
the same command again to its end and compares every file with those of an undisturbed run. What may differ is named
in ``_TIMES`` and ``_OPAQUE``: measured seconds, and archives that carry the time of their making.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TINY = "--set model.width=16 --set stages.0.epochs=2 --set batches.size=16 --accelerator cpu"
VERBS: dict[str, str] = {
    "scenes": "data scenes --out scenes --train 64 --val 24 --test 24 --size 32",
    "train": f"train scenes --data scenes --out run --set data.scenes= {TINY}",
    "embed": "embed run --out embedded",
    "evaluate": "evaluate run --samples 50",
    "index": "index embedded --engine hnsw",
    "stress": "analyse stress run --perturb character-swap --perturb blur --flips 100 --samples 50",
    "cocos": "analyse cocos run",
    "audit": "analyse audit run",
    "sparsify": "sparse train run --set training.epochs=1 --set training.batch_size=64 --accelerator cpu",
    "report": "report run",
    "granularity": "analyse granularity scenes --out finer --samples 50",
    "shop log": "data shop-log --visitors 2000 --out shop",
    "ingest": "intent ingest shop --out log",
    "describe": "intent describe log --out description",
    "features": "intent features log --out features",
    "intent": "intent evaluate features --out grid --model logistic-regression --folds 2 --step 0 --samples 50",
    "scorer": "intent train features --out scorer --model logistic-regression --step 0",
    "products": "data products --n 120 --size 32 --out catalogue",
    "categories": "categories train catalogue --out ranker --set epochs=1",
    "pick": "categories pick ranker --out pictures",
    "fill": "categories fill ranker --out filled.jsonl",
}
"""The verbs in the order in which one needs what another wrote."""

_TIMES = re.compile(r"seconds|cpu|time|created|begun|finished|date|took|cost", re.IGNORECASE)
_OPAQUE = (".skops", ".html", ".png", ".svg", ".log")


def main() -> int:
    """Run the campaign; exit 1 where anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verb", action="append", choices=list(VERBS))
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        stages = _undisturbed(Path(folder))
        verbs = [verb for verb in options.verb or VERBS if verb in stages]
        fallen = 0
        for number in range(options.count):
            verb = verbs[number % len(verbs)]
            problem = _trial(Path(folder), verb, stages, chance)
            fallen += bool(problem)
            print(f"{number + 1:4} {verb:12} {problem or 'whole'}", flush=True)
    print(f"{options.count} kills over {len(verbs)} verbs: {fallen} fell")
    return bool(fallen)


def _undisturbed(folder: Path) -> dict[str, float]:
    """Run every verb once, keep the folder before and after each; return how long each took."""
    seconds: dict[str, float] = {}
    place = folder / "place"
    place.mkdir()
    for number, (verb, words) in enumerate(VERBS.items()):
        shutil.copytree(place, folder / f"before-{verb}", symlinks=True)
        begun = time.monotonic()
        done = subprocess.run(
            _command(words), cwd=place, env=_environment(folder), capture_output=True, text=True
        )
        if done.returncode:
            sys.exit(f"{verb} ends with {done.returncode}: {done.stderr.strip()[-500:]}")
        seconds[verb] = time.monotonic() - begun
        shutil.copytree(place, folder / f"after-{verb}", symlinks=True)
        print(f"{number + 1}/{len(VERBS)} {verb}: {seconds[verb]:.1f} s undisturbed", flush=True)
    return seconds


def _trial(folder: Path, verb: str, seconds: dict[str, float], chance: random.Random) -> str:
    """Kill one verb and resume it; return what is wrong afterwards, nothing where all is whole."""
    place = folder / "place"  # files say where they were made
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / f"before-{verb}", place, symlinks=True)
    command, environment = _command(VERBS[verb]), _environment(folder)
    process = subprocess.Popen(
        command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    time.sleep(chance.uniform(0.2, 1.05) * seconds[verb])
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.6)  # for workers to see that they are alone
    again = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True)
    if again.returncode:
        again = subprocess.run(
            _command("train --resume run") if verb == "train" else command,
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
        )
    if again.returncode:
        return f"ends with {again.returncode}: {again.stderr.strip()[-300:]}"
    found, expected = _contents(place), _contents(folder / f"after-{verb}")
    if missing := sorted(expected.keys() - found.keys()):
        return f"lacks {', '.join(missing[:5])}"
    if left := sorted(found.keys() - expected.keys()):
        return f"leaves {', '.join(left[:5])}"
    other = sorted(name for name in expected if found[name] != expected[name])
    return f"differs in {', '.join(other[:5])}" if other else ""


def _command(words: str) -> list[str]:
    return [sys.executable, "-m", "diptych", *words.split()]


def _environment(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "DIPTYCH_CACHE": str(folder / "cache"),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def _contents(folder: Path) -> dict[str, Any]:
    """Every file's content by its path, without what depends on time."""
    return {
        str(path.relative_to(folder)): _content(path) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def _content(path: Path) -> Any:
    if path.suffix in _OPAQUE:
        return path.suffix
    if path.suffix in (".json", ".jsonl"):
        lines = [path.read_text()] if path.suffix == ".json" else path.read_text().splitlines()
        return [_timeless(json.loads(line)) for line in lines]
    return path.read_bytes()


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {key: _timeless(one) for key, one in value.items() if not _TIMES.search(key)}
        if "artifact" in kept and kept.get("content") != value.get("content"):
            del kept["fingerprint"]  # which is of the times, too
        return kept
    return [_timeless(one) for one in value] if isinstance(value, list) else value


if __name__ == "__main__":
    sys.exit(main())
