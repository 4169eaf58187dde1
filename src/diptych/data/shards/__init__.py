"""Tar shards of samples, read by position and never unpacked."""

from diptych.data.shards.members import IndexOptions, Member, Members, Sample, ShardIndexer, samples_of
from diptych.data.shards.source import Shard, ShardRecords, ShardSource, find_shards

__all__ = [
    "IndexOptions",
    "Member",
    "Members",
    "Sample",
    "Shard",
    "ShardIndexer",
    "ShardRecords",
    "ShardSource",
    "find_shards",
    "samples_of",
]
