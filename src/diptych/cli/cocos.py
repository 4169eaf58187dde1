"""``diptych analyse cocos``: which candidates of a training batch move a query, counted over the training set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from diptych.cli.console import next_step, progress, say, show
from diptych.cli.sources import DataSpec, OutOption, SeedOption, Source, encoded_of, parse_values, run_of
from diptych.core.errors import UsageError
from diptych.core.files import safe_name

if TYPE_CHECKING:
    from diptych.data.batches import Batch
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.objectives import Objective
    from diptych.training.run import Run


class CocosOptions(DataSpec, SeedOption, OutOption):
    """Which loss on which batches, and what counts."""

    split: str | None = Field(
        None, description="The part of the data; what the run was trained on, or train."
    )
    objective: str | None = Field(
        None,
        description="A loss; the run's own by default.",
        json_schema_extra={"names": "diptych.objectives:OBJECTIVES"},
    )
    option: list[str] = Field(
        [], description="KEY=VALUE for the objective, e.g. temperature=0.1. Repeatable."
    )
    batch_size: int | None = Field(
        None, ge=2, description="As the plan counts it.", json_schema_extra={"default": "the run's, or 128"}
    )
    plan: Literal["captions", "distinct", "grouped"] | None = Field(
        None,
        description="How batches are drawn.",
        json_schema_extra={"default": "the run's, or distinct"},
    )
    epsilon: float = Field(
        0.01, ge=0, allow_inf_nan=False, description="ε: a candidate counts when its weight is above it."
    )
    unit: Literal["temperature", "score"] = Field(
        "temperature", description="A weight is τ·|∂L/∂s| (temperature) or |∂L/∂s| (score)."
    )
    compat: Literal["none", "equations", "published"] = Field(
        "none", description="Count as Eq. 9–13 read, or as the published code does, faults included."
    )

    def loss(self, run: Run | None, temperature: float | None = None) -> Objective:
        """Return the objective; the run's own, with what it learned, where it is that one."""
        from diptych.objectives import OBJECTIVES
        from diptych.training.run import trained_objective

        given = parse_values(self.option, "--option")
        if run is not None and self.objective in (None, run.recipe.objective["name"]):
            return trained_objective(run, **given)
        if self.objective is None:
            raise UsageError(
                "no objective given", f"--objective with one of: {', '.join(OBJECTIVES.names())}"
            )
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
        plan, each = self.plan or own.plan, own.captions_per_image
        made = BatchPlan(
            encoded.caption_image, len(encoded.images), self.batch_size or own.size, plan, each, self.seed
        )
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
    from diptych.analysis.cocos import unit_factor
    from diptych.analysis.paper_counts import paper_loss
    from diptych.encoders.embeddings import Origin
    from diptych.objectives.similarity import similarity_of
    from diptych.report.analysis import cocos_page
    from diptych.report.figures import write_picture

    embedded, out, split = Origin.read(Path(source)), options.out, options.split
    run = run_of(source if embedded is None else embedded.model)
    checked = options.loss(run)  # before the work, not after it
    unit_factor(checked, options.unit)
    if options.compat != "none":
        paper_loss(checked)
    if split is None and embedded is None:
        split = "train" if run is None else run.recipe.data.train
    with progress():
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
        table = found.tables()[0]
        counts = ["  ".join(row) for row in (table.columns, *table.texts)]
        words = "\n".join([*counts, found.protocol.line(), *found.notes()])
        picture = write_picture(target / "cocos.png", found.charts(), words)
    show(*found.tables())
    for line in (found.protocol.line(), *found.notes()):
        say(line)
    say(f"with the distribution of weights in {written}, drawn in {picture}")
    next_step(["open", page])
