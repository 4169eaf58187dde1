from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from diptych.index.kernels import GROUP
from diptych.index.postings import Postings
from diptych.index.sparse_rows import SparseRows


def bags(make_bags, **said):
    return SparseRows.of(make_bags(**said).rows)


def small(monkeypatch, block, span):
    monkeypatch.setattr("diptych.index.postings.BLOCK", block)
    monkeypatch.setattr("diptych.index.postings.SPAN", span)


def test_postings_hold_the_codes(make_bags, monkeypatch):
    small(monkeypatch, 256, 512)
    for share in [0.0, 0.1, 2.0]:
        rows = bags(make_bags, count=700, width=30)
        postings = Postings.build(rows, share)
        dense = rows.csr().toarray().astype(np.float64)
        codes = np.ceil(dense / postings.steps).clip(max=255)
        hubs = np.flatnonzero(postings.place_of >= 0)
        assert set(hubs) == {t for t, n in enumerate((dense > 0).sum(0)) if n >= max(share * 700, 8)}
        # Documents i and 32 + i of each 64 are neighbours.
        laid_out = (
            postings.hubs.reshape(3, len(hubs), 4, 32, 2).transpose(0, 2, 4, 3, 1).reshape(768, len(hubs))
        )
        np.testing.assert_array_equal(laid_out[:700], codes[:, hubs])
        assert not laid_out[700:].any()
        padded = np.zeros((1024, len(hubs)))
        padded[:700] = codes[:, hubs]
        largest = padded.reshape(2, 512 // GROUP, GROUP, len(hubs)).max(axis=2).swapaxes(1, 2)
        np.testing.assert_array_equal(postings.bounds, largest)
        for term in np.flatnonzero(postings.place_of < -1).tolist():
            number = -2 - postings.place_of[term]
            found = {}
            for span in range(2):
                start, end = postings.starts[span] + postings.offsets[span, number : number + 2]
                found |= dict(
                    zip(
                        512 * span + postings.documents[start:end].astype(int),
                        postings.codes[start:end],
                        strict=True,
                    )
                )
            assert found == {d: codes[d, term] for d in np.flatnonzero(dense[:, term])}


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    terms=st.sampled_from([1, 3, 40, 200]),
    share=st.sampled_from([0.0, 0.2, 2.0]),
    whole=st.booleans(),
    spread=st.sampled_from([0.3, 3.0]),
)
def test_sums_are_within_the_stated_bounds_of_scores(make_bags, seed, terms, share, whole, spread):
    """Every document is asked for: sums, units and the bounds of ``prepare``'s docstring."""
    rng = np.random.default_rng(seed)
    width, count = 300, 320
    dense = rng.lognormal(0, spread, (count, width)) * (rng.random((count, width)) < 0.3)
    query = np.zeros((1, width))
    query[0, rng.permutation(width)[:terms]] = rng.lognormal(0, spread, terms)
    rows, asked = (SparseRows.of(make_bags(part).rows) for part in (dense, query))
    with pytest.MonkeyPatch.context() as monkeypatch:
        small(monkeypatch, 256, 256)
        postings = Postings.build(rows, share)
        found = postings.candidates(asked, slice(0, 1), count, None, room=count, whole=whole)
    sums = np.zeros(count)
    sums[found.slots[0, : found.found[0]]] = found.values[0, : found.found[0]]
    scores = (rows.csr().astype(np.float64) @ asked.csr().astype(np.float64).T).toarray()[:, 0]
    unit, own = found.units[0], asked.csr().toarray()[0].astype(np.float64)
    known = np.count_nonzero((own > 0) & (postings.place_of != -1))
    slack = np.sum(own * postings.steps * (postings.place_of != -1)) / unit
    raised = 256 * known if whole and known <= 127 else 0
    assert (sums > scores / unit - known - 1e-3).all()
    assert (sums < scores / unit + slack + known + raised + 1e-3).all()
    if whole and known <= 127:
        np.testing.assert_array_equal(sums > 0, scores > 0)


COMPILING = """
import sys
import threading
from diptych.core.context import report_to
import diptych.index.engines.inverted
from diptych.index.kernels import load_kernels
assert "numba" not in sys.modules, "compiled at import"
lines, got = [], []

class Recorder:
    def start(self, description, total, unit, done):
        lines.append(description)
        return self
    def finish(self, task):
        lines.append("over")

def load():
    while "diptych.index.kernels.find" not in sys.modules:
        pass
    got.append(load_kernels().find)  # the main thread has begun with it and is not done

other = threading.Thread(target=load)
other.start()
with report_to(Recorder()):
    kernels = load_kernels()
    assert load_kernels() is kernels
other.join()
assert got == [kernels.find], got
assert lines == ["compiling the sparse engine (once per machine)", "over"], lines
"""


def test_compiled_once_when_first_needed_and_other_threads_wait():
    source = os.pathsep.join(path for path in sys.path if path)
    subprocess.run([sys.executable, "-c", COMPILING], env=os.environ | {"PYTHONPATH": source}, check=True)


def test_where_nothing_can_be_cached_it_is_compiled_all_the_same(monkeypatch):
    import numba

    from diptych.index.kernels.jit import jit

    plain = numba.njit
    for error in (RuntimeError("cannot cache function: no locator available"), OSError(28, "No space left")):

        def without_cache(*signature, cache=False, error=error, **options):
            if cache:
                raise error
            return plain(*signature, **options)

        monkeypatch.setattr(numba, "njit", without_cache)

        @jit(numba.int64, numba.int64)
        def twice(number):
            return 2 * number

        assert twice(21) == 42


def test_kernels_kept_from_before_a_change_are_forgotten(tmp_path):
    """Numba keeps a function compiled with those it calls, and does not look at the files these are in."""
    from diptych.index.kernels.jit import forget_stale

    kept = tmp_path / "__pycache__" / "scan.scan-1.nbi"
    kept.parent.mkdir()
    for source in ("scan.py", "simd.py"):
        (tmp_path / source).touch()
        os.utime(tmp_path / source, (1000, 1000))
    kept.touch()
    os.utime(kept, (2000, 2000))
    forget_stale(tmp_path)
    assert kept.exists()
    os.utime(tmp_path / "simd.py", (3000, 3000))
    forget_stale(tmp_path)
    assert not kept.exists()
