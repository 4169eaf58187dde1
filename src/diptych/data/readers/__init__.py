"""One file per dataset format; ``read_collection`` picks the one that recognises a path."""

from diptych.data.readers.declaration import READERS, Reader, read_collection

__all__ = ["READERS", "Reader", "read_collection"]
