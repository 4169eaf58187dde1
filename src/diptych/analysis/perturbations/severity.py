"""How strong a change of a picture is: a severity from 1 to 5, or the amount itself.

A severity stands for an amount that the perturbation's file declares, in a unit that means the same for
pictures of every size. 3 is what is run: easy to see, and a person still recognises the picture.

Source: Hendrycks and Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and
Perturbations, ICLR 2019, for five severities.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

DEFAULT_SEVERITY = 3


class SeverityOptions(BaseModel):
    """Options of a perturbation of pictures: ``severity`` and the amount it stands for.

    A subclass declares the amount as a field and names it. Whichever of the two is given says the other;
    a severity is None where the amount is none of the five.

    Attributes:
        severity: 1 (hardly to be seen) to 5.

    >>> class Fog(SeverityOptions):
    ...     amount, amounts = "density", (0.1, 0.2, 0.3, 0.4, 0.5)
    ...     density: float = 0.3
    >>> Fog(severity=5).density, Fog(density=0.2).severity, Fog(density=0.25).severity
    (0.5, 2, None)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    amount: ClassVar[str]
    amounts: ClassVar[tuple[float, ...]]

    severity: int | None = Field(DEFAULT_SEVERITY, ge=1, le=5, strict=True)

    @model_validator(mode="before")
    @classmethod
    def _say_both(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        severity, amount = given.get("severity"), given.get(cls.amount)
        if amount is None:
            if severity is None:
                severity = DEFAULT_SEVERITY
            # Anything else is refused where the field is checked.
            known = type(severity) is int and 1 <= severity <= len(cls.amounts)
            return {**given, "severity": severity, cls.amount: cls.amounts[severity - 1 if known else 0]}
        stands_for = cls.amounts.index(amount) + 1 if amount in cls.amounts else None
        if severity is not None and severity != stands_for:
            raise ValueError(f"severity {severity} and {cls.amount} {amount} are two amounts: give one")
        return {**given, "severity": stands_for}
