"""Tar shards of samples, read by position and never unpacked."""

from diptych.data.shards.members import Indexer, IndexOptions, Member, Members, Sample, samples_of
from diptych.data.shards.source import Shard, ShardRecords, ShardSource, find_shards

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
