from __future__ import annotations

from diptych.data.readers import read_collection
from diptych.data.vocabulary import Vocabulary
from diptych.encoders.two_tower import TwoTowerModel
from diptych.training.averaging import batch_norms
from diptych.training.recipe import Recipe
from diptych.training.trainee import Reconstructor, Trainee, make_optimizer


def test_matrices_decay_and_vectors_and_word_embeddings_do_not(recipe: Recipe) -> None:
    values = recipe.model_dump() | {"reconstruction": {"kind": "input", "word_width": 3}}
    recipe = Recipe.model_validate(values | {"optimizer": {"name": "adamw", "weight_decay": 0.5}})
    assert recipe.reconstruction is not None
    collection = read_collection(str(recipe.data.path)).split("train")
    vocabulary = Vocabulary.build(collection.captions, 1)
    decoder = Reconstructor(recipe.reconstruction, recipe.model.width, None, len(vocabulary))
    trainee = Trainee(TwoTowerModel(recipe.model, vocabulary), recipe.make_objective(), decoder)
    trainee.begin(recipe.stages[0])
    names = {id(parameter): name for name, parameter in trainee.named_parameters()}
    decayed = {
        names[id(parameter)]: group["weight_decay"]
        for group in make_optimizer(trainee, recipe, recipe.stages[0]).param_groups
        for parameter in group["params"]
    }
    assert decayed.keys() == set(names.values())
    assert {name for name in names.values() if name.endswith("embed.weight")} == {
        "text.embed.weight",
        "reconstruction.decoder.embed.weight",
    }
    for name, parameter in trainee.named_parameters():
        expected = 0.5 if parameter.ndim >= 2 and "embed" not in name else 0.0
        assert decayed[name] == expected, name


def test_a_frozen_batch_norm_keeps_its_statistics(recipe: Recipe) -> None:
    values = recipe.model_dump()
    values["model"]["image"]["batch_norm"] = True
    values["model"]["text"] |= {"head": "linear", "batch_norm": True}
    recipe = Recipe.model_validate(values)
    collection = read_collection(str(recipe.data.path)).split("train")
    trainee = Trainee(
        TwoTowerModel(recipe.model, Vocabulary.build(collection.captions, 1)), recipe.make_objective()
    )
    trainee.begin(recipe.stages[0].model_copy(update={"train": ("text.*",)}))
    text_norm = trainee.text.head[-1]  # type: ignore[index]
    assert batch_norms(trainee.train()) == [text_norm]
    assert trainee.image.head.training  # its dropout is at work
    trainee.begin(recipe.stages[0])
    assert len(batch_norms(trainee.train())) > 2
    assert batch_norms(trainee.eval()) == []
