"""Tables of captions and addresses, and the pictures that were fetched of them."""

from diptych.data.caption_tables.indexing import Part, PictureOptions, TableIndexer
from diptych.data.caption_tables.numbered import NumberedPictures, folder_state
from diptych.data.caption_tables.table import CaptionTable

__all__ = ["CaptionTable", "NumberedPictures", "Part", "PictureOptions", "TableIndexer", "folder_state"]
