"""``diptych compare``: runs side by side, with intervals and corrected p-values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from diptych.cli.console import next_step, say, show
from diptych.cli.sources import SamplesOption, SeedOption
from diptych.core.errors import UsageError
from diptych.core.files import write_json
from diptych.core.options import parameter


class CompareOptions(SamplesOption, SeedOption):
    """What is compared, and by which test."""

    measures: list[str] = parameter(
        [],
        "E.g. R@1,rsum. Repeatable.",
        "--measures",
        "--measure",
        default="all, of stress rsum and nDCG_CM@10",
    )
    baseline: int = parameter(0, "Which run the others are compared with, from 0.")
    test: Literal["randomisation", "t"] = parameter("randomisation", "Whose p-value is corrected.")
    correction: Literal["bonferroni", "holm", "none"] | None = parameter(
        None, "For how many are tested.", default="bonferroni, of stress holm"
    )
    flips: int = parameter(10_000, "Random swaps of the randomisation test.", ge=1)
    evaluation: str | None = parameter(None, "Which evaluation of each run, e.g. coco-test-cxc.")
    out: Path | None = parameter(None, "The numbers, as JSON; of stress with a page.", "--out", "-o")


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
    from diptych.evaluation import Comparison
    from diptych.evaluation import compare as compare_runs
    from diptych.evaluation.stress import StressComparison, compare_stress, is_stressed
    from diptych.report.stress import comparison_page
    from diptych.training.evaluations import evaluations_of

    out, stressed = options.out, is_stressed(runs)
    how: dict[str, Any] = options.model_dump(include={"baseline", "samples", "flips", "seed"})
    how["correction"] = options.correction or ("holm" if stressed else "bonferroni")
    how["measures"] = [name for text in options.measures for name in text.split(",")] or None
    folders, page = dict(zip(_names(runs), runs, strict=True)), None
    if stressed:
        for flag, given, usual in (
            ("test", options.test, "randomisation"),
            ("evaluation", options.evaluation, None),
        ):
            if given != usual:
                raise UsageError(f"--{flag} {given} is given for stress runs", f"leave --{flag} out")
        under_stress = compare_stress(folders, **how)
        found: Comparison | StressComparison = under_stress
        if out is not None:
            page = comparison_page(under_stress).save(out.with_name(f"stress-{out.stem}.html"))
    else:
        groups = {name: evaluations_of(run, options.evaluation) for name, run in folders.items()}
        found = compare_runs(groups, test=options.test, **how)
    show(*found.tables())
    for line in found.lines():
        say(line)
    if out is not None:
        write_json(out, found.to_dict())
        size = "" if page is None else f"; page {page.stat().st_size / 1e6:.1f} MB, no other files needed"
        say(f"with everything in {out}{size}")
    if (runs[0] / "run.json").is_file():
        next_step(["diptych", "report", runs[0]])
    else:
        next_step(["diptych", "compare", *runs, "--out", "FILE"] if out is None else ["open", page or out])


def _names(runs: list[Path]) -> list[str]:
    """Return the shortest ends of the paths that tell them apart."""
    parts = [run.resolve().parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{part[-1]} ({number})" for number, part in enumerate(parts)]
