"""One file per dataset format; ``read_collection`` picks the one whose file names a path has."""

from diptych.data.readers.contract import READERS, Reader, has_own_format, read_collection

__all__ = ["READERS", "Reader", "has_own_format", "read_collection"]
