"""The page about a head: what was measured, and pictures and captions with their terms."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from diptych.cli.sparse_folder import SparseFolder
from diptych.cli.term_cards import caption_card, evenly, match_of, picture_card

if TYPE_CHECKING:
    from diptych.data.collection import Collection
    from diptych.report.terms import Match
    from diptych.sparse import SparseMeasures, SparsifiedCollection, TermVocabulary

__all__ = ["write_page"]

_CARDS = 10
_MATCHES = 3
_TERMS = 10


def write_page(made: SparseFolder, measures: SparseMeasures, command: str) -> Path:
    """Write ``report.html`` into the head's folder, and give its place."""
    from diptych.report import ComparedRow, Headline, SparseReport, write_sparse_report

    sparsifier, rows, collection = made.sparsifier(), made.rows(), made.collection()
    vocabulary, options = sparsifier.vocabulary, sparsifier.options
    found, dense = (100 * one.value("R@5", "t2i") for one in (measures.sparse, measures.dense))
    page = SparseReport(
        title=f"{collection.name}, {made.split} split: dense rows as bags of terms",
        subtitle=f"a head over {len(vocabulary):,} terms; expansion in training {options.expansion.mode}",
        protocol_line=measures.line(),
        headlines=[
            Headline(
                "R@5, a caption looking for its picture",
                f"{found:.1f}",
                f"{100 * measures.kept('R@5', 't2i'):.1f} % of the dense rows' {dense:.1f}",
            ),
            Headline("FLOPs", f"{measures.flops:.1f}", "terms that a caption and a picture share"),
            Headline(
                f"Exact@{measures.deviation.k}",
                f"{100 * measures.deviation.exact:.1f} %",
                "of a caption's heaviest terms are its own",
            ),
        ],
        compared=[ComparedRow(*row) for row in measures.recalls()],
        figures=measures.table(),
        overlap=measures.values["overlap t2i"].tolist(),
        pictures=[
            picture_card(vocabulary, rows, collection, place, _TERMS)
            for place in evenly(rows.images.ids, _CARDS)
        ],
        captions=[
            caption_card(vocabulary, rows, collection, place, _TERMS)
            for place in evenly(rows.texts.ids, _CARDS)
        ],
        matches=_matches(vocabulary, rows, collection),
        commands=[command],
        fingerprints={
            "dense encoder": str(measures.about["encoder"]),
            "head": str(measures.about["head"]),
            "vocabulary": str(measures.about["vocabulary"]),
            "data": str(measures.about["data"]),
        },
    )
    return write_sparse_report(page, made.folder / "report.html")


def _matches(vocabulary: TermVocabulary, rows: SparsifiedCollection, collection: Collection) -> list[Match]:
    """What some captions found first, and why."""
    from diptych.evaluation.sparse_products import sparse_top_k

    places = list(evenly(rows.texts.ids, _MATCHES))
    found, _ = sparse_top_k(rows.texts.rows[places], rows.images.rows, 1)
    return [
        match_of(
            vocabulary,
            caption_card(vocabulary, rows, collection, place, 0),
            rows.texts.rows[[place]],
            picture_card(vocabulary, rows, collection, best, 0),
            rows.images.rows[[best]],
            collection.captions[place],
        )
        for place, best in zip(places, found[:, 0].tolist(), strict=True)
        if best >= 0
    ]
