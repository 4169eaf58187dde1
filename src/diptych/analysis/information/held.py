"""Held: which share of the bits that are there a probe finds, with an interval over test images.

For rows in a group, *there* is what their answers cost without a probe, by the training frequencies:
the cross-entropy that equals the answers' entropy when test rows are like training rows. *Held* is how
much less they cost with the probe. Both are measured on the same test rows by what was learned on the
same training rows, so a probe that learned nothing holds 0 whatever the number of classes or rows;
entropy counted on the test rows would be too small when they are few, and make it negative.

The interval is a percentile bootstrap that draws whole test images, each with all its questions and
captions. It says how far a figure would move with other test images: not with another training of the
encoder or the probe.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from diptych.metrics.bootstrap import Bootstrap, interval

_CHUNK = 100


@dataclass(frozen=True)
class Held:
    """The bits of one group of answers.

    Attributes:
        raw: held / there; below 0 when a probe does worse than none, and then reported as 0 %.
        low, high: ends of the interval of ``raw``; equal to it without resamples.
        there: bits per test row, on average over all of them.
        answers: how many answers, by weight.
    """

    raw: float
    low: float
    high: float
    there: float
    answers: float

    @property
    def percent(self) -> float:
        """What is reported: between 0 and 100."""
        return _percent(self.raw)

    @property
    def ends(self) -> tuple[float, float]:
        """The interval in per cent, between 0 and 100."""
        return _percent(self.low), _percent(self.high)

    @property
    def bits(self) -> float:
        """Held bits per test row, 0 or more."""
        return self.there * self.percent / 100

    def show(self) -> str:
        """``42.6 (40.1–45.0)``."""
        low, high = self.ends
        return f"{self.percent:.1f} ({low:.1f}–{high:.1f})"


def held_of(
    there: np.ndarray, left: np.ndarray, answers: np.ndarray, images: np.ndarray, bootstrap: Bootstrap
) -> list[Held | None]:
    """Several groups of answers at once, on the same resamples.

    Args:
        there: (n, groups) bits of each row's answers in each group without a probe.
        left: (n, groups) the same with the probe.
        answers: (groups,) how many answers a group has, by weight.
        images: (n,) the image of each row.

    Returns:
        One per group; None where a group has no bits.
    """
    _, cluster = np.unique(images, return_inverse=True)
    sums = np.zeros((2, int(cluster.max(initial=-1)) + 1, there.shape[1]))
    np.add.at(sums[0], cluster, there)
    np.add.at(sums[1], cluster, there - left)
    totals, samples = sums.sum(axis=1), _resampled(sums, bootstrap)
    found: list[Held | None] = []
    for number, bits in enumerate(totals[0]):
        if bits <= 0:
            found.append(None)
            continue
        raw = float(totals[1, number] / bits)
        low, high = interval(samples[:, number], bootstrap.confidence) or (raw, raw)
        found.append(Held(raw, low, high, float(bits) / len(images), float(answers[number])))
    return found


def _resampled(sums: np.ndarray, bootstrap: Bootstrap) -> np.ndarray:
    """(samples, groups) held / there; NaN for a resample in which a group has no bits."""
    n = sums.shape[1]
    random = np.random.default_rng(bootstrap.seed)
    found = []
    for start in range(0, bootstrap.samples if n else 0, _CHUNK):
        size = min(_CHUNK, bootstrap.samples - start)
        times = random.multinomial(n, np.full(n, 1 / n), size=size).astype(np.float64)
        there, held = times @ sums[0], times @ sums[1]
        found.append(np.divide(held, there, out=np.full_like(held, np.nan), where=there > 0))
    return np.concatenate([np.empty((0, sums.shape[2])), *found])


def _percent(share: float) -> float:
    return 100 * min(1.0, max(0.0, share))
