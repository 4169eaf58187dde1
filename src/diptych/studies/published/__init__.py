"""What the papers print: one TOML file per paper, and the tables read from it."""

from diptych.studies.published.tables import (
    Cell,
    EvaluatedOn,
    Paper,
    PublishedRow,
    PublishedTable,
    either,
    extent_of,
    published_papers,
    published_table,
    published_tables,
)

__all__ = [
    "Cell",
    "EvaluatedOn",
    "Paper",
    "PublishedRow",
    "PublishedTable",
    "either",
    "extent_of",
    "published_papers",
    "published_table",
    "published_tables",
]
