"""``diptych compare``: runs side by side, with intervals and corrected p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from pydantic import Field

from diptych.cli.console import next_step, say, show
from diptych.cli.sources import SamplesOption, SeedOption
from diptych.core.errors import UsageError
from diptych.core.files import write_json

_MARKER = "stress.json"


class CompareOptions(SamplesOption, SeedOption):
    """What is compared, and by which test."""

    measures: list[str] = Field(
        [],
        description="E.g. R@1,rsum. Repeatable.",
        json_schema_extra={
            "flags": ["--measures", "--measure"],
            "default": "all, of stress rsum and nDCG_CM@10",
        },
    )
    baseline: int = Field(0, description="Which run the others are compared with, from 0.")
    test: Literal["randomisation", "t"] = Field("randomisation", description="Whose p-value is corrected.")
    correction: Literal["bonferroni", "holm", "none"] | None = Field(
        None,
        description="For how many are tested.",
        json_schema_extra={"default": "bonferroni, of stress holm"},
    )
    flips: int = Field(10_000, ge=1, description="Random swaps of the randomisation test.")
    evaluation: str | None = Field(None, description="Which evaluation of each run, e.g. coco-test-cxc.")
    out: Path | None = Field(
        None,
        description="The numbers, as JSON; of stress with a page.",
        json_schema_extra={"flags": ["--out", "-o"]},
    )

    @property
    def names(self) -> list[str] | None:
        """The measures; None where none is given."""
        return [name for text in self.measures for name in text.split(",")] or None


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Runs, evaluations' folders, folders of runs (seeds of one recipe), or folders of stress.",
            metavar="RUN",
        ),
    ],
    options: CompareOptions,
) -> None:
    """Compare two or more evaluated runs on the same test set.

    Images are resampled and swapped, each with its captions. Of a folder of runs the mean and the standard
    deviation are shown. Of folders of diptych analyse stress: under which perturbation one loses less.

    Examples:
        diptych compare runs/triplet runs/infonce
        diptych compare seeds/baseline seeds/ltd --measures R@1,rsum --out ltd.json
        diptych compare stress/gru stress/bag-of-words
    """
    from diptych.evaluation import compare as compare_runs
    from diptych.training.evaluations import evaluations_of

    names, out = _names(runs), options.out
    if _are_stressed(runs):
        _compare_stress(dict(zip(names, runs, strict=True)), options)
        return
    groups = {name: evaluations_of(run, options.evaluation) for name, run in zip(names, runs, strict=True)}
    how = options.model_dump(include={"baseline", "test", "samples", "flips", "seed"})
    found = compare_runs(groups, options.names, correction=options.correction or "bonferroni", **how)
    show(*found.tables())
    several = any(len(group) > 1 for group in groups.values())
    spread = "; ± sample standard deviation over seeds" if several else ""
    say(f"shares in per cent, ranks from 1, rsum of both directions{spread}")
    say(found.protocol)
    say(found.line())
    if out is not None:
        write_json(out, found.to_dict())
        say(f"with everything in {out}")
    next_step(["diptych", "report", runs[0]] if (runs[0] / "run.json").is_file() else _again(runs, out))


def _again(runs: Sequence[Path], out: Path | None) -> list[object]:
    return ["diptych", "compare", *runs, "--out", "FILE"] if out is None else ["open", out]


def _names(runs: list[Path]) -> list[str]:
    """Return the shortest ends of the paths that tell them apart."""
    parts = [run.resolve().parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(part[-1:])} ({number})" for number, part in enumerate(parts)]


def _are_stressed(runs: Sequence[Path]) -> bool:
    """Return whether folders are of stress runs: all or none."""
    stressed = [run for run in runs if (run / _MARKER).is_file()]
    others = [run for run in runs if run not in stressed]
    if stressed and others:
        inside = sorted(others[0].glob(f"stress/*/{_MARKER}"))
        fix = f"give {inside[0].parent}" if inside else f"run: diptych analyse stress {others[0]}"
        raise UsageError(f"{stressed[0]} is a stress run and {others[0]} is not", fix)
    return bool(stressed)


def _compare_stress(folders: Mapping[str, Path], options: CompareOptions) -> None:
    """Print the tables; write the numbers where they are wanted, and the page beside them."""
    from diptych.evaluation.stress import compare_stress, comparison_summary, comparison_tables
    from diptych.evaluation.stress.tables import COMPARISON_LEGEND
    from diptych.report.stress import comparison_page

    if options.test != "randomisation":
        raise UsageError(
            f"stress runs are compared by randomisation, not by {options.test}", "leave --test out"
        )
    if options.evaluation is not None:
        raise UsageError(f"--evaluation {options.evaluation} is given for stress runs", "leave it out")
    how = options.model_dump(include={"baseline", "samples", "flips", "seed"})
    found = compare_stress(folders, options.names, correction=options.correction or "holm", **how)
    show(*comparison_tables(found))
    summary = (COMPARISON_LEGEND, comparison_summary(found))
    for line in (*summary, *found.notes, found.protocol_line(), found.method):
        say(line)
    page, out = None, options.out
    if out is not None:
        write_json(out, asdict(found))
        page = comparison_page(found).save(out.with_name(f"stress-{out.stem}.html"))
        say(f"with everything in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(_again([*folders.values()], page))
