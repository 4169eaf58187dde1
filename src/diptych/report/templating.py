"""Templates of pages: everything from outside is escaped, a missing value is an error."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates(package: str = "diptych.report") -> Environment:
    """The templates of a package; those of the report, which hold the look, lie behind them.

    Filters: ``digits`` writes a number with thousands separators and so many decimals.
    """
    import jinja2

    packages = dict.fromkeys((package, "diptych.report"))
    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(name, "templates") for name in packages]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["digits"] = lambda value, decimals: f"{value:,.{decimals}f}"
    return environment
