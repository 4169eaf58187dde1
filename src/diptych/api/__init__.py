"""The front door: a function for each thing that the package does, over encoders and collections in memory.

Every function takes an encoder as :func:`load` does (an object, a run, a folder, a name) and data as :func:`read`
does (a collection, a path, a table). What is computed on the way is kept: with ``out`` there, else in the cache, under
fingerprints of its content, so that it is never taken for something else.
"""

from diptych.api.building import build_index, open_index, sparsify, train
from diptych.api.evaluating import audit, compare, evaluate, gradient_counts, run_study, stress, top_k
from diptych.api.exchange import as_mteb, export
from diptych.api.opening import AnyData, AnyEncoder, Rows, encode, load, read

__all__ = [
    "AnyData",
    "AnyEncoder",
    "Rows",
    "as_mteb",
    "audit",
    "build_index",
    "compare",
    "encode",
    "evaluate",
    "export",
    "gradient_counts",
    "load",
    "open_index",
    "read",
    "run_study",
    "sparsify",
    "stress",
    "top_k",
    "train",
]
