"""Theorem 1's gap in bits: what a task-optimal image representation would hold beyond the measured one.

Definition 5 of the thesis: a representation of an image that is minimally sufficient for one caption
holds what the image shares with that caption, all it states, and nothing else. Definition 6: a
task-optimal one holds what any of the captions states. Between the two lies what the other captions
state and this one does not.

Bits of several facts are added up as if the facts did not depend on each other; where they do (an
object's place and its relation to the others), both what is there and what is held are upper counts.

Source: Hendriksen's thesis, chapter 4 (Bleeker et al., TMLR 2024), Eq. 4.1, Definitions 5 and 6,
Theorem 1.
"""

from __future__ import annotations

from dataclasses import dataclass

from diptych.analysis.information.figures import Side


@dataclass(frozen=True)
class Gap:
    """Bits per image, on average over test images.

    Attributes:
        shared: stated by every caption, shortcut digits not among them.
        minimal: stated by one caption, on average over captions: what is minimal and sufficient for it.
        optimal: stated by any caption (task-relevant): what is task-optimal.
        shortcut: of shortcut digits among ``optimal``: 0 where no caption ends with what its picture carries.
        held: of ``optimal``, what the rows hold, and the ends of its interval.
    """

    shared: float
    minimal: float
    optimal: float
    shortcut: float
    held: tuple[float, float, float]

    @property
    def gap(self) -> tuple[float, float, float]:
        """``optimal`` less ``held``, and the ends of its interval."""
        value, low, high = self.held
        return self.optimal - value, self.optimal - high, self.optimal - low


def gap_of(side: Side, probe: str) -> Gap | None:
    """The gap of image rows by one probe; None where nobody says what captions state (words)."""
    optimal, minimal = side.group("task-relevant"), side.group("one caption")
    if optimal is None or minimal is None or probe not in optimal.held:
        return None
    whole = optimal.held[probe]
    facts = {
        name: 0.0 if (figure := side.group(name)) is None else figure.held[probe].there
        for name in ("shared", "partial", "specific")
    }
    # what captions state is facts of these three kinds, and digits; less than this is rounding
    rest = whole.there - sum(facts.values())
    shortcut = rest if rest > 1e-9 * whole.there else 0.0
    low, high = whole.ends
    return Gap(
        facts["shared"],
        minimal.held[probe].there,
        whole.there,
        shortcut,
        (whole.bits, whole.there * low / 100, whole.there * high / 100),
    )
