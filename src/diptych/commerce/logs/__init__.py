"""Shop logs: raw files in, one canonical table of events out."""

from diptych.commerce.logs.formats import LOG_FORMATS, ColumnMapping, LogFormat, read_mapping
from diptych.commerce.logs.ingest import Cleaning, ingest
from diptych.commerce.logs.log import Log

__all__ = ["LOG_FORMATS", "Cleaning", "ColumnMapping", "Log", "LogFormat", "ingest", "read_mapping"]
