"""Shop logs: raw files in, one canonical table of events out."""

from diptych.data.logs.cleaning import Cleaning
from diptych.data.logs.declaration import LOG_FORMATS, LogFormat
from diptych.data.logs.ingest import ingest
from diptych.data.logs.log import Log
from diptych.data.logs.mapping import ColumnMapping, read_mapping

__all__ = ["LOG_FORMATS", "Cleaning", "ColumnMapping", "Log", "LogFormat", "ingest", "read_mapping"]
