"""``diptych compare`` of folders of ``diptych stress``: models side by side under every perturbation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.console import next_step, print_table, say
from diptych.core.errors import UsageError

if TYPE_CHECKING:
    from diptych.evaluation.drops import DropDifference, OwnDrop
    from diptych.evaluation.stress import ComparedRow, StressComparison

_MARKER = "stress.json"


def some_stressed(runs: Sequence[Path]) -> bool:
    """Whether folders are of stress runs: all or none."""
    stressed = [run for run in runs if (run / _MARKER).is_file()]
    others = [run for run in runs if run not in stressed]
    if stressed and others:
        inside = sorted(others[0].glob(f"stress/*/{_MARKER}"))
        fix = f"give {inside[0].parent}" if inside else f"run: diptych stress {others[0]}"
        raise UsageError(f"{stressed[0]} is a stress run and {others[0]} is not", fix)
    return bool(stressed)


def compare_stress(
    folders: Mapping[str, Path],
    measures: Sequence[str] | None,
    out: Path,
    test: str,
    evaluation: str | None,
    *,
    baseline: int,
    samples: int,
    flips: int,
    seed: int,
    correction: str,
) -> None:
    """Print the tables, write the numbers to ``out`` and the page beside it."""
    from diptych.core.files import write_json
    from diptych.evaluation.stress import compare_stress, summarise_comparison
    from diptych.evaluation.stress.summary_text import left_out_text
    from diptych.report.stress_comparison import write_stress_comparison

    if test != "randomisation":
        raise UsageError(f"stress runs are compared by randomisation, not by {test}", "leave --test out")
    if evaluation is not None:
        raise UsageError(f"--evaluation {evaluation} is given for stress runs", "leave it out")
    found = compare_stress(
        folders,
        measures,
        baseline=baseline,
        samples=samples,
        flips=flips,
        seed=seed,
        correction=correction,
    )
    for model in found.others:
        columns = ("perturbation", found.baseline, model, "difference (95 %)" if samples else "difference",
                   "p", "")  # fmt: skip
        for measure in found.measures:
            title = f"{measure}: {model} against {found.baseline}"
            print_table(title, columns, _rows(found, measure, model), numbers=columns[1:5])
    say("clean, what is lost, and that in per cent of clean; a difference above 0: loses less; p corrected")
    for line in left_out_text(found):
        say(f"left out {line}")
    for line in (*summarise_comparison(found), *found.notes):
        say(line)
    say(found.protocol_line())
    say(found.method)
    write_json(out, found.to_dict())
    page = write_stress_comparison(found, out.with_name(f"stress-{out.stem}.html"))
    say(f"with everything in {out}; page {page.stat().st_size / 1e6:.1f} MB, no other files needed")
    next_step(f"open {page}")


def _rows(found: StressComparison, measure: str, model: str) -> Iterator[tuple[str, ...]]:
    from diptych.evaluation.stress.summary_text import verdict_of

    for row in found.of(measure):
        one = row.differences[model]
        yield (
            row.name,
            _own(row, found.baseline),
            _own(row, model),
            _difference(measure, one),
            "<0.001" if one.corrected < 0.001 else f"{one.corrected:.3f}",
            verdict_of(row, model),
        )


def _own(row: ComparedRow, model: str) -> str:
    from diptych.evaluation.stress.summary_text import shown, shown_lost

    own: OwnDrop = row.own(model)
    share = "" if own.relative is None or own.difference == 0 else f" ({100 * own.relative:+.1f} %)"
    return f"{shown(row.measure, own.clean)} {shown_lost(row.measure, own.difference)}{share}"


def _difference(measure: str, one: DropDifference) -> str:
    from diptych.evaluation.stress.summary_text import shown_lost

    text = shown_lost(measure, one.difference)
    if one.low is None or one.high is None:
        return text
    return f"{text} ({shown_lost(measure, one.low)} to {shown_lost(measure, one.high)})"
