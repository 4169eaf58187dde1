"""Pictures of datasets that ship only their addresses: fetched politely, kept whole, resumed where it stopped."""

from diptych.data.downloads.download import Downloads, download_pictures
from diptych.data.downloads.options import JOURNAL, DownloadOptions, Wanted, read_wanted, wanted_of

__all__ = [
    "JOURNAL",
    "DownloadOptions",
    "Downloads",
    "Wanted",
    "download_pictures",
    "read_wanted",
    "wanted_of",
]
