"""Pictures of datasets that ship only their addresses: fetched politely, kept whole, resumed where it stopped."""

from diptych.commerce.downloads.download import Downloads, download_pictures
from diptych.commerce.downloads.options import (
    JOURNAL,
    DownloadOptions,
    FetchOptions,
    Wanted,
    addresses_in,
    is_list,
    read_wanted,
    wanted_of,
)

__all__ = [
    "JOURNAL",
    "DownloadOptions",
    "Downloads",
    "FetchOptions",
    "Wanted",
    "addresses_in",
    "download_pictures",
    "is_list",
    "read_wanted",
    "wanted_of",
]
