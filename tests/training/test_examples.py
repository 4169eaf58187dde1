"""Training batches: which view of an image is drawn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from diptych.data.batches import Batch
from diptych.data.readers import read_collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.image_tower import FeatureOptions, FeatureStore
from diptych.encoders.preprocessing import Augmentation
from diptych.encoders.two_tower import TwoTowerModel
from diptych.training.examples import Examples
from tests.training.conftest import tiny


def _images(examples: Examples, captions: list[int], epoch: int = 0) -> torch.Tensor:
    """The images of captions that are in one batch; image i has captions 5i to 5i + 4."""
    images, place = np.unique(np.array(captions) // 5, return_inverse=True)
    return examples.load(Batch(images, np.array(captions), place), epoch).images


def test_every_batch_that_an_image_is_in_has_a_view_of_its_own(scenes_folder: Path, tmp_path: Path) -> None:
    """By the first of its captions there, whoever else is in the batch; decoded once per batch, not per caption."""
    train = read_collection(scenes_folder).split("train")
    model = TwoTowerModel(tiny(scenes_folder).model, Vocabulary.build(train.captions, 1))
    captions = model.text.inputs(train.captions)
    cached = FeatureStore.of(model.image, train, tmp_path, FeatureOptions(views=64))
    crops = Examples(train, model, captions, augmentation=Augmentation())
    for examples in (crops, Examples(train, model, captions, features=cached)):
        first, second = _images(examples, [0]), _images(examples, [1])
        assert not torch.equal(first, second)
        assert torch.equal(_images(examples, [0, 3, 7])[0], first[0])
        assert torch.equal(_images(examples, [1, 2, 12, 13])[0], second[0])
        assert len(_images(examples, [1, 2, 12, 13])) == 2
        assert not torch.equal(_images(examples, [0], epoch=1), first)
    plain = Examples(train, model, captions)
    assert torch.equal(_images(plain, [0]), _images(plain, [1], epoch=3))
