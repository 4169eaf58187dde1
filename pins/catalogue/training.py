"""Training: every objective and every reconstruction, unbroken and resumed; the demo's recipe."""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

from pins import adapters
from pins.catalogue.evaluation import unit
from pins.numbers import record
from pins.registry import add, pin
from pins.world import World

OBJECTIVES: dict[str, tuple[str, ...]] = {
    "convse": (),
    "convse++": (),
    "cosine-distance": ("model.text={kind='targets',head='none',targets={kind='lsa',width=32}}",),
    "ifm": (),
    "infonce": ("objective.learn_temperature=true",),
    "infonce-ifm": (),
    "mvn": (),
    "nt-xent": ("objective.compat=pairs",),
    "siglip": (),
    "smoothap": ("batches.plan=grouped", "batches.captions_per_image=2"),
    "triplet": (),
    "triplet-hardest": (),
    "triplet-top": ("objective.k=3",),
}
"""Per objective what else is set, so that options and plans of batches have their turn too."""

LATENT = ("reconstruction.kind=latent", "reconstruction.targets.kind=lsa", "reconstruction.targets.width=24")
CONSTRAINT = ("reconstruction.constraint.bound=0.2", "reconstruction.constraint.learning_rate=0.5")
INPUT = ("reconstruction.kind=input", "reconstruction.word_width=16")
RECONSTRUCTIONS = {
    "latent": LATENT,
    "latent-constraint": (*LATENT, *CONSTRAINT),
    "latent-unprojected": (*LATENT, *CONSTRAINT, "reconstruction.constraint.compat=unprojected"),
    "input": INPUT,
    "input-constraint": (*INPUT, "reconstruction.constraint.bound=5"),
    "input-time-axis": (*INPUT, "reconstruction.compat=time-axis"),
}
OTHERS = {
    "chunk": ("batches.chunk=5", "model.image.freeze_batch_norm=true"),
    "accumulate": ("optimizer.accumulate=2", "optimizer.name=adamp", "optimizer.weight_decay=0.01"),
    "averaging": ("averaging.checkpoints=2", "averaging.share=0.5", "caption_augmentation.unknown=0.1"),
    "features": ("features.views=2", 'stages.0.train=["text.*","image.head.*","objective.*"]'),
    "augmentation": (
        "augmentation.scale=[0.5,1.0]",
        "model.text={kind='bag'}",
        "optimizer.name=adamw",
    ),
    "shortcuts": ("shortcuts.setup=unique", "shortcuts.digit_size=5"),
    "order": ("model.similarity=order", "objective={name='triplet'}"),
}
"""What else can be set of a training."""

STOPPED = 3  # steps


def trained(world: World, name: str, settings: tuple[str, ...]) -> dict[str, Any]:
    """The numbers of a training, and those of the same one stopped and resumed where they differ."""
    options = [f"--set={one}" for one in settings]
    whole, broken = world.folder / f"{name}-whole", world.folder / f"{name}-broken"
    world.train(whole, world.few_scenes, *options)
    with adapters.interrupted_at(STOPPED):
        world.train(broken, world.few_scenes, *options, code=130)
    adapters.diptych("train", f"--resume={broken}", "--accelerator=cpu")
    found, again = _numbers(world, whole), _numbers(world, broken)
    return {**found, "resumed": "the same" if again == found else again}


def _numbers(world: World, run: Any) -> dict[str, Any]:
    lines = adapters.steps_of(run)
    images, texts = adapters.encoded(run, world.few_scenes)
    return {
        "first step": next(line for line in lines if line["step"] == 1),
        "validations": [line for line in lines if "validation" in line],
        "losses": record(np.array([line["loss"] for line in lines if "loss" in line])),
        "images": record(images),
        "texts": record(texts),
    }


def _training(name: str, settings: tuple[str, ...]) -> Any:
    return lambda world: trained(world, name, settings)


for name, settings in OBJECTIVES.items():
    add(
        f"training.objective-{name}",
        _training(f"objective-{name}", (f"objective={{name='{name}'}}", *settings)),
        fast=name in ("infonce", "smoothap", "triplet-hardest"),
    )
for name, settings in RECONSTRUCTIONS.items():
    add(
        f"training.reconstruction-{name}",
        _training(f"reconstruction-{name}", settings),
        fast=name in ("latent-constraint", "input"),
    )
for name, settings in OTHERS.items():
    add(f"training.with-{name}", _training(name, settings))


@pin("training.killed")
def killed(world: World) -> Any:
    """A process killed between two checkpoints, and resumed."""
    run = world.folder / "killed"
    child = os.fork()
    if child == 0:
        with adapters.interrupted_at(STOPPED, signal.SIGKILL):
            world.train(run, world.few_scenes, "--set=checkpoints.every_steps=2")
        os._exit(0)
    ended = os.waitpid(child, 0)[1]
    adapters.diptych("train", f"--resume={run}", "--accelerator=cpu")
    return {"killed": os.WTERMSIG(ended), **_numbers(world, run)}


@pin("training.losses", fast=True)
def losses(world: World) -> Any:
    """Loss, gradient and values per query of every objective on given scores with several positives."""
    rng = np.random.default_rng(6)
    images, texts = unit(rng.standard_normal((10, 12))), unit(rng.standard_normal((30, 12)))
    positives = np.arange(30)[None] // 3 == np.arange(10)[:, None]
    positives[2, 25] = True
    within = (images @ images.T, texts @ texts.T)
    found = {}
    for name in OBJECTIVES:
        for compat in ("none", "pairs"):
            loss, gradient, each = adapters.objective_values(
                name, {"compat": compat}, images @ texts.T, positives, within
            )
            found[f"{name}, compat {compat}"] = {
                "loss": loss,
                "gradient": record(gradient),
                "per query": record(each),
            }
    return found


@pin("training.complete", fast=True)
def complete(world: World) -> Any:
    """Objectives that no pin trains."""
    return {"objectives without a pin": sorted(adapters.objective_names() - set(OBJECTIVES))}


@pin("training.demo")
def demo(world: World) -> Any:
    """The demo's recipe on its scenes in float32, as every CPU computes it, stopped after 200 of its steps."""
    run = world.folder / "demo"
    with adapters.interrupted_at(200):
        adapters.diptych(
            "train", "scenes", "--set=precision=32-true", "--accelerator=cpu", f"--out={run}", code=130
        )
    lines = adapters.steps_of(run)
    losses = [line["loss"] for line in lines if "loss" in line]
    return {
        "first": losses[:3],
        "last": losses[-3:],
        "steps": len(losses),
        "losses": record(np.array(losses)),
    }
