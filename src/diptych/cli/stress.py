"""``diptych analyse stress``: which changes of captions and images hurt an encoder, and whether it is significant."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import model_validator

from diptych.cli.console import next_step, say, show, stop_on_signal
from diptych.cli.sources import (
    LanguageSpec,
    Model,
    OutOption,
    PartSpec,
    SamplesOption,
    encoder_of,
    named,
    options_by_name,
)
from diptych.core.errors import UsageError
from diptych.core.options import parameter


class StressOptions(PartSpec, LanguageSpec, SamplesOption, OutOption):
    """What is perturbed, and what is measured."""

    collection: Path | None = parameter(
        None, "A dataset, the same as --data; a run's own by default.", argument=True
    )
    perturb: list[str] = parameter(
        [],
        "Perturbations or groups, or text, pictures, thesis, all. Repeatable, or with commas.",
        default="all",
        names="diptych.analysis.perturbations:PERTURBATIONS",
    )
    seeds: int | None = parameter(
        None, "How many seeds, from 0.", ge=1, default="3; 1 with --compat published"
    )
    set_: list[str] = parameter(
        [], "NAME.KEY=VALUE for a perturbation, e.g. blur.severity=5. Repeatable.", "--set"
    )
    measure: list[str] = parameter(
        [],
        "Shares, gains, or rsum of one direction. Repeatable.",
        default="R@1, R@5, R@10, rsum, DCG_CM@10, nDCG_CM@10",
        names="diptych.metrics:MEASURES",
    )
    gallery: Literal["split", "all"] = parameter("split", "What captions search: images of it.")
    relevance: str | None = parameter(
        None, "A model whose similarity is the gain of DCG_CM; the stressed one's by default."
    )
    compat: Literal["none", "published"] = parameter(
        "none", "published: perturbations as the thesis's published code made them."
    )
    flips: int = parameter(100_000, "Random swaps for p-values.", ge=1)

    @model_validator(mode="after")
    def _one_dataset(self) -> Self:
        if self.collection is None:
            return self
        if self.data is not None:
            raise UsageError(f"both {self.collection} and --data {self.data} are given", "give one of them")
        return self.model_copy(update={"data": self.collection})


def stress(model: Model, options: StressOptions) -> None:
    """Perturb queries and measure what it costs, with intervals and corrected p-values.

    Perturbed captions search images, perturbed images search captions; the gallery stays clean. Ctrl-C stops at
    the next batch; the same command resumes, after kill -9 too.

    Examples:
        diptych analyse stress runs/flickr8k --perturb typos --seeds 1
        diptych analyse stress hf:NAME flickr30k --perturb thesis --out clip
    """
    from diptych.analysis.perturbations import choose_perturbations
    from diptych.evaluation.sources import stress_named
    from diptych.report.stress import stress_page

    names = [name for text in options.perturb or ["all"] for name in text.split(",") if name]
    chosen = choose_perturbations(names)
    with stop_on_signal():
        found, folder, whole = stress_named(
            named(model, options, options.split),
            options.out,
            chosen,
            language=options.open,
            seeds=None if options.seeds is None else range(options.seeds),
            options=options_by_name(options.set_),
            relevance=None if options.relevance is None else encoder_of(options.relevance)[0],
            measures=options.measure or None,
            required={one.name for one in chosen} & set(names),
            **options.model_dump(include={"compat", "gallery", "samples", "flips"}),
        )
        page = stress_page(found, whole).save(folder / "report.html")
    show(*(table for table in found.tables() if not table.folded))
    for line in found.lines():
        say(line)
    if found.opened:
        say(f"{folder} held this run, finished, of the same content: opened, not run again")
    say(f"everything in {folder}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])
