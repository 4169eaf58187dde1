"""``diptych embed`` and ``diptych index``: images and captions to embeddings on disk, and to an index of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from diptych.cli.console import next_step, say, stop_on_signal
from diptych.cli.sources import (
    DataSpec,
    Model,
    OutOption,
    PartSpec,
    Source,
    SplitOption,
    encoded_of,
    parse_values,
)
from diptych.core.errors import DiptychError
from diptych.core.options import parameter

if TYPE_CHECKING:
    from diptych.encoders.embeddings import Origin


class EmbedOptions(OutOption):
    """How encoding is shared."""

    processes: int = parameter(1, "Processes that share the work; on GPUs one each.", ge=1)
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto; several processes: no mps.")
    nodes: int = parameter(
        1, "Machines with one shared --out; each runs this command, by torchrun or srun.", ge=1
    )


def embed(model: Model, data: PartSpec, options: EmbedOptions) -> None:
    """Encode a dataset's images and captions once, for everything that comes after.

    Ctrl-C stops after the current block; the same command resumes, after kill -9 too.

    Examples:
        diptych embed runs/flickr8k
        diptych embed hf:NAME --data flickr30k --split test --out embedded
        diptych embed hf:NAME --data shop.csv --out embedded --processes 8
        torchrun --nnodes 2 -m diptych embed … --nodes 2 --processes 8
    """
    fabric = None
    if options.nodes > 1:
        from diptych.encoders.encode import launched_fabric

        fabric = launched_fabric(options.nodes, options.processes, options.accelerator)
    with stop_on_signal():
        work: dict[str, Any] = {"accelerator": options.accelerator, "fabric": fabric}
        work["processes"] = 1 if fabric else options.processes
        encoded, _, folder = encoded_of(model, data, data.split, options.out, sparse=True, **work)
    width = f"{encoded.images.width} {'terms' if encoded.similarity == 'dot' else 'numbers each'}"
    say(f"{len(encoded.images):,} images and {len(encoded.texts):,} captions, {width}, in {folder}")
    next_step(["diptych", "evaluate", folder], ["diptych", "index", folder])


class IndexOptions(SplitOption, OutOption):
    """What is indexed, and how."""

    engine: str | None = parameter(
        None,
        "How it is searched; exact for dense embeddings, inverted for sparse ones.",
        names="diptych.index:ENGINES",
    )
    option: list[str] = parameter([], "KEY=VALUE for the engine, e.g. ef_search=128. Repeatable.")
    of: Literal["images", "texts"] = parameter("images", "What is found.")


def index(source: Source, data: DataSpec, options: IndexOptions) -> None:
    """Build an index of a run's or a dataset's images or captions, or of a sparse head's.

    Examples:
        diptych index runs/flickr8k
        diptych index embedded --engine hnsw --option ef_search=128 --of texts
        diptych index runs/flickr8k/sparse --engine inverted
        diptych index embedded --engine qdrant --option url=https://host:6333
    """
    from diptych.index import ENGINES, build_index
    from diptych.index.captions import CollectionCaptions

    of = options.of
    encoded, origin, _ = encoded_of(source, data, options.split, sparse=True)
    images, texts = encoded.images, encoded.texts
    items, others = (images, texts) if of == "images" else (texts, images)
    settings = parse_values(options.option, "--option")
    if options.engine is not None and ENGINES.get(options.engine).filters:
        settings["records"] = _records(origin, of)
    # The other modality is what the index will be queried with: recall is measured on it.
    built = build_index(items, options.engine, sample=others.rows[:1000], **settings)
    built.about["origin"] = asdict(origin)
    with suppress(DiptychError):  # embeddings whose dataset is gone are searched without captions
        built.captions = CollectionCaptions(origin.collection(), built.about["kind"])
    target = options.out or Path(source) / f"index-{of}-{built.engine_name}"
    built.save(target)
    say(f"{len(built):,} {of} of {encoded.about['dataset']}, engine {built.engine_name}, in {target}")
    if "recall" in built.about:
        recall = built.about["recall"]
        say(f"recall@{recall['k']} against exact on {recall['queries']} queries: {recall['value']:.3f}")
    next_step(["diptych", "search", target, "what to look for"])


def _records(origin: Origin, of: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the metadata of each item that searches can be restricted by."""
    collection = origin.collection()
    return collection.records if of == "images" else collection.caption_records
