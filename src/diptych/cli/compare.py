"""``diptych compare``: runs side by side, with intervals and corrected p-values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from diptych.cli.console import next_step, say, show
from diptych.core.errors import UsageError


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Two or more: a run, an evaluation's folder, a folder of runs (seeds of one recipe), or all "
            "folders of diptych analyse stress.",
            show_default=False,
        ),
    ],
    measures: Annotated[
        list[str] | None,
        typer.Option(
            "--measures",
            "--measure",
            help="E.g. R@1,rsum; those all have by default, of stress rsum and nDCG_CM@10. Repeatable.",
            show_default=False,
        ),
    ] = None,
    baseline: Annotated[int, typer.Option(help="Which run the others are compared with, from 0.")] = 0,
    test: Annotated[
        str, typer.Option(help="randomisation or t: whose p-value is corrected.")
    ] = "randomisation",
    correction: Annotated[
        str | None,
        typer.Option(help="bonferroni, holm or none.", show_default="bonferroni, of stress holm"),
    ] = None,
    samples: Annotated[
        int, typer.Option(min=0, help="Bootstrap resamples for 95 % intervals; 0 for none.")
    ] = 1000,
    flips: Annotated[int, typer.Option(min=1, help="Random swaps of the randomisation test.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Of resamples and swaps.")] = 0,
    evaluation: Annotated[
        str | None,
        typer.Option(help="Which evaluation of each run, e.g. coco-test-cxc.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Where the numbers go, as JSON.")] = Path(
        "comparison.json"
    ),
) -> None:
    """Compare two or more evaluated runs on the same test set.

    Differences are to the baseline. Images are resampled and swapped, each with its captions; a folder of
    runs counts as seeds of one recipe, and shows their mean and standard deviation.

    Of folders of diptych analyse stress: under which perturbation one loses less than the baseline, with a page.

    Examples:

      [bold]diptych compare runs/triplet runs/infonce[/bold]

      [bold]diptych compare seeds/baseline seeds/ltd --measures R@1,rsum --out ltd.json[/bold]

      [bold]diptych compare stress/gru stress/bag-of-words[/bold]
    """
    from diptych.core.files import write_json
    from diptych.evaluation import compare as compare_runs
    from diptych.training.evaluations import evaluations_of

    names = _names(runs)
    chosen = [name for text in measures for name in text.split(",")] if measures else None
    how: dict[str, Any] = {"baseline": baseline, "samples": samples, "flips": flips, "seed": seed}
    if some_stressed(runs):
        folders = dict(zip(names, runs, strict=True))
        compare_stress(folders, chosen, out, test, evaluation, correction=correction or "holm", **how)
        return
    groups = {name: evaluations_of(run, evaluation) for name, run in zip(names, runs, strict=True)}
    found = compare_runs(groups, chosen, test=test, correction=correction or "bonferroni", **how)
    show(*found.tables())
    several = any(len(group) > 1 for group in groups.values())
    spread = "; ± sample standard deviation over seeds" if several else ""
    say(f"shares in per cent, ranks from 1, rsum of both directions{spread}")
    say(found.protocol)
    say(found.line())
    write_json(out, found.to_dict())
    say(f"with everything in {out}")
    next_step(["diptych", "report", runs[0]] if (runs[0] / "run.json").is_file() else ["open", out])


def _names(runs: list[Path]) -> list[str]:
    """The shortest ends of the paths that tell them apart."""
    parts = [run.resolve().parts for run in runs]
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return [f"{'/'.join(part[-1:])} ({number})" for number, part in enumerate(parts)]


_MARKER = "stress.json"


def some_stressed(runs: Sequence[Path]) -> bool:
    """Whether folders are of stress runs: all or none."""
    stressed = [run for run in runs if (run / _MARKER).is_file()]
    others = [run for run in runs if run not in stressed]
    if stressed and others:
        inside = sorted(others[0].glob(f"stress/*/{_MARKER}"))
        fix = f"give {inside[0].parent}" if inside else f"run: diptych analyse stress {others[0]}"
        raise UsageError(f"{stressed[0]} is a stress run and {others[0]} is not", fix)
    return bool(stressed)


def compare_stress(
    folders: Mapping[str, Path],
    measures: Sequence[str] | None,
    out: Path,
    test: str,
    evaluation: str | None,
    **how: Any,
) -> None:
    """Print the tables, write the numbers to ``out`` and the page beside it."""
    from diptych.core.files import write_json
    from diptych.evaluation.stress import compare_stress as compared
    from diptych.evaluation.stress import comparison_summary, comparison_tables
    from diptych.evaluation.stress.tables import COMPARISON_LEGEND
    from diptych.report.stress import comparison_page

    if test != "randomisation":
        raise UsageError(f"stress runs are compared by randomisation, not by {test}", "leave --test out")
    if evaluation is not None:
        raise UsageError(f"--evaluation {evaluation} is given for stress runs", "leave it out")
    found = compared(folders, measures, **how)
    show(*comparison_tables(found))
    summary = (COMPARISON_LEGEND, comparison_summary(found))
    for line in (*summary, *found.notes, found.protocol_line(), found.method):
        say(line)
    write_json(out, asdict(found))
    page = comparison_page(found).save(out.with_name(f"stress-{out.stem}.html"))
    say(f"with everything in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(["open", page])
