"""One file per dataset format; ``read_collection`` picks the one that recognises a path."""

from diptych.data.readers.declaration import READERS, Reader, has_own_format, read_collection

__all__ = ["READERS", "Reader", "has_own_format", "read_collection"]
