"""Shop logs: raw files in, one canonical table of events out."""

from diptych.commerce.logs.canonical import LOG_FORMATS, LogFormat
from diptych.commerce.logs.ingest import ingest
from diptych.commerce.logs.log import Log
from diptych.commerce.logs.mapping import ColumnMapping, read_mapping
from diptych.commerce.logs.rules import Cleaning

__all__ = ["LOG_FORMATS", "Cleaning", "ColumnMapping", "Log", "LogFormat", "ingest", "read_mapping"]
