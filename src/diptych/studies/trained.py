"""One training of a study: begun, gone on with, or found finished; and the data it is made on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.context import stop_when
from diptych.core.errors import UsageError
from diptych.core.files import read_json, safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.studies.rows import Choices

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run
    from diptych.training.sections import Data

_COST = "cost.json"
# Where things are and what they are called.
_STARTS = ("warm_start", "fine_tune")
_PLACES = ("data", *_STARTS, "name", "description")


@dataclass(frozen=True)
class Machine:
    """On what, and how far, runs are trained.

    Attributes:
        accelerator: as for training.
        features_root: folder of cached features, shared by all rows.
        should_stop: asked after every step.
        tell: gets one line before each training and measurement.
    """

    features_root: Path
    accelerator: str = "auto"
    should_stop: Callable[[], bool] = lambda: False
    tell: Callable[[str], None] = lambda line: None


@dataclass
class Collections:
    """The data of a study, each read once: most rows share theirs, a pretrained one may have its own.

    Attributes:
        choices: of the person who runs it.
        several: by name, what a study of several collections measures on.
    """

    choices: Choices
    several: Mapping[str, Collection] = field(default_factory=dict)
    _read: dict[str, Collection] = field(default_factory=dict)

    @property
    def given(self) -> Collection | None:
        """The collection that the choices name; None where the setting brings its own."""
        return None if self.choices.data is None else self._of(self.choices.data)

    def of(self, data: Data) -> Collection:
        """What a row is made on: a recipe's data section."""
        return self._of(data.model_dump(mode="json"))

    def named(self, sections: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, Collection]:
        """Several collections by their names: those given, else their own."""
        from diptych.data.known import centric_of

        found: dict[str, Collection] = {}
        for name, section in sections:
            collection = self._of(section)
            _is_not_another(collection, name)
            name = name or collection.name
            same = next((one for one in found if safe_name(one).lower() == safe_name(name).lower()), None)
            if same is not None:
                both = repr(name) if same == name else f"{same!r} and {name!r}, which are one"
                raise UsageError(
                    f"two collections are called {both}", f"name them: --data NAME={section.get('path')}"
                )
            centric = collection.centric or centric_of(None, name)
            found[name] = replace(collection, name=name, centric=centric)
        return found

    def _of(self, section: Mapping[str, Any]) -> Collection:
        from diptych.training.sections import Data
        from diptych.training.source import collection_of

        data = Data.model_validate(section)
        # Split names are not part of what is read.
        key = data.model_dump_json(exclude={"train", "validation", "test"})
        if key not in self._read:
            self._read[key] = collection_of(data)
        return self._read[key]


def _is_not_another(collection: Collection, name: str) -> None:
    """See that what calls itself one known dataset is not called another: it would be held against its numbers."""
    from diptych.data.known import known_by_name

    own, called = known_by_name(collection.name), known_by_name(name)
    if own is not None and called is not None and own is not called:
        raise UsageError(
            f"the collection called {name!r} calls itself {collection.name!r}: {own.title}, not {called.title}",
            f"call it {own.name}=…, or as no known dataset is called",
        )


def collection_key(collection: Collection) -> str:
    """A fingerprint of texts, splits and what the pictures show, for what was measured on it."""
    return fingerprint(collection.text_fingerprint, list(collection.splits), collection.centric)


def trained(
    folder: Path,
    recipe: Recipe,
    collection: Collection,
    what: str,
    machine: Machine,
    elsewhere: str = "choose another folder with --out",
) -> Run:
    """The finished run of ``recipe`` in ``folder``, which no other process trains in meanwhile."""
    from diptych.training.fit import fit
    from diptych.training.run import Run

    if (folder / "run.json").is_file():
        run = Run.open(folder)
        try:
            _same_recipe(run, recipe)
            _same_data(run, collection)
        except _OtherRunError as error:
            raise UsageError(error.message, elsewhere) from None
        if run.finished:
            machine.tell(f"{what}: there already")
            return run
        # It is resumed from where its beginning is now: the study's folder may have moved.
        begun_with = {key: getattr(recipe, key) for key in _STARTS if getattr(run.recipe, key) is not None}
        now = {key: place for key, place in begun_with.items() if place is not None}
        run = Run(folder, run.recipe.model_copy(update=now))
        machine.tell(f"{what}: goes on")
    else:
        run = Run.prepare(folder, recipe)
        machine.tell(f"{what}: training")
    with cost_of(folder), stop_when(machine.should_stop):
        fit(run, collection, accelerator=machine.accelerator, features_root=machine.features_root)
    return run


@contextmanager
def cost_of(folder: Path) -> Iterator[None]:
    """Add the block's processor time to what a run has taken."""
    begun, before = time.process_time(), cpu_seconds(folder)
    try:
        yield
    finally:
        write_json(folder / _COST, {"cpu_seconds": before + time.process_time() - begun})


def cpu_seconds(folder: Path) -> float:
    """Processor time that a run has taken, all attempts together."""
    file = folder / _COST
    return float(read_json(file)["cpu_seconds"]) if file.is_file() else 0.0


class _OtherRunError(UsageError):
    """A folder's run is not the one that is wanted; who knows which folders there are says what to do."""


def _same_recipe(run: Run, recipe: Recipe) -> None:
    have, want = (one.model_dump(mode="json", exclude=set(_PLACES)) for one in (run.recipe, recipe))
    for key in want:
        if have[key] != want[key]:
            raise _OtherRunError(
                f"{run.folder} was trained with {key} = {_short(have[key])}, not {_short(want[key])}"
            )
    if run.recipe.fine_tune != recipe.fine_tune:
        _same_beginning(run, recipe)


def _same_beginning(run: Run, recipe: Recipe) -> None:
    """See that an encoder under another name is the one that the run began with."""
    from diptych.training.fine_tune import open_fine_tune

    both = run.recipe.fine_tune is not None and recipe.fine_tune is not None
    have = run.begun_with.get("fine_tune")
    want = None if recipe.fine_tune is None else open_fine_tune(recipe.fine_tune).fingerprint
    if not both or have != want:
        raise _OtherRunError(
            f"{run.folder} was begun with {run.recipe.fine_tune} ({have}), not {recipe.fine_tune} ({want})"
        )


def _same_data(run: Run, collection: Collection) -> None:
    have = run.begun_with["data"]
    want = collection.split(run.recipe.data.train).text_fingerprint
    if have != want:
        raise _OtherRunError(
            f"{run.folder} was trained on captions {have}, those of {collection.name} are {want}"
        )


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:119] + "…"
