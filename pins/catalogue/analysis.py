"""What is asked of a run and its data: evaluation, stress, the information audit, COCOS, granularity, protocol."""

from __future__ import annotations

from typing import Any

from pins import adapters
from pins.adapters import diptych
from pins.numbers import text_digest
from pins.registry import add, pin
from pins.world import World

MEASURES = tuple(
    f"--measure={name}" for name in ("R@1", "R@5", "R@10", "rsum", "mAP@10", "nDCG_CM@10", "medr")
)


@pin("analysis.evaluate", fast=True)
def evaluate(world: World) -> Any:
    """``diptych evaluate`` of a run, of stored embeddings with choices of captions, ties and folds."""
    found, embedded = {}, world.folder / "embedded"
    diptych("embed", str(world.run), f"--out={embedded}")
    choices = {
        "run": (str(world.run),),
        "embeddings": (str(embedded),),
        "folds": (str(embedded), "--protocol=folds(4)", "--ties=pessimistic"),
        "first captions": (str(world.run), "--captions=first", f"--data={world.scenes}", "--split=val"),
        "random captions": (str(world.run), "--captions=random:1"),
    }
    for name, given in choices.items():
        out = world.folder / f"evaluated-{name.replace(' ', '-')}"
        diptych("evaluate", *given, *MEASURES, "--samples=100", f"--out={out}")
        found[name] = adapters.evaluation_of(out)
    return found


@pin("analysis.stress")
def stress(world: World) -> Any:
    """Every perturbation of captions and images, one seed."""
    out = world.folder / "stress"
    diptych("analyse", "stress", str(world.run), "--seeds=1", "--samples=50", "--flips=200", f"--out={out}")
    return adapters.stress_of(out)


@pin("analysis.stress-published")
def stress_published(world: World) -> Any:
    """The thesis's perturbations as published, asked of the whole collection, and two seeds of some."""
    found = {}
    published = ("--perturb=thesis", "--compat=published", "--gallery=all")
    seeds = ("--perturb=typos,shuffle-all-words,blur,crop", "--seeds=2", "--set=blur.severity=5")
    for name, given in {"published": published, "seeds": seeds}.items():
        out = world.folder / f"stress-{name}"
        diptych("analyse", "stress", str(world.run), *given, "--samples=50", "--flips=200", f"--out={out}")
        found[name] = adapters.stress_of(out)
    return found


@pin("analysis.perturb", fast=True)
def perturb(world: World) -> Any:
    """The changed captions themselves, by our perturbations and the published ones."""
    found = {}
    for compat in ("none", "published"):
        out = world.folder / f"perturbed-{compat}"
        group = "text" if compat == "none" else "thesis"
        diptych(
            "data", "perturb", str(world.scenes), f"--perturb={group}", f"--compat={compat}", f"--out={out}"
        )
        for name, text in adapters.perturbed_of(out).items():
            found[f"{compat} {name}"] = {"first": text.splitlines()[0], "all": text_digest(text)}
    return found


@pin("analysis.audit")
def audit(world: World) -> Any:
    """The information audit by linear probes."""
    out = world.folder / "audit"
    diptych("analyse", "audit", str(world.run), "--probe=linear", "--samples=50", f"--out={out}")
    return adapters.audit_of(out)


@pin("analysis.audit-both")
def audit_both(world: World) -> Any:
    """The same with both probes on a run with shortcuts, with and without them."""
    run, out = world.folder / "audited-run", world.folder / "audit-both"
    options = ("--set=shortcuts.setup=unique", "--set=shortcuts.digit_size=5", "--set=batches.size=24")
    world.train(run, world.scenes, *options)
    diptych("analyse", "audit", str(run), "--samples=50", f"--out={out}")
    return adapters.audit_of(out)


COCOS = {
    "run": (),
    "triplet": ("--objective=triplet", "--option=margin=0.05", "--plan=captions", "--batch-size=16"),
    "smoothap": ("--objective=smoothap", "--epsilon=0.001", "--plan=grouped", "--batch-size=8"),
    "infonce": ("--objective=infonce", "--option=temperature=0.01", "--compat=equations"),
    "published": ("--objective=triplet-hardest", "--compat=published", "--batch-size=16"),
}
"""Objectives, plans and readings of the equations whose contributing samples are counted."""


def _cocos(name: str) -> Any:
    def measure(world: World) -> Any:
        out = world.folder / f"cocos-{name}"
        diptych("analyse", "cocos", str(world.run), *COCOS[name], f"--out={out}")
        return adapters.cocos_of(out)

    return measure


for name in COCOS:
    add(f"analysis.cocos-{name}", _cocos(name), fast=name == "triplet")


@pin("analysis.granularity", fast=True)
def granularity(world: World) -> Any:
    """Two collections of the same images, all features."""
    out = world.folder / "granularity"
    given = (f"coarse={world.scenes}", f"finer={world.scenes}", "--reader-option=finer.finer=2")
    diptych("analyse", "granularity", *given, "--samples=100", f"--out={out}")
    return adapters.granularity_of(out, ("coarse", "finer"))


@pin("analysis.compare")
def compare(world: World) -> Any:
    """Two evaluated runs compared by the command line."""
    runs = []
    for seed in (0, 1):
        run = world.folder / f"compared-{seed}"
        world.train(run, world.scenes, f"--set=seed={seed}", "--set=batches.size=24")
        diptych("evaluate", str(run), "--samples=0")
        runs.append(run)
    out = world.folder / "comparison.json"
    diptych("compare", *map(str, runs), "--samples=100", "--flips=500", f"--out={out}")
    return adapters.comparison_of(out)


@pin("analysis.adapt")
def adapt(world: World) -> Any:
    """Few-shot adaptation by both methods, evaluated."""
    found = {}
    for method in ("gaussian", "infonce"):
        out, evaluated = world.folder / f"adapted-{method}", world.folder / f"adapted-{method}-evaluated"
        diptych(
            "adapt", str(world.run / "best"), f"--data={world.scenes}", f"--method={method}", f"--out={out}"
        )
        given = (f"--data={world.scenes}", "--samples=0", f"--out={evaluated}")
        diptych("evaluate", str(out), *given)
        found[method] = adapters.evaluation_of(evaluated)
    return found
