"""Tar shards of samples, read by position and never unpacked."""

from diptych.data.shards.files import Shard, find_shards
from diptych.data.shards.indexing import Indexer, IndexOptions
from diptych.data.shards.members import Member, Members
from diptych.data.shards.samples import Sample, samples_of
from diptych.data.shards.source import ShardRecords, ShardSource

__all__ = [
    "IndexOptions",
    "Indexer",
    "Member",
    "Members",
    "Sample",
    "Shard",
    "ShardRecords",
    "ShardSource",
    "find_shards",
    "samples_of",
]
