"""``diptych analyse granularity`` and ``cocos``: what captions say, and which candidates move a query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from diptych.cli.console import next_step, show
from diptych.cli.sources import (
    CaptionsOption,
    DataSpec,
    LanguageSpec,
    OutOption,
    SamplesOption,
    SeedOption,
    Source,
    SplitOption,
    encoded_of,
    parse_values,
    run_of,
)
from diptych.cli.study_data import DataChoices
from diptych.core.errors import UsageError
from diptych.core.files import safe_name
from diptych.core.options import parameter

if TYPE_CHECKING:
    from diptych.data.batches import Batch
    from diptych.data.collection import Collection
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.objectives import Objective
    from diptych.training.run import Run


class GranularityOptions(
    DataChoices, CaptionsOption, SplitOption, LanguageSpec, SamplesOption, SeedOption, OutOption
):
    """What is counted, of which captions."""

    data: list[str] = parameter(
        ...,
        "A dataset: folder or file, or NAME=DATASET; and another one to compare it with.",
        argument=True,
        metavar="COLLECTION",
    )
    feature: list[str] = parameter([], "A feature. Repeatable.", default="all")
    compat: Literal["none", "published"] = parameter(
        "none", "published: as the numbers of thesis Table 5.1 are counted."
    )
    pairing: Literal["auto", "images", "none"] = parameter(
        "auto", "By image: auto, where one collection has all of the other's; images, those in common."
    )
    examples: int = parameter(2, "Captions at each extreme, to show.", "--examples", "-n", ge=0, le=5)

    def parts(self) -> list[tuple[Collection, str]]:
        """Return what is measured of each collection, under the name that was given, and its split's name."""
        from dataclasses import replace

        from diptych.data.captions import choose_captions
        from diptych.encoders.embeddings import read_data

        if len(self.data) > 2:
            raise UsageError(f"{len(self.data)} collections are given", "one, or two to compare")
        parts = []
        for name, section in self.several():
            whole = read_data(section)
            part, split = whole.part(self.split)
            parts.append((replace(choose_captions(part, self.captions), name=name or whole.name), split))
        if len({part.name for part, _ in parts}) < len(parts):
            raise UsageError(f"both collections are called {parts[0][0].name!r}", "name them: NAME=DATASET")
        return parts


def granularity(options: GranularityOptions) -> None:
    """Count adjectives, phrases, determiners, concepts and words of captions; compare two collections.

    Every feature has an interval over images; two collections of the same images are compared in pairs, with
    effect sizes and corrected p-values.

    Examples:
        diptych analyse granularity coco=dataset_coco.json fg=MSCOCO_FG_ann.json
        diptych analyse granularity a=scenes b=scenes --reader-option b.finer=2
    """
    from diptych.analysis.granularity import compare_granularity
    from diptych.analysis.granularity import granularity as measure
    from diptych.analysis.granularity.result import Granularity
    from diptych.analysis.granularity.tables import comparison_table, granularity_tables
    from diptych.core.files import check_replaceable
    from diptych.data.language.open import is_of_scenes
    from diptych.metrics.bootstrap import Bootstrap
    from diptych.report.analysis import granularity_page

    out, parts = options.out, options.parts()
    folders = [None if out is None else out / safe_name(part.name) for part, _ in parts]
    for folder in folders:
        if folder is not None:
            check_replaceable(folder, Granularity.marker())  # all of them before the work
    how: dict[str, Any] = {
        # one language for all: that of scenes where all are scenes
        "language": options.open(parts[0][0] if all(is_of_scenes(part) for part, _ in parts) else None),
        "features": options.feature or None,
        "compat": options.compat,
        "bootstrap": Bootstrap(options.samples, seed=options.seed),
    }
    measured = [
        measure(part, split=split, folder=folder, **how)
        for (part, split), folder in zip(parts, folders, strict=True)
    ]
    show(*granularity_tables(measured, options.examples))
    compared = None
    if len(measured) == 2:
        compared = compare_granularity(*measured, pairing=options.pairing, bootstrap=how["bootstrap"])
        show(comparison_table(compared), *compared.notes)
    show(*(one.line() for one in measured))
    if out is None:
        next_step(["diptych", "analyse", "granularity", *options.data, "--out", "FOLDER"])
        return
    if compared is not None:
        compared.save(out / "comparison.json")
    page = granularity_page(measured, compared).save(out / "report.html")
    show(f"written to {out}")
    next_step(["open", page])


class CocosOptions(DataSpec, SeedOption, OutOption):
    """Which loss on which batches, and what counts."""

    split: str | None = parameter(None, "The part of the data; what the run was trained on, or train.")
    objective: str | None = parameter(
        None, "A loss; the run's own by default.", names="diptych.objectives:OBJECTIVES"
    )
    option: list[str] = parameter([], "KEY=VALUE for the objective, e.g. temperature=0.1. Repeatable.")
    batch_size: int | None = parameter(None, "As the plan counts it.", ge=2, default="the run's, or 128")
    plan: Literal["captions", "distinct", "grouped"] | None = parameter(
        None, "How batches are drawn.", default="the run's, or distinct"
    )
    epsilon: float = parameter(
        0.01, "ε: a candidate counts when its weight is above it.", ge=0, allow_inf_nan=False
    )
    unit: Literal["temperature", "score"] = parameter(
        "temperature", "A weight is τ·|∂L/∂s| (temperature) or |∂L/∂s| (score)."
    )
    compat: Literal["none", "equations", "published"] = parameter(
        "none", "Count as Eq. 9–13 read, or as the published code does, faults included."
    )

    def loss(self, run: Run | None, temperature: float | None = None) -> Objective:
        """Return the objective; the run's own, with what it learned, where it is that one."""
        from diptych.objectives import OBJECTIVES
        from diptych.training.run import trained_objective

        given = parse_values(self.option, "--option")
        if run is not None and self.objective in (None, run.recipe.objective["name"]):
            return trained_objective(run, **given)
        if self.objective is None:
            names = ", ".join(OBJECTIVES.names())
            raise UsageError("no objective given", f"--objective with one of: {names}")
        kind = OBJECTIVES.get(self.objective)
        # An encoder from elsewhere was trained with a loss that learns its temperature; a run was not, with this.
        if run is None and temperature is not None and "learn_temperature" in kind.options:
            given = {"temperature": temperature, **given}
        return kind(**given)

    def batches(self, run: Run | None, encoded: EncodedCollection) -> tuple[list[Batch], dict[str, Any]]:
        """Return an epoch of batches, as the run drew them where nothing else is given, and how they are drawn."""
        from diptych.data.batches import BatchPlan
        from diptych.training.sections import Batches

        own = Batches() if run is None else run.recipe.batches
        plan, each, size = self.plan or own.plan, own.captions_per_image, self.batch_size or own.size
        made = BatchPlan(encoded.caption_image, len(encoded.images), size, plan, each, self.seed)
        drawn = {"plan": plan, "captions per image": each if plan == "grouped" else None, "seed": self.seed}
        return made.epoch(0), drawn


def cocos(source: Source, options: CocosOptions) -> None:
    """Count contributing samples (COCOS): which candidates of a batch move a query, for any loss.

    Batches of the training split are drawn once through, without dropout and augmentation; every count is a
    mean over them.

    Examples:
        diptych analyse cocos runs/flickr8k
        diptych analyse cocos runs/flickr8k --objective triplet --option margin=0.2
        diptych analyse cocos hf:NAME --data flickr30k --objective infonce -o cocos
    """
    from diptych.analysis import cocos_over
    from diptych.analysis.cocos import check_counting
    from diptych.encoders.embeddings import Origin
    from diptych.objectives.similarity import similarity_of
    from diptych.report.analysis import cocos_page
    from diptych.report.figures import write_picture

    embedded, out, split = Origin.read(Path(source)), options.out, options.split
    run = run_of(source if embedded is None else embedded.model)
    # before the work, not after it
    check_counting(options.loss(run), options.epsilon, options.unit, options.compat)
    if split is None and embedded is None:
        split = "train" if run is None else run.recipe.data.train
    encoded, origin, _ = encoded_of(source, options, split, None if out is None else out / "embeddings")
    batches, drawn = options.batches(run, encoded)
    about = {
        "dataset": encoded.about["dataset"],
        "split": origin.split or "all",
        "encoder": encoded.images.encoder,
        "data": encoded.about["data"],
    }
    shortcuts = None if run is None else run.recipe.shortcuts
    if shortcuts is not None and shortcuts.setup != "none":
        about["shortcuts"] = f"none, trained with {shortcuts.setup}"
    found = cocos_over(
        encoded.images.rows,
        encoded.texts.rows,
        batches,
        options.loss(run, encoded.about["encoder"].get("temperature")),
        options.epsilon,
        unit=options.unit,
        compat=options.compat,
        similarity=similarity_of(encoded.similarity),
        about={**about, **drawn},
    )
    counted = "" if options.compat == "none" else f"-{options.compat}"
    name = safe_name(f"{about['dataset']}-{about['split']}-{found.protocol.objective}{counted}")
    target = Path(source) / "cocos" / name if out is None else out / "cocos"
    written = found.save(target / "cocos.json")
    page = cocos_page(found).save(target / "cocos.html")
    table, lines = found.tables()[0], [found.protocol.line(), *found.notes()]
    counts = ["  ".join(row) for row in (table.columns, *table.texts)]
    picture = write_picture(target / "cocos.png", found.charts(), "\n".join([*counts, *lines]))
    show(*found.tables(), *lines)
    show(f"with the distribution of weights in {written}, drawn in {picture}")
    next_step(["open", page])
