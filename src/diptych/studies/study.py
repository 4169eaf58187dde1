"""Study: one table of a paper, as rows that can be trained and claims that can be checked.

A study's rows are what sets them apart from each other; how all of them are trained is a *setting*:

``paper``
    the paper's own backbone, schedule and batches, for Flickr30k and COCO;
``data``
    the same comparison with a schedule for any other collection and a processor;
``quick``
    the same on generated scenes, in minutes.

A row's recipe is its setting's recipe file, the row's changes on top, then the setting's changes for
that row, then whatever the person who runs it sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from diptych.core.errors import UnknownNameError
from diptych.core.registry import Registry
from diptych.core.table import Table
from diptych.studies.claims import Claim
from diptych.studies.published import Paper, PublishedRow, PublishedTable
from diptych.studies.verdict import Evidence, Measured, Trajectory

if TYPE_CHECKING:
    from diptych.data.collection import Collection


class StudyFigure(Protocol):
    """What a report draws besides."""

    @property
    def name(self) -> str:
        """Of its place on the page."""

    @property
    def title(self) -> str:
        """Above it."""

    @property
    def note(self) -> str:
        """How it is to be read."""

    def draw(self, evidence: Evidence, labels: Mapping[str, str]) -> Sequence[Any]:
        """Return blocks of a page, or markup; ``labels`` of rows."""


PUBLISHED = "|published"
"""Ends the name of a value that was counted as the paper counts, where that is not the right way."""


@dataclass(frozen=True)
class Measurement:
    """What one run gives on one ground truth.

    Attributes:
        values: column → value, in the paper's unit. Where the paper's own way of counting differs from
            the right one, the number to hold against its cell stands under ``COLUMN|published``.
        on: what they were measured on.
        protocol: everything they depend on, in one line.
        commands: what repeats the measurement by hand; ``{run}`` stands for the run's folder.
        trajectory: how the training went, for studies that look at it.
        kept: a folder inside the run's with what is too large for an entry, e.g. values per query; see
            :mod:`diptych.studies.results`. Empty for none.
    """

    values: Mapping[str, float]
    on: Measured
    protocol: str
    commands: tuple[str, ...] = ()
    trajectory: Trajectory | None = None
    kept: str = ""


@dataclass(frozen=True)
class Subject:
    """What is measured: a finished run and the collection it was trained on.

    Attributes:
        run: the run (:class:`diptych.training.run.Run`), or what stands in its place: dense rows that were
            given, a head, a search.
        collection: all splits (:class:`diptych.data.collection.Collection`).
        features: folder of cached features.
        positives: further judgements to measure by, as ``NAME:PATH``.
        begun_with: where the encoder that training began with is today; where the run's recipe says, when
            not given.
        measuring: what a person set about measuring (``--set measure.words=FILE``).
    """

    run: Any
    collection: Any
    features: Any
    positives: str | None = None
    begun_with: str | None = None
    measuring: Mapping[str, Any] = field(default_factory=dict)


class Measuring(Protocol):
    """How a study's columns are measured."""

    @property
    def about(self) -> dict[str, Any]:
        """What the measurement depends on besides the run; JSON-able."""

    def __call__(self, subject: Subject) -> tuple[Measurement, ...]:
        """Measure one run: on its collection's own pairs first, then by further judgements."""


SettingName = Literal["paper", "data", "quick"]


@dataclass(frozen=True)
class Row:
    """One training of a study, or what is made of another's rows without one.

    Attributes:
        name: of its folder, and what ``--rows`` calls it besides the paper's numbers.
        label: what reports call it.
        model: which of a setting's recipe files it starts from.
        changes: dotted keys and values that set it apart from its study's other rows.
        base: another row whose trained weights it starts from; the base is trained once, with seed 0.
        home: the study whose folder its runs are in, when that is another one.
        takes_regions: whether it takes region features instead of pictures.
        extra: why it is there although the paper does not print it.
        given: the key by which a person may give it instead of having it trained (``--set KEY=…``).
        sparsify: dotted options that set it apart where it is a head on its base's dense rows; then it has no
            recipe.
        search: dotted options that set it apart where it is a way of searching its base's rows.
        adapt: dotted options that set it apart where it is its base adapted to each collection.
        pretrained: whether nothing is trained, in the paper: the row is a published encoder, which a person
            gives or which the setting names, and its numbers are held against those printed of it.
        captions_alone: whether there is nothing to make: what is measured are the captions themselves.
        log_alone: whether there is nothing to make and no collection: what is measured is a shop's log.
        catalogue_alone: whether it is a number of models of a shop's catalogue, which are made for all rows together.
    """

    name: str
    label: str
    model: str = "model"
    changes: Mapping[str, Any] = field(default_factory=dict)
    base: str | None = None
    home: str | None = None
    takes_regions: bool = False
    extra: str = ""
    given: str = ""
    sparsify: Mapping[str, Any] | None = None
    search: Mapping[str, Any] | None = None
    adapt: Mapping[str, Any] | None = None
    pretrained: bool = False
    captions_alone: bool = False
    log_alone: bool = False
    catalogue_alone: bool = False


@dataclass(frozen=True)
class Setting:
    """How all rows of a study are trained.

    Attributes:
        description: one line.
        recipes: model → name of a file in ``studies/recipes``.
        changes: row → dotted keys and values that only this setting needs, e.g. a longer schedule.
        left_out: row → why it cannot be run like this.
        seeds: run when nobody says which.
        time: how long all of it takes: a few words, and after a semicolon on what, and of what.
        rows: run when nobody says which; all when empty.
        fine_tunes: models whose rows start from a pretrained encoder that the person who runs it may give
            (``--set fine_tune=ENCODER``); where the setting has no recipe for their base, must give.
        sparsify: dotted options of all heads.
        search: dotted options of all searches.
        adapt: dotted options of all adaptations.
        given: what is taken for a row that a person may give and has not given: its key → an encoder.
        collections: what is measured on when nobody says: a name → a recipe's data section, for studies of
            several collections.
        measure: how it is measured when nobody says (``--set measure.KEY=VALUE``), for studies of several
            collections and of logs; of catalogues, whatever can be set, by its whole key.
        log: options of the shop's log that is generated when nobody gives one, for studies of logs.
        products: options of the shop's products that are generated when nobody gives any, for studies of catalogues.
    """

    description: str
    recipes: Mapping[str, str]
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    seeds: tuple[int, ...] = (0,)
    time: str = ""
    rows: tuple[str, ...] = ()
    fine_tunes: tuple[str, ...] = ()
    sparsify: Mapping[str, Any] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    adapt: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    collections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measure: Mapping[str, Any] = field(default_factory=dict)
    log: Mapping[str, Any] | None = None
    products: Mapping[str, Any] | None = None

    @property
    def duration(self) -> str:
        """How long all of it takes, in a few words."""
        return self.time.partition(";")[0]


@dataclass(frozen=True)
class Column:
    """One measured column.

    Attributes:
        name: as published tables and measurements call it, e.g. ``i2t R@1``.
        decimals: digits after the point.
        short: what narrow tables print.
        logarithmic: whether a chart of it needs a logarithmic axis.
    """

    name: str
    decimals: int = 1
    short: str = ""
    logarithmic: bool = False


@dataclass(frozen=True)
class Study:
    """One table or figure of a paper.

    Attributes:
        name: ``paper.table``.
        asks: what it asks, in one line.
        topic: the same in a few words, for lists.
        rows: what is trained, in the order of the table.
        columns: what is measured.
        published: the printed table first, then tables whose rows its claims need too.
        claims: what the paper's text says the numbers show.
        settings: how it is trained.
        measure: how its columns are measured.
        notes: where the study knowingly differs from the paper, or the paper from its code.
        figure: what the report draws besides; None for nothing.
        bases: rows that are trained only because others start from them.
        remarks: what a table does not say of the numbers at hand, e.g. which of several rows was chosen.
        several: whether its rows are measured on several collections side by side: evidence then has a
            column ``COLLECTION COLUMN`` for each, and the paper's numbers are told apart by who measured.
        measured_by: what a person may set about measuring (``--set measure.KEY=VALUE``), of studies of several
            collections and of logs.
        check_measuring: sees that what is set about measuring is possible on the collections, before anything
            is made.
        tables: what is made of the numbers besides, for the terminal and the report.
        without_data: of studies of logs, whether it looks at nothing but what this package declares.
        paths: keys of ``--set`` whose values can be files or folders, besides those of recipes and of rows that a
            person may give.
    """

    name: str
    asks: str
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    published: tuple[PublishedTable, ...]
    claims: tuple[Claim, ...]
    settings: Mapping[SettingName, Setting]
    measure: Measuring
    notes: tuple[str, ...] = ()
    figure: StudyFigure | None = None
    bases: tuple[Row, ...] = ()
    remarks: Callable[[Evidence], list[str]] | None = None
    several: bool = False
    measured_by: tuple[str, ...] = ()
    check_measuring: Callable[[Mapping[str, Any], Mapping[str, Collection]], None] | None = None
    tables: Callable[[Evidence], list[Table]] | None = None
    without_data: bool = False
    topic: str = ""
    paths: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        """For the registry: what it asks."""
        return self.asks

    @property
    def of_logs(self) -> bool:
        """Whether it is of a shop's log instead of collections: nothing is trained on pictures or captions."""
        return all(row.log_alone for row in self.rows)

    @property
    def of_catalogues(self) -> bool:
        """Whether it is of a shop's catalogue: models of products and categories, trained for all rows together."""
        return all(row.catalogue_alone for row in self.rows)

    @property
    def paper(self) -> Paper:
        """Who printed it."""
        return self.published[0].paper

    def row(self, name: str) -> Row:
        """A row or base by its name."""
        for row in (*self.rows, *self.bases):
            if row.name == name:
                return row
        raise UnknownNameError(f"row of {self.name}", name, [row.name for row in self.rows])

    def resolve(self, names: list[str] | None) -> list[Row]:
        """Rows by their names or the paper's numbers, in the table's order; all when not given."""
        if not names:
            return list(self.rows)
        # The study's own table last: its numbers go before another's.
        tables = reversed(self.published)
        numbers = {row.row: row.config for table in tables for row in table.rows if row.config is not None}
        own = {row.name for row in self.rows}
        wanted = set()
        for name in names:
            config = name if name in own else numbers.get(name)
            if config not in own:
                known = [*own, *(number for number, config in numbers.items() if config in own)]
                raise UnknownNameError(f"row of {self.name}", name, known)
            wanted.add(config)
        return [row for row in self.rows if row.name in wanted]

    def printed(self, row: str, key: str) -> PublishedRow | None:
        """What the paper prints for a row on ``key``; the study's own table goes first."""
        for table in self.published:
            found = table.of(row, key)
            if found is not None:
                return found
        return None

    def printed_keys(self, dataset: str | None = None) -> list[str]:
        """What the study's own table was measured on, of several collections all its tables; of one dataset
        where given."""
        tables = self.published if self.several else self.published[:1]
        on = [one for table in tables for one in table.evaluated_on]
        return [one.key for one in on if dataset is None or one.dataset == dataset.lower()]


STUDIES: Registry[Study] = Registry("study", "diptych.studies")
"""All studies; each is declared in the file of its paper."""
