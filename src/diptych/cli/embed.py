"""``diptych embed`` and ``diptych index``: images and captions to embeddings on disk, and to an index of them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from diptych.cli.console import next_step, show, stop_on_signal
from diptych.cli.sources import Model, Source, encoded_of, named
from diptych.cli.updating import copies_note
from diptych.core.errors import UsageError
from diptych.core.files import cache_root, write_json
from diptych.core.fingerprint import fingerprint
from diptych.core.options import parameter
from diptych.data.source import DataSpec, OutOption, PartSpec
from diptych.encoders.embeddings import ORIGIN_FILE, EncodedCollection
from diptych.service.indexing import IndexOptions, copies_among, index_collection


class EmbedOptions(OutOption):
    """Options of sharing the encoding."""

    processes: int = parameter(1, "Processes that share the work; on GPUs one each.", ge=1)
    accelerator: str = parameter("auto", "cpu, cuda, mps or auto; several processes: no mps.")
    ray: bool = parameter(False, "The processes are actors of a Ray cluster.")
    part: str | None = parameter(None, "I/N: encode one share, into --out/part-I-of-N.", metavar="I/N")
    join: bool = parameter(False, "Join all parts in the folder MODEL.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.join and (self.part or self.ray):
            raise UsageError("--join with --part or --ray", "encode all parts first, then join them")
        return self


def embed(model: Model, data: PartSpec, options: EmbedOptions) -> None:
    """Encode a dataset's images and captions once, for everything that comes after.

    Ctrl-C stops after the current block; the same command resumes, after kill -9 too.

    Examples:
        diptych embed runs/flickr8k
        diptych embed hf:NAME --data flickr30k --split test --out embedded
        diptych embed hf:NAME --data shop.csv --out embedded --processes 8
        diptych embed hf:NAME --data flickr30k --out parts --part 3/8
        diptych embed parts --join
    """
    if options.join:
        from diptych.encoders.encode_parts import join_parts

        folder = Path(model)
        encoded, origin = join_parts(folder, None if data.data is None else data.section())
        write_json(folder / ORIGIN_FILE, asdict(origin))
        return _show_embedded(encoded, folder)
    work = options.model_dump(include={"accelerator", "processes", "ray"})
    with stop_on_signal():
        if options.part is not None:
            return _embed_part(model, data, options, work)
        encoded, _, folder = encoded_of(model, data, data.split, options.out, sparse=True, **work)
    _show_embedded(encoded, folder)


def _embed_part(model: str, data: PartSpec, options: EmbedOptions, work: dict[str, Any]) -> None:
    from diptych.encoders.encode_parts import encode_share, parse_part

    part = str(options.part)
    parse_part(part)  # before weights are read
    if options.out is None:
        raise UsageError("--part without --out", "name the folder that all parts go to")
    source = named(model, data, data.split, **work)
    origin, whole = source.opened
    collection = whole if origin.split is None else whole.split(origin.split)
    encoded, folder = encode_share(source.encoder, collection, options.out, origin, part, **work)
    show(f"part {part}: {len(encoded.images):,} images and {len(encoded.texts):,} captions in {folder}")
    next_step(["diptych", "embed", options.out, "--join"])


def _show_embedded(encoded: EncodedCollection, folder: Path) -> None:
    width = f"{encoded.images.width} {'terms' if encoded.similarity == 'dot' else 'numbers each'}"
    show(f"{len(encoded.images):,} images and {len(encoded.texts):,} captions, {width}, in {folder}")
    show(*(f"note: {note}" for note in encoded.about["notes"]))
    next_step(["diptych", "evaluate", folder], ["diptych", "index", folder])


def index(source: Source, data: DataSpec, options: IndexOptions) -> None:
    """Build an index of a run's or a dataset's images or captions, or of a sparse head's.

    Later changes: diptych index add, delete, compact and duplicates (a source of such a name is written ./add).

    Examples:
        diptych index runs/flickr8k
        diptych index embedded --engine hnsw --option ef_search=128 --of texts
        diptych index runs/flickr8k/sparse --engine inverted
        diptych index embedded --engine qdrant --option url=https://host:6333
    """
    kept = None
    if options.out is not None and not Path(source).is_dir():  # a name: what is encoded stays in the cache
        kept = cache_root() / "embeddings" / fingerprint(source, data.section(), options.split)
    encoded, origin, _ = encoded_of(source, data, options.split, kept, sparse=True)
    built, collection = index_collection(encoded, origin, options)
    copies = [] if collection is None or collection.n_captions else copies_among(collection)
    target = options.out or Path(source) / f"index-{options.of}-{built.engine_name}"
    built.save(target)
    show(
        f"{len(built):,} {options.of} of {encoded.about['dataset']}, engine {built.engine_name}, in {target}",
        *(f"note: {note}" for note in encoded.about.get("notes", ())),
        *copies_note(copies),
    )
    if "recall" in built.about:
        recall = built.about["recall"]
        show(f"recall@{recall['k']} against exact on {recall['queries']} queries: {recall['value']:.3f}")
    next_step(["diptych", "search", target, "what to look for"])
