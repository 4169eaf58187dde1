from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from diptych.analysis.information import Encoded
from diptych.analysis.information.questions import Answers, Questions, questions_of
from diptych.data.collection import Collection

Planted = tuple[tuple[np.ndarray, np.ndarray, np.ndarray], Questions]


def as_answers(values):
    keys = tuple(f"f{number}" for number in range(values.shape[1]))
    return Answers(keys, values, {"all": np.ones(values.shape)}, np.arange(len(values)))


@pytest.fixture(scope="session")
def planted():
    """Rows that hold ``facts`` facts exactly (one-hot, rotated) and know nothing of ``others`` facts."""

    def make(n, n_classes, facts=2, others=2, width=48, seed=0):
        random = np.random.default_rng(seed)
        rotation, _ = np.linalg.qr(random.normal(size=(width, width)))
        rows, answers = [], []
        for size in (n, 150, 250):
            drawn = random.integers(0, n_classes, (size, facts + others))
            exact = np.eye(n_classes)[drawn[:, :facts]].reshape(size, facts * n_classes)
            noise = random.normal(size=(size, width - exact.shape[1])) / np.sqrt(width)
            mixed = np.concatenate([exact, noise], axis=1) @ rotation
            rows.append((mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32))
            answers.append(as_answers(drawn.astype(str).astype(object)))
        return (rows[0], rows[1], rows[2]), questions_of(*answers)

    return make


class NoPictures:
    def read(self, row):
        raise AssertionError("an audit of rows reads no picture")

    def content(self, row):
        return str(row)


@pytest.fixture(scope="session")
def told():
    """A collection from facts per image and stated keys per caption, or from captions alone."""

    def make(facts, states, captions=None, shortcuts=None, ends=None):
        per_image = states if captions is None else captions
        owner = np.repeat(np.arange(len(per_image)), [len(one) for one in per_image])
        texts = (
            [f"caption {number}" for number in range(len(owner))]
            if captions is None
            else [caption for one in captions for caption in one]
        )
        records: list[dict[str, Any]] = [{} for _ in per_image]
        caption_records: list[dict[str, Any]] = [{} for _ in owner]
        if facts is not None:
            records = [{"facts": dict(one)} for one in facts]
            caption_records = [{"states": tuple(keys)} for one in states for keys in one]
        for image, carried in enumerate(shortcuts or []):
            records[image]["shortcuts"] = tuple(carried)
        for caption, end in enumerate(code for one in ends or [] for code in one):
            caption_records[caption]["shortcut"] = end
        return Collection(
            name="told",
            image_ids=[f"i{number}" for number in range(len(per_image))],
            captions=texts,
            caption_ids=[f"c{number}" for number in range(len(owner))],
            caption_image=owner,
            splits=["train"] * len(per_image),
            source=NoPictures(),
            source_rows=np.arange(len(per_image)),
            records=records,
            caption_records=caption_records,
        )

    return make


@pytest.fixture(scope="session")
def seen(told):
    """A split whose image rows hold ``shape`` and nothing of ``tint``, and whose captions say each one fact."""

    def make(n, seed, codes=False, width=24):
        random = np.random.default_rng(seed)
        drawn = random.integers(0, 4, (n, 3))
        facts = [
            {"shape": f"s{shape}", "place": f"p{place}", "tint": f"t{tint}"} for shape, place, tint in drawn
        ]
        numbers = [f"{number:06d}" for number in random.integers(0, 100, n)]
        part = told(
            facts,
            [[("shape", "place"), ("shape",)]] * n,
            shortcuts=[[number] for number in numbers] if codes else None,
            ends=[[number, number] for number in numbers] if codes else None,
        )
        rotation, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(width, width)))
        images = np.concatenate([np.eye(4)[drawn[:, 0]], random.normal(size=(n, width - 4)) / 5], axis=1)
        texts = np.concatenate(
            [
                np.eye(4)[np.repeat(drawn[:, 0], 2)],
                np.where(np.arange(2 * n)[:, None] % 2 == 0, np.eye(4)[np.repeat(drawn[:, 1], 2)], 0),
                random.normal(size=(2 * n, width - 8)) / 5,
            ],
            axis=1,
        )
        return Encoded(part, (images @ rotation).astype(np.float32), (texts @ rotation).astype(np.float32))

    return make
