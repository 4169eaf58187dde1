"""What models side by side under stress come to, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from diptych.evaluation.stress.beside import BesideRow, StressComparison
from diptych.evaluation.stress.sayings import shown_difference

_WHOSE = {"t2i": "captions", "i2t": "pictures"}


def verdict_of(row: BesideRow, model: str) -> str:
    """``B more robust``, ``B less robust``, or nothing; and who does not see the change at all."""
    verdict = row.differences[model].verdict
    if not verdict:
        return ""
    baseline = next(name for name in row.unseen if name not in row.differences)
    blind = [name for name in (model, baseline) if blind_to(row, name)]
    return f"{model} {verdict}" + (f", {_listed(blind)} blind to it" if blind else "")


def blind_to(row: BesideRow, model: str) -> bool:
    """Whether a model gives every changed query the very row of the clean one."""
    return row.unseen[model] == 1


def shown_lost(measure: str, value: float) -> str:
    """A drop, or how two differ; of gains with one decimal more, for they differ by little."""
    return shown_difference(measure, value, digits=4)


def say_left_out(found: StressComparison) -> list[str]:
    """What is left out, those of one reason together."""
    return [
        f"{_listed([name for name, one in found.left_out.items() if one == reason])} ({reason})"
        for reason in dict.fromkeys(found.left_out.values())
    ]


def say_beside(found: StressComparison) -> list[str]:
    """The sentences: who is more robust under what, by the first measure, and what that may rest on."""
    said = []
    for model in found.others:
        for way, whose in _WHOSE.items():
            rows = [row for row in found.of(found.measures[0]) if row.direction == way]
            if rows:
                said.append(_side(found, model, rows, whose))
        said += _disagreements(found, model)
    rows = found.of(found.measures[0])
    for model in found.models:
        blind = [row.name for row in rows if blind_to(row, model)]
        if blind:
            said.append(
                f"{model} does not see {_listed(blind)}: changed queries have the rows of clean ones, "
                "so that it loses nothing is blindness"
            )
    told = [
        row.name
        for row in rows
        if not row.keeps_meaning and any(one.verdict for one in row.differences.values())
    ]
    if told:
        said.append(
            f"{_listed(told)}: what the caption says changes, so a model that reads it should lose; to lose "
            "less is no merit by itself"
        )
    return said


def _side(found: StressComparison, model: str, rows: Sequence[BesideRow], whose: str) -> str:
    """One model against the baseline, by queries of one side."""
    measure, base, parts = found.measures[0], found.baseline, []
    for verdict in ("more robust", "less robust"):
        some = [row for row in rows if row.differences[model].verdict == verdict]
        if some:
            some.sort(key=lambda row: -abs(row.differences[model].difference))
            names = _listed([row.name for row in some])
            parts.append(f"{verdict} than {base} under {len(some)} of {len(rows)}: {names}")
    if not parts:
        parts.append(f"not to be told from {base} under any of {len(rows)}")
    return f"By {measure}, {whose} perturbed, {model} is {'; '.join(parts)}"


def _disagreements(found: StressComparison, model: str) -> list[str]:
    """Where points and shares of the own clean value point to different models."""
    said = []
    for measure in found.measures:
        names = []
        for row in found.of(measure):
            one = row.differences[model]
            if not one.verdict or one.relative_low is None or one.relative_high is None:
                continue
            if (one.difference > 0 and one.relative_high < 0) or (
                one.difference < 0 and one.relative_low > 0
            ):
                names.append(row.name)
        if names:
            said.append(
                f"{measure}: as a share of its own clean value it is the other way round for {model} under "
                f"{_listed(names)}"
            )
    return said


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
