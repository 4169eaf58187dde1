"""Shop logs: raw files in, one canonical table of events out."""

from diptych.data.logs.canonical import LOG_FORMATS, LogFormat
from diptych.data.logs.ingest import ingest
from diptych.data.logs.log import Log
from diptych.data.logs.mapping import ColumnMapping, read_mapping
from diptych.data.logs.rules import Cleaning

__all__ = ["LOG_FORMATS", "Cleaning", "ColumnMapping", "Log", "LogFormat", "ingest", "read_mapping"]
