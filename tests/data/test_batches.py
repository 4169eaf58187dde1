from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused

from diptych.core.errors import UsageError
from diptych.data.batches import Batch, BatchPlan, PlanName

counts = st.lists(st.integers(0, 5), min_size=3, max_size=30).filter(lambda c: sum(n > 0 for n in c) >= 3)


def caption_image(per_image: list[int]) -> np.ndarray:
    return np.repeat(np.arange(len(per_image)), per_image)


def check(batch: Batch, images_of: np.ndarray) -> None:
    assert len(set(batch.images.tolist())) == len(batch.images)
    assert np.array_equal(batch.images[batch.caption_image], images_of[batch.captions])
    assert np.all(np.diff(batch.caption_image) >= 0)


@settings(max_examples=60)
@given(counts, st.integers(2, 3), st.sampled_from(["captions", "distinct"]), st.integers(0, 3))
def test_every_caption_once_per_epoch(per_image: list[int], size: int, plan: PlanName, epoch: int) -> None:
    images = caption_image(per_image)
    batches = BatchPlan(images, len(per_image), size, plan, seed=1).epoch(epoch)
    seen = np.concatenate([batch.captions for batch in batches])
    assert sorted(seen.tolist()) == list(range(len(images)))
    for batch in batches:
        check(batch, images)
        assert len(batch.captions) <= size


def test_the_order_is_a_function_of_seed_and_epoch() -> None:
    images = caption_image([6, 1, 1])
    batches = BatchPlan(images, 3, 3, "distinct").epoch(0)
    assert sorted(np.concatenate([b.captions for b in batches]).tolist()) == list(range(8))
    assert any(len(batch.images) < len(batch.captions) for batch in batches)
    images = caption_image([5] * 40)
    plan = BatchPlan(images, 40, 16, seed=3)
    again = BatchPlan(images, 40, 16, seed=3)
    order = [batch.captions.tolist() for batch in plan.epoch(2)]
    assert order == [batch.captions.tolist() for batch in again.epoch(2)]
    assert order != [batch.captions.tolist() for batch in plan.epoch(1)]
    assert order != [batch.captions.tolist() for batch in BatchPlan(images, 40, 16, seed=4).epoch(2)]
    for size, message in ((1, "needs a negative"), (9, "larger than the 3 images")):
        refused(UsageError, message, BatchPlan, caption_image([2, 2, 2]), 3, size)


@settings(max_examples=40)
@given(counts, st.integers(1, 6))
def test_grouped_takes_k_captions_of_every_image(per_image: list[int], k: int) -> None:
    images = caption_image(per_image)
    batches = BatchPlan(images, len(per_image), 2, "grouped", captions_per_image=k).epoch(0)
    seen = np.concatenate([batch.images for batch in batches])
    assert sorted(seen.tolist()) == [i for i, n in enumerate(per_image) if n]
    for batch in batches:
        check(batch, images)
        taken = np.bincount(batch.caption_image, minlength=len(batch.images))
        assert taken.tolist() == [min(k, per_image[image]) for image in batch.images]


@given(st.integers(1, 5))
def test_shards_are_the_batch(world: int) -> None:
    images = caption_image([3] * 20)
    batch = BatchPlan(images, 20, 12, "captions").epoch(0)[0]
    shards = [batch.shard(rank, world) for rank in range(world)]
    assert np.concatenate([s.images for s in shards]).tolist() == batch.images.tolist()
    assert np.concatenate([s.captions for s in shards]).tolist() == batch.captions.tolist()
    for shard in shards:
        check(shard, images)
