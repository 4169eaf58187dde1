"""One file per dataset format; ``read_collection`` picks the one that recognises a path."""

from diptych.data.readers.choose import read_collection
from diptych.data.readers.declaration import READERS, Reader

__all__ = ["READERS", "Reader", "read_collection"]
