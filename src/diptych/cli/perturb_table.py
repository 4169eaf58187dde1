"""What ``diptych perturb`` shows: every perturbation there is, and what became of captions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from diptych.cli.console import next_step, print_table

if TYPE_CHECKING:
    from diptych.analysis.perturbations import PerturbedCaptions
    from diptych.analysis.perturbations.perturbed_folder import CaptionList

__all__ = ["Shown", "list_perturbations"]

_LONG = 160
"""Characters of a caption that a table shows."""


def list_perturbations() -> None:
    """A table for each group."""
    from diptych.analysis.perturbations import GROUPS, choose_perturbations

    every = choose_perturbations(["all"])
    for group, what in GROUPS.items():
        rows = []
        for one in every:
            if one.group == group:
                defaults = ((key, given.default) for key, given in one.options.model_fields.items())
                options = " ".join(
                    f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                    for key, value in defaults
                )
                rows.append((one.name, one.description, "yes" if one.keeps_meaning else "no", options))
        columns = ("perturbation", "what it changes", "meaning stays", "options")
        if rows:
            print_table(f"{group}: {what}", columns, rows)
    next_step("diptych perturb DATA --perturb NAME --out FOLDER")


@dataclass
class Shown:
    """What the tables show of results that pass by."""

    whole: CaptionList
    most: int
    counts: list[tuple[str, ...]] = field(default_factory=list)
    examples: list[tuple[str, str, str]] = field(default_factory=list)

    def watch(self, results: Iterable[PerturbedCaptions]) -> Iterator[PerturbedCaptions]:
        """The same results, each noted before it is given on; examples are of a perturbation's first seed."""
        for result in results:
            why = "; ".join(f"{reason} {count:,}" for reason, count in result.reasons.items())
            numbers = (str(result.seed), f"{result.n_changed:,}", f"{len(result.texts):,}")
            if not any(row[0] == result.name for row in self.counts):
                rows = result.changed.nonzero()[0][: self.most]
                self.examples += [
                    (result.name, *_around_change(self.whole.captions[row], result.texts[row]))
                    for row in rows
                ]
            self.counts.append((result.name, *numbers, why))
            yield result


def _around_change(before: str, after: str) -> tuple[str, str]:
    """Both texts, or of long ones what stands around the first difference."""
    short = min(len(before), len(after))
    first = next((place for place in range(short) if before[place] != after[place]), short)
    start = max(0, first - _LONG // 3) if max(len(before), len(after)) > _LONG else 0
    shown = slice(start, start + _LONG)
    lead, tails = "…" * (start > 0), ["…" * (len(text) > shown.stop) for text in (before, after)]
    return lead + before[shown] + tails[0], lead + after[shown] + tails[1]
