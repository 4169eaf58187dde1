"""A row and seed as it is wanted, and as it is when it is there: one way of making it per kind of row."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from diptych.core.errors import MismatchError, UsageError
from diptych.core.files import safe_name, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.reading import read_json
from diptych.studies.rows import (
    BASE_SEED,
    FINE_TUNE,
    Choices,
    Way,
    base_of,
    home_of,
    measuring_of,
    not_of_recipes,
    recipe_of,
    run_folder,
    way_of,
)
from diptych.studies.study import Row, SettingName, Study, Subject

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.encoders.dual_encoder import DualEncoder
    from diptych.training.recipe import Recipe
    from diptych.training.run import Run
    from diptych.training.sections import Data


logger = logging.getLogger("diptych.studies")
"""Gets one line before each training and measurement."""

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
    """

    features_root: Path
    accelerator: str = "auto"


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
        from diptych.training.recipe import collection_of
        from diptych.training.sections import Data

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
            logger.info(f"{what}: there already")
            return run
        # It is resumed from where its beginning is now: the study's folder may have moved.
        begun_with = {key: getattr(recipe, key) for key in _STARTS if getattr(run.recipe, key) is not None}
        now = {key: place for key, place in begun_with.items() if place is not None}
        run = Run(folder, run.recipe.model_copy(update=now))
        logger.info(f"{what}: goes on")
    else:
        run = Run.prepare(folder, recipe)
        logger.info(f"{what}: training")
    with cost_of(folder):
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


_WORDS = {"fine_tune": "fine-tuned from", "warm_start": "begun with"}


@dataclass(frozen=True)
class Start:
    """An encoder that a training went on from.

    Attributes:
        key: the recipe's key that names it.
        source: a folder, as far as it is one of today, or a name.
        fingerprint: of its weights, when training began.
    """

    key: str
    source: str
    fingerprint: str

    @property
    def name(self) -> str:
        """``SOURCE (fingerprint F)``."""
        return f"{self.source} (fingerprint {self.fingerprint})"

    def line(self) -> str:
        """For protocols."""
        return f"{_WORDS[self.key]} {self.name}"

    def open(self) -> DualEncoder:
        """The encoder."""
        from diptych.encoders.dual_encoder import DualEncoder

        best = Path(self.source).expanduser() / "best"
        encoder = DualEncoder.load(best if (best / "diptych.json").is_file() else self.source)
        if encoder.fingerprint != self.fingerprint:
            raise MismatchError(
                f"training began with {self.name}, which now holds {encoder.fingerprint}",
                "put the old encoder back, or train the row again in another folder",
            )
        return encoder


def start_of(run: Run, now: str | None = None) -> Start | None:
    """What ``run`` began with; None for fresh weights. ``now``: where that is today, if not where it was."""
    for key, source in (("fine_tune", run.recipe.fine_tune), ("warm_start", run.recipe.warm_start)):
        if source is not None:
            return Start(key, now or source, str(run.begun_with[key]))
    return None


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
class Unit:
    """A row and seed of a plan.

    Attributes:
        row, seed: which.
        shown: whether it is asked for, or only a row that others start from.
        place: where it stands in the plan, in words.
    """

    row: Row
    seed: int
    shown: bool = True
    place: str = ""


@dataclass(frozen=True)
class Made:
    """A row and seed that is there.

    Attributes:
        subject: what is measured.
        state: what it is, JSON-able: with the way of measuring, the name of a measurement.
        epochs: how many were trained, and the best; 0 where nothing was.
        changed: dotted keys that the person who ran it set.
        given: the encoder that the person gave it to go on from, with its fingerprint.
        data: what it is measured on, in one line.
        dataset: which of several collections that is.
        seconds: processor time of making it; what its folder says when not given.
        costs: whether the time of measuring is counted too.
        again: whether it is measured even where it was: quick, and its line names what else was evaluated.
    """

    subject: Subject
    state: tuple[Any, ...]
    epochs: tuple[int, int] = (0, 0)
    changed: tuple[str, ...] = ()
    given: str = ""
    data: str = ""
    dataset: str | None = None
    seconds: float | None = None
    costs: bool = False
    again: bool = False


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
        from diptych.studies.sparse_retrieval import options_of

        options_of(wanted)
        _open_words(measuring_of(choices.values).get("words"))
    elif wanted.way == "adapted":
        from diptych.studies.zero_shot import options_of_adaptation

        options_of_adaptation(wanted)
    elif wanted.way == "search":
        from diptych.studies.searched import options_of_search

        options_of_search(wanted)


@cache
def _open_words(named: str | None) -> None:
    """See that word vectors can be opened; heads are trained before they are measured by them."""
    if named is not None:
        from diptych.sparse.static import StaticEmbedding

        StaticEmbedding.open(named)


def _maker(way: Way, pretrained: bool) -> Making:
    """Heads and searches are heavy, and most studies have none: each is imported where there is one."""
    if way == "captions":
        return make_captions
    if way == "given" and pretrained:
        from diptych.studies.given import make_encoder

        return make_encoder
    if way == "given":
        from diptych.studies.given import make_given

        return make_given
    if way == "adapted":
        from diptych.studies.zero_shot import make_adapted

        return make_adapted
    if way == "head":
        from diptych.studies.sparse_retrieval import make_head

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
        from diptych.studies.given import refuse_given

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


@dataclass(frozen=True)
class CaptionsAlone:
    """What stands in a run's place.

    Attributes:
        folder: of the row, where its measurements are kept.
    """

    folder: Path


def make_captions(wanted: Wanted, collections: Collections, machine: Machine) -> Made:
    """Say where the row's measurements go."""
    for key in wanted.choices.values:
        if not not_of_recipes(wanted.study, key):
            raise UsageError(
                f"{key} is about a training, and {wanted.study.name} trains nothing",
                f"leave it out; what can be set: {', '.join(f'measure.{one}' for one in wanted.study.measured_by)}",
            )
    return Made(Subject(CaptionsAlone(wanted.target), None, machine.features_root), ("captions",))
