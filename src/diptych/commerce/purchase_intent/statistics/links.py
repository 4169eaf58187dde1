"""What kind of link there is between two devices: thesis section 6.4.4 and Figure 6.5, made exact.

The thesis tells strong links (switches both ways have high probability), one-sided ones (high one way, close to zero
back) and weak ones (close to zero both ways) apart by eye. Its words and numbers leave little room: 1/16 from TV to
tablet is high, and so is about 0.02 from PC to tablet, the least that the stated ratios of the three strong links allow
for; game consoles and TVs are switched to with a probability close to zero. That both bounds are 0.01 is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Link = Literal["self", "strong", "one-sided", "weak", "none"]

LINKS: Mapping[Link, str] = {
    "self": "stays on the device",
    "strong": "switches both ways are likely",
    "one-sided": "likely one way, close to zero back",
    "weak": "close to zero both ways",
    "none": "between likely and close to zero, or nobody was seen to switch from the other device",
}


def link(there: float, back: float | None, *, likely: float, near_zero: float) -> Link:
    """The kind of link between two different devices; the same from either side.

    Args:
        there, back: probabilities of the two switches; None where the device was never left nor kept.
    """
    if back is None:
        return "none"
    lower, higher = sorted((there, back))
    if lower >= likely:
        return "strong"
    if higher < near_zero:
        return "weak"
    return "one-sided" if higher >= likely and lower < near_zero else "none"
