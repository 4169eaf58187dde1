"""Losses: SmoothAP against its naive form, and every loss against one score matrix with cross-entropy."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from benchmarks.memory import peak_mb
from benchmarks.table import Line, interleaved, ratio
from diptych.objectives import OBJECTIVES, Within, cosine_similarity, smoothap

__all__ = ["measure"]

N_IMAGES, PER_IMAGE, TEMPERATURE = 128, 5, 0.01
BATCH, WIDTH = 1024, 1024


def _naive_direction(scores: Tensor, positives: Tensor) -> Tensor:
    """The form of Brown et al.'s code: every candidate with every candidate, for all queries at once.

    Leaner than that code, which also copies the scores and the mask out to three dimensions.
    """
    candidates = scores.shape[1]
    others = 1.0 - torch.eye(candidates)
    above = torch.sigmoid((scores[:, None, :] - scores[:, :, None]) / TEMPERATURE) * others
    rank = 1 + above.sum(dim=2)
    relevant = scores[positives].view(len(scores), -1)
    k = relevant.shape[1]
    above = torch.sigmoid((relevant[:, None, :] - relevant[:, :, None]) / TEMPERATURE) * (1.0 - torch.eye(k))
    rank_among_positives = 1 + above.sum(dim=2)
    return 1 - (rank_among_positives / rank[positives].view(len(scores), -1)).mean()


def _naive(scores: Tensor, positives: Tensor) -> Tensor:
    return (_naive_direction(scores, positives) + _naive_direction(scores.T, positives.T)) / 2


def _ours(scores: Tensor, positives: Tensor) -> Tensor:
    return smoothap(scores, positives, TEMPERATURE)


def _captions() -> tuple[Tensor, Tensor]:
    """Scores of 128 images with 5 captions each, captions near their image, and what matches."""
    torch.manual_seed(0)
    owner = torch.arange(N_IMAGES * PER_IMAGE) // PER_IMAGE
    images = torch.randn(N_IMAGES, 256)
    captions = images[owner] + 3.0 * torch.randn(len(owner), 256)
    scores = normalize(images) @ normalize(captions).T
    return scores.requires_grad_(), torch.arange(N_IMAGES)[:, None] == owner


def _step(form: Callable[[Tensor, Tensor], Tensor], scores: Tensor, positives: Tensor) -> float:
    scores.grad = None
    loss = form(scores, positives)
    loss.backward()
    return float(loss.detach())


def _child(which: str) -> None:
    """The peak of one forward and backward above what was there before, after one to warm up."""
    form = {"naive": _naive, "ours": _ours}[which]
    scores, positives = _captions()
    _step(form, scores, positives)
    scores.grad = None
    before = peak_mb(forget=True)
    loss = _step(form, scores, positives)
    print(json.dumps({"megabytes": peak_mb() - before, "loss": loss}))


def _smoothap() -> list[Line]:
    found = {}
    for which in ("naive", "ours"):
        command = [sys.executable, "-m", "benchmarks.objectives", which]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found[which] = json.loads(done.stdout)
    if abs(found["naive"]["loss"] - found["ours"]["loss"]) > 1e-5:
        raise AssertionError(f"the two forms disagree: {found}")
    scores, positives = _captions()
    naive, ours = interleaved(
        5, lambda: _step(_naive, scores, positives), lambda: _step(_ours, scores, positives)
    )
    faster, less = ratio(naive, ours), found["naive"]["megabytes"] / found["ours"]["megabytes"]
    size = f"{N_IMAGES} images × {PER_IMAGE} captions, both directions, forward and backward"
    speeds = f"{1000 * sorted(naive)[2]:.0f} ms → {1000 * sorted(ours)[2]:.1f} ms"
    sizes = f"{found['naive']['megabytes']:.0f} MB → {found['ours']['megabytes']:.1f} MB"
    return [
        Line(
            "SmoothAP, naive ÷ ours, time", f"{faster:.0f}× ({speeds})", "≥ 5×", faster >= 5, f"{size}; naive:"
            " every candidate with every candidate, vectorised as the published code, without its copies",
        ),
        Line(
            "SmoothAP, naive ÷ ours, memory", f"{less:.0f}× ({sizes})", "≥ 50×", less >= 50,
            f"{size}; peak resident set above the scores, freed memory handed back before, a process for each",
        ),
    ]  # fmt: skip


def _against_cross_entropy() -> list[Line]:
    """Every registered loss from embeddings to their gradients, and the yardstick the same way."""
    torch.manual_seed(0)
    images, texts = (normalize(torch.randn(BATCH, WIDTH)).requires_grad_() for _ in range(2))
    positives, labels = torch.eye(BATCH, dtype=torch.bool), torch.arange(BATCH)
    between = (images @ texts.T).detach().requires_grad_()
    inside = Within((images @ images.T).detach(), (texts @ texts.T).detach())
    for scores in inside:
        scores.requires_grad_()

    def forget() -> None:
        for leaf in (images, texts, between, *inside):
            leaf.grad = None

    def yardstick() -> None:
        forget()
        logits = images @ texts.T / 0.07
        (0.5 * (cross_entropy(logits, labels) + cross_entropy(logits.T, labels))).backward()

    def whole(name: str) -> Callable[[], None]:
        objective = OBJECTIVES.get(name)()

        def step() -> None:
            forget()
            within = None
            if objective.needs_within:
                within = Within(cosine_similarity(images, images), cosine_similarity(texts, texts))
            objective(cosine_similarity(images, texts), positives, within).backward()

        return step

    def given_scores(name: str) -> Callable[[], None]:
        objective = OBJECTIVES.get(name)()

        def step() -> None:
            forget()
            objective(between, positives, inside).backward()

        return step

    names = OBJECTIVES.names()
    seconds, *others = interleaved(
        9, yardstick, *(whole(name) for name in names), *(given_scores(name) for name in names)
    )
    how = (
        f"{BATCH:,} × {BATCH:,} × {WIDTH:,}, forward and backward from embeddings to their gradients; yardstick: one"
        " product and torch's cross_entropy over rows and columns, the same way; in brackets the loss alone,"
        " given the scores, over the same yardstick"
    )
    three = "; it needs three score matrices where the yardstick has one"
    lines = []
    for name, all_of_it, alone in zip(names, others[: len(names)], others[len(names) :], strict=True):
        found = ratio(all_of_it, seconds)
        free = name == "smoothap"
        lines.append(
            Line(
                f"{name} ÷ product and cross-entropy",
                f"{found:.2f}× ({ratio(alone, seconds):.2f}×)",
                "(stated)" if free else "≤ 2×",
                free or found <= 2,
                (how if name == names[0] else f"as {names[0]}")
                + (three if OBJECTIVES.get(name).build.needs_within else ""),
            )
        )
    return lines


def measure() -> list[Line]:
    """SmoothAP at 128 × 5 captions, then every loss at a batch of 1,024."""
    return _smoothap() + _against_cross_entropy()


if __name__ == "__main__":
    _child(sys.argv[1])
