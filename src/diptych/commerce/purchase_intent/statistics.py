"""Statistics of a log's sessions (thesis sections 6.3 and 6.4): counted by any engine, finished by one query each.

The sessions are counted once into small tables, of which a query takes integers and keys on DuckDB or Spark; another
makes shares, intervals and standardised rates of them, in DuckDB, so that engines cannot differ in them. Both stand in
``statistics.toml``. Intervals take sessions as independent of each other. Those of one visitor are not
quite, so that with many sessions per visitor the truth lies outside more often than stated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from diptych.commerce.purchase_intent.engine import Engine
from diptych.commerce.purchase_intent.options import DescribeOptions
from diptych.commerce.purchase_intent.sessions import SessionTables
from diptych.core.extras import require
from diptych.core.reading import read_toml
from diptych.core.registry import Registry

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import pyarrow as pa

Row = dict[str, Any]

ALL = "all"  # in the place of a device: all of them together; a device that a log calls so is called "all" in quotes
CLASSES = (True, False)  # purchase sessions and others, in the order of tables


class Counts:
    """A log's sessions and queries, and small tables of counts, each counted once when it is first needed."""

    def __init__(
        self, engine: Engine, tables: SessionTables, options: DescribeOptions, held: ExitStack
    ) -> None:
        self.options, self.engine, self._held = options, engine, held
        read = {name: engine.read(tables.files(name)) for name in ("sessions", "queries")}
        self._words: dict[str, str] = _DECLARED["words"] | {"counted": _DECLARED["words"][options.journey]}
        if "weekend" in read["sessions"].columns:  # a table of whole sessions brings it
            self._words["weekend"] = "weekend"
        self._words |= {name: table.get_name() for name, table in read.items()}

    def of(self, sql: str) -> ir.Table:
        """Return the rows of a query, in whose braces tables of counts stand by name."""
        for name, counted in _DECLARED["tables"].items():
            if f"{{{name}}}" in sql and name not in self._words:
                self._words[name] = self._held.enter_context(self.engine.held(self.of(counted))).get_name()
        return self.engine.sql(sql.format(**self._words))


@dataclass(frozen=True)
class Statistic:
    """One statistic, as ``statistics.toml`` declares it."""

    name: str
    description: str
    source: str
    counted: str  # SQL of what an engine counts
    sql: str  # from counts to rows
    columns: str
    section: str
    uses: str = ""  # by it, of macros
    cells: str = ""
    whole: str = ""
    title: str = ""
    shown: Sequence[Mapping[str, Any]] = ()  # columns of its table
    charts: Sequence[Mapping[str, Any]] = ()
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)  # pattern of a study's rows → of LACKS

    def rows(self, counts: Counts) -> list[Row]:
        return self.finish(counts.engine.to_arrow(counts.of(self.counted)), counts.options)

    def finish(self, counted: pa.Table, options: DescribeOptions) -> list[Row]:
        """Return the rows of what was counted: plain numbers, None where there is none."""
        z, macros = NormalDist().inv_cdf((1 + options.confidence) / 2), _DECLARED["macros"]
        with require("duckdb", "commerce", "describing a log").connect() as database:
            for name, value in (("ddof", options.ddof), ("z", z)):
                database.execute(f"SET VARIABLE {name} = ?", [value])
            database.register("given", counted)
            # in an order, for sums of rates are rounded
            database.execute("CREATE TABLE counted AS FROM given ORDER BY ALL")
            database.execute(macros["shares"] + macros.get(self.uses, ""))
            found = database.sql(self.sql).select(*self.columns.split())
            return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]


_DECLARED = read_toml(Path(__file__).with_suffix(".toml"))
LACKS: Mapping[str, str] = _DECLARED["lacks"]
STATISTICS: Registry[Statistic] = Registry("statistic", __name__)
for _name, _one in _DECLARED["statistics"].items():
    STATISTICS.add(Statistic(_name, **_one))
ORDER = tuple(_DECLARED["statistics"])  # as the thesis has them
