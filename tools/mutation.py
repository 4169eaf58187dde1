"""Mutation scores: change one expression of the source at a time and count the changes that a test notices.

    PYTHONPATH=src python tools/mutation.py                      # all rooms
    PYTHONPATH=src python tools/mutation.py ranks --sample 20    # one room, fewer mutants

A room's tests run once to record which of them calls which function; a mutant then runs only those that call the
mutated function, quickest file first, up to the first failure. Libraries are imported once; each mutant is a fork
that compiles the mutated module from memory, so no file is written, and processes that a test starts see the source
as it is. Strings, types, decorators and the texts of errors are not mutated. The JSON is written after every
mutant, and the same command resumes. Run it in the project's root.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.machinery
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
import hypothesis.internal.conjecture.engine as hypothesis_engine
import pytest
from mutants import mutants

# Room: mutants, folder of its sources, sources, tests.
SPARSE_TESTS = "index/engines/test_sparse"
RANKS = (
    "ranks tiles topk candidates products sparse_products sources relevance ground_truth bootstrap measures "
    "measuring"
)
INDEX = (
    "contract engine postings slots storage vectors sparse_rows "
    "engines/exact engines/inverted engines/impacts"
)
ROOMS = {
    "objectives": (110, "objectives", "**/*", "objectives/**/test_*"),
    "ranks": (110, "metrics", RANKS, "metrics/test_* evaluation/test_[!jr]*"),
    "index": (100, "index", INDEX, f"index/test_* {SPARSE_TESTS}"),
    "kernels": (30, "index/kernels", "[!_]*", f"index/test_kernels {SPARSE_TESTS}"),
}
# By Numba, whose calls cannot be traced: all tests run, with an empty cache for each mutant.
COMPILED = {"kernels"}


class _Plugin:
    """Record each test's seconds and the functions it calls; run only ``chosen`` tests, in the order of files."""

    def __init__(self, sources=(), chosen=None, files=()):
        self.sources, self.chosen, self.files = sources, chosen, files
        self.calls, self.seconds, self.current = defaultdict(set), defaultdict(float), "imports"

    def trace(self, frame, event, argument):
        if frame.f_code.co_filename in self.sources:
            self.calls[self.current].add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    def pytest_runtest_setup(self, item):
        self.current = item.nodeid.split("::")[0]  # all tests of a file depend on what its fixtures call

    def pytest_runtest_call(self, item):
        self.current = item.nodeid

    def pytest_runtest_logreport(self, report):
        self.seconds[report.nodeid] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        if self.chosen is not None:
            items[:] = [item for item in items if item.nodeid in self.chosen]
            items.sort(key=lambda item: self.files.index(item.nodeid.split("::")[0]))


def _passes(files, plugin):
    options = "-x -q --tb=no -p no:cacheprovider -W ignore::pytest.PytestAssertRewriteWarning"
    return pytest.main([*options.split(), *files], [plugin]) == 0


def _record(sources, files):
    """Run a room's tests on the source as it is."""
    plugin = _Plugin(sources=set(map(str, sources)))
    sys.settrace(plugin.trace)
    threading.settrace(plugin.trace)
    passed = _passes(files, plugin)
    sys.settrace(None)
    files = {name: str(getattr(module, "__file__", "")) for name, module in sys.modules.items()}
    libraries = [name for name, file in files.items() if "site-packages" in file]
    return passed and (dict(plugin.calls), dict(plugin.seconds), libraries)


def _outcome(path, number, plugin, compiled):
    """Run the tests with the numbered mutant of a file in its place; 0: with the file as it is."""
    if compiled:
        importlib.import_module("numba").config.CACHE_DIR = tempfile.gettempdir()
    tree = ast.parse(path.read_text())
    waiting = mutants(tree)  # the change stays in the tree until the next one is asked for
    for _ in range(number):
        next(waiting)
    code = compile(ast.fix_missing_locations(tree), str(path), "exec")
    loader = importlib.machinery.SourceFileLoader
    original = loader.get_code
    loader.get_code = lambda self, name: code if self.path == str(path) else original(self, name)
    return "survived" if _passes(plugin.files, plugin) else "killed"


def _forked(limit, work, *arguments):
    """Return what ``work`` returns in a process of its own, "killed" if it crashes, or "timeout"."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    folder = tempfile.mkdtemp(prefix="mutant")
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for stream in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), stream)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 5))
        resource.setrlimit(resource.RLIMIT_DATA, (1 << 33, 1 << 33))
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        with suppress(BaseException):
            writer.send(work(*arguments))
        os._exit(0)
    writer.close()
    answer = None if reader.poll(5 * limit) else "timeout"
    with suppress(EOFError):
        answer = answer or reader.recv()
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # with what the tests have left running
    status = os.waitpid(pid, 0)[1]
    shutil.rmtree(folder, ignore_errors=True)
    return answer or ("timeout" if os.WTERMSIG(status) == signal.SIGXCPU else "killed")


def _choose(calls, seconds, path, function):
    """Choose the tests that call a function, or all where it runs at import, and their time limit."""
    reached = {by for by, called in calls.items() if (path, function) in called}
    anywhere = function == 0 or "imports" in reached
    each = Counter()
    chosen = {test for test in seconds if anywhere or {test, test.split("::")[0]} & reached}
    for test in chosen:
        each[test.split("::")[0]] += seconds[test]
    return 20 + 3 * each.total(), _Plugin(chosen=chosen, files=sorted(each, key=each.get))


def _files(base, patterns):
    for pattern in patterns.split():
        yield from sorted(base.glob(f"{pattern}.py")) or sys.exit(f"there is no {base}/{pattern}.py")


def _measure(room, size, seed, results, save):
    """Try a sample of a room's mutants and return how many there are to draw from."""
    wanted, folder, names, tests = ROOMS[room]
    base = Path.cwd() / "src/diptych" / folder
    sources = list(_files(base, names))
    recorded = _forked(600, _record, sources, [str(path) for path in _files(Path("tests"), tests)])
    if not isinstance(recorded, tuple):
        sys.exit(f"{room}: the tests fail on the source as it is")
    calls, seconds, libraries = recorded
    for name in libraries:
        with suppress(Exception):
            importlib.import_module(name)
    compiled = room in COMPILED
    limit, plugin = _choose({}, seconds, "", 0)
    if _forked(limit, _outcome, sources[0], 0, plugin, compiled) != "survived":
        sys.exit(f"{room}: the tests fail in a fork on the source as it is")
    trees = ((path, ast.parse(path.read_text())) for path in sources)
    population = [(path, number, one) for path, tree in trees for number, one in enumerate(mutants(tree), 1)]
    for path, number, mutant in random.Random(seed).sample(population, min(size or wanted, len(population))):
        key = f"{folder}/{path.relative_to(base)} {number}"
        if key in results:
            continue
        if not compiled:
            limit, plugin = _choose(calls, seconds, str(path), mutant["function"])
        outcome = _forked(limit, _outcome, path, number, plugin, compiled) if plugin.files else "survived"
        results[key] = {**mutant, "room": room, "outcome": outcome, "test_files": len(plugin.files)}
        save()
        print(f"{outcome:8} {key}, line {mutant['line']}: {mutant['change']}", flush=True)
    return len(population)


def main():
    """Measure the rooms and print their scores."""
    parser = argparse.ArgumentParser()
    parser.add_argument("rooms", nargs="*", help=f"of {', '.join(ROOMS)}; default: all")
    parser.add_argument("--sample", type=int, help="mutants per room")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("build/mutation.json"))
    options = parser.parse_args()
    hypothesis_engine.MAX_SHRINKS = 0  # it is enough that a test fails
    results = json.loads(options.out.read_text()) if options.out.exists() else {}
    options.out.parent.mkdir(parents=True, exist_ok=True)

    def save():
        options.out.write_text(json.dumps(results, indent=1, ensure_ascii=False))

    rows = ["| room | possible | mutants | killed | survived | timeouts | score |", f"|{'---|' * 7}"]
    for room in options.rooms or ROOMS:
        possible = _measure(room, options.sample, options.seed, results, save)
        count = Counter(result["outcome"] for result in results.values() if result["room"] == room)
        outcomes = " | ".join(str(count[name]) for name in ("killed", "survived", "timeout"))
        score = 1 - count["survived"] / count.total()
        rows.append(f"| {room} | {possible} | {count.total()} | {outcomes} | {score:.1%} |")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
