"""A row and seed as it is wanted, and as it is when it is there: one way of making it per kind of row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import UsageError
from diptych.studies.measurement import Subject
from diptych.studies.rows import (
    BASE_SEED,
    FINE_TUNE,
    Choices,
    base_of,
    home_of,
    recipe_of,
    run_folder,
)
from diptych.studies.start import start_of
from diptych.studies.study import Row, SettingName, Study
from diptych.studies.trained import Collections, Machine, trained
from diptych.studies.ways import Way, measuring_of, not_of_recipes, way_of

if TYPE_CHECKING:
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run


@dataclass(frozen=True)
class Wanted:
    """A row and seed of a study as somebody wants it.

    Attributes:
        study, row, seed: which.
        setting, choices: how.
        folder: the study's, as asked for.
        what: how lines about it begin.
    """

    study: Study
    row: Row
    seed: int
    setting: SettingName
    choices: Choices
    folder: Path
    what: str = ""

    @property
    def target(self) -> Path:
        """Where it is kept."""
        return run_folder(self.study, self.row, self.seed, self.folder)

    @property
    def base(self) -> Wanted | None:
        """What it starts from; None for nothing of the study."""
        base = base_of(self.study, self.row, self.setting, self.choices)
        if base is None:
            return None
        return Wanted(self.study, base, BASE_SEED, self.setting, self.choices, self.folder, self.what)

    @property
    def way(self) -> Way:
        """How it is made."""
        return way_of(self.row, self.choices.values)

    @property
    def elsewhere(self) -> str:
        """What to do where what is there is another one than is wanted."""
        home = home_of(self.study, self.row, self.folder)
        if home == self.folder:
            return "choose another folder with --out"
        return f"its runs are in {home}: choose a folder in another parent folder with --out"


@dataclass(frozen=True)
class Made:
    """A row and seed that is there.

    Attributes:
        subject: what is measured.
        state: what it is, JSON-able: with the way of measuring, the name of a measurement.
        epochs: how many were trained, and the best; 0 where nothing was.
        changed: dotted keys that the person who ran it set.
        given: the encoder that the person gave it to go on from, with its fingerprint.
    """

    subject: Subject
    state: tuple[Any, ...]
    epochs: tuple[int, int] = (0, 0)
    changed: tuple[str, ...] = ()
    given: str = ""


Making = Callable[[Wanted, Collections, Machine], Made]


def make(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Make a row, go on with it, or find it there; its base is there already."""
    return _maker(wanted.way, wanted.row.pretrained)(wanted, collections, machine)


def check(wanted: Wanted) -> None:
    """See that a row without a recipe can be made and measured as asked, before its base is trained for it."""
    choices = wanted.choices
    if wanted.way == "given":
        key = wanted.row.given
        if not isinstance(choices.values[key], str) or not choices.values[key]:
            what = "RUN or ENCODER" if wanted.row.pretrained else "RUN, ENCODER or EMBEDDINGS"
            raise UsageError(f"{key} is {choices.values[key]!r}", f"--set {key}={what}")
        if wanted.row.pretrained:
            from diptych.studies.given import given_encoder

            given_encoder(wanted).check()
    if (wanted.study.several or wanted.way in ("head", "search")) and choices.positives is not None:
        raise UsageError(
            f"--positives {choices.positives}: {wanted.row.name} is measured on the collection's own pairs",
            "leave --positives out",
        )
    if wanted.way == "head":
        from diptych.studies.sparsified import options_of

        options_of(wanted)
        _open_words(measuring_of(choices.values).get("words"))
    elif wanted.way == "adapted":
        from diptych.studies.adapted import options_of_adaptation

        options_of_adaptation(wanted)
    elif wanted.way == "search":
        from diptych.studies.searched import options_of_search

        options_of_search(wanted)


@cache
def _open_words(named: str | None) -> None:
    """See that word vectors can be opened; heads are trained before they are measured by them."""
    if named is not None:
        from diptych.sparse.measures import StaticEmbedding

        StaticEmbedding.open(named)


def _maker(way: Way, pretrained: bool) -> Making:
    """Heads and searches are heavy, and most studies have none: each is imported where there is one."""
    if way == "captions":
        from diptych.studies.captions_alone import make_captions

        return make_captions
    if way == "given" and pretrained:
        from diptych.studies.given import make_encoder

        return make_encoder
    if way == "given":
        from diptych.studies.dense import make_given

        return make_given
    if way == "adapted":
        from diptych.studies.adapted import make_adapted

        return make_adapted
    if way == "head":
        from diptych.studies.sparsified import make_head

        return make_head
    if way == "search":
        from diptych.studies.searched import make_search

        return make_search
    return _by_recipe


def _by_recipe(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Train it."""
    row, choices = wanted.row, wanted.choices
    base = wanted.base
    recipe = recipe_of(
        wanted.study, row, wanted.setting, choices, wanted.seed, None if base is None else base.target
    )
    if row.given and row.pretrained:
        from diptych.studies.given import refuse_encoder

        refuse_encoder(wanted)
    elif row.given:
        from diptych.studies.dense import refuse_given

        refuse_given(wanted)
    collection = collections.of(recipe.data)
    run = trained(wanted.target, recipe, collection, wanted.what, machine, wanted.elsewhere)
    numbers = run.numbers
    begun_with = recipe.fine_tune or recipe.warm_start
    return Made(
        Subject(run, collection, machine.features_root, choices.positives, begun_with),
        (numbers["step"], numbers["best"]),
        (int(numbers["epoch"]), int(numbers["best_epoch"])),
        tuple(key for key in changed_keys(choices, recipe) if not not_of_recipes(wanted.study, key)),
        _given_start(run, recipe) if base is None else "",
    )


def _given_start(run: Run, recipe: Recipe) -> str:
    """The encoder that was given to go on from, with its fingerprint; empty without one."""
    start = None if recipe.fine_tune is None else start_of(run, recipe.fine_tune)
    return "" if start is None else start.name


def changed_keys(choices: Choices, recipe: Recipe) -> tuple[str, ...]:
    """What the person who ran it changed about the training, as dotted keys."""
    keys = set(choices.values)
    if recipe.fine_tune is None:
        keys.discard(FINE_TUNE)  # no business of what is trained from scratch
    # Another place of the sentence encoder is the same training; LSA's vectors are not.
    if choices.targets == "lsa":
        if recipe.reconstruction is not None and recipe.reconstruction.kind == "latent":
            keys.add("reconstruction.targets.kind")
        if recipe.model.text.kind == "targets":
            keys.add("model.text.targets.kind")
    return tuple(sorted(keys))
