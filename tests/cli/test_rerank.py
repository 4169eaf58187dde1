from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import Command

from diptych.evaluation import Result
from diptych.metrics import Reranked


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random BLIP in the layout of transformers."""
    from tests.encoders.tiny_pretrained import transformers_folder

    return transformers_folder("blip", tmp_path_factory.mktemp("models") / "blip")


@pytest.fixture(scope="module")
def evaluated(
    blip: Path, scenes_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, str]:
    """What the command wrote, and what it printed."""
    import contextlib
    import io
    import sys

    from diptych.cli import main

    out = tmp_path_factory.mktemp("evaluated") / "blip"
    given = [
        "diptych",
        "evaluate",
        blip,
        "--data",
        scenes_folder,
        "--rerank",
        4,
        "--samples",
        10,
        "--out",
        out,
    ]
    printed, errors, before = io.StringIO(), io.StringIO(), sys.argv
    sys.argv = [str(part) for part in given]
    try:
        with (
            contextlib.redirect_stdout(printed),
            contextlib.redirect_stderr(errors),
            pytest.raises(SystemExit) as caught,
        ):
            main()
    finally:
        sys.argv = before
    assert caught.value.code in (0, None), errors.getvalue()
    return out, printed.getvalue(), errors.getvalue()


def test_both_stages_are_shown_and_stored(evaluated: tuple[Path, str, str]) -> None:
    out, printed, _ = evaluated
    first, second = printed.split("re-ranked: the best 4 of each query, scored again by the matching head")
    assert "contrastive: the first stage alone" in first
    assert "re-ranked k_test" not in first
    assert "re-ranked k_test 4 by matching + contrastive score, unranked miss: " in second
    assert "i2t and" in second
    assert "t2i queries have no ranked positive, which rank after the gallery" in second
    for part in (first, second):
        for word in ("R@1", "R@10", "rsum", "chance", "16 images", "80 texts", "split test"):
            assert word in part, word
    reranked = Reranked.open(out / "embeddings" / "reranked")
    assert reranked.k == 4
    assert reranked.adds_contrastive
    one, two = Result.open(out / "evaluation"), Result.open(out / "evaluation-reranked-4-miss")
    assert one.protocol.reranking is None
    assert two.protocol.reranking is not None
    assert two.value("R@10", "i2t") == two.value("R@5", "i2t")  # nothing is ranked beyond the four
    assert (out / "evaluation-reranked-4-miss" / "i2t.run").is_file()


def test_stored_scores_need_no_model(
    diptych: Command, evaluated: tuple[Path, str, str], blip: Path, tmp_path: Path
) -> None:
    out, _, _ = evaluated
    copied = Path(shutil.copytree(out / "embeddings", tmp_path / "embeddings"))
    moved = blip.rename(blip.with_name("elsewhere"))
    try:
        done = diptych("evaluate", copied, "--rerank", 2, "--unranked", "published", "--out", tmp_path / "e")
        assert done.code == 0, done.err
        assert "re-ranked k_test 2 by matching + contrastive score, unranked published: " in done.out
        assert "ties compat; compat ties; compat unranked" in done.out
        done = diptych(
            "evaluate", copied, "--rerank", 4, "--unranked", "contrastive", "--ties", "pessimistic"
        )
        assert done.code == 0, done.err
        assert "unranked contrastive: " in done.out
        assert "ties pessimistic" in done.out
        refused = diptych("evaluate", copied, "--rerank", 5)
        assert refused.code == 2
        assert "which is not there any more" in refused.err
    finally:
        moved.rename(blip)
    done = diptych("evaluate", copied, "--rerank", 5, "--samples", 0)
    assert done.code == 0, done.err
    assert "k_test 5 " in done.out
    assert Reranked.open(copied / "reranked").k == 5


def test_published_recalls_are_those_of_the_matrix(evaluated: tuple[Path, str, str]) -> None:
    """Through the command and back: what argsort makes of -100 in every cell that was not scored."""
    from diptych.encoders.embeddings import EncodedCollection
    from diptych.evaluation.evaluate_encoder import evaluate_encoded

    out, _, _ = evaluated
    encoded = EncodedCollection.open(out / "embeddings")
    reranked = Reranked.open(out / "embeddings" / "reranked")
    result = evaluate_encoded(encoded, reranked=reranked, k=2, unranked="published", samples=0)
    matrix = reranked.first(2).matrix("t2i")
    order = np.argsort(matrix, axis=1, kind="stable")[:, ::-1]
    hits = order == np.asarray(encoded.caption_image)[:, None]
    for k in (1, 5, 10):
        assert result.value(f"R@{k}", "t2i") == pytest.approx(hits[:, :k].any(axis=1).mean())


def test_a_model_without_a_head_is_refused_before_the_work(
    diptych: Command, run_folder: Path, tmp_path: Path
) -> None:
    refused = diptych("evaluate", run_folder, "--rerank", 4, "--out", tmp_path / "e")
    assert refused.code == 2
    assert "has no matching head" in refused.err
    assert "albef, blip, xvlm" in refused.err
    assert not (tmp_path / "e").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--unranked", "miss"), "--unranked miss without --rerank"),
        (("--rerank", 4, "--unranked", "ties"), "unknown rule for unranked candidates 'ties'"),
        (("--rerank", 4, "--protocol", "folds(2)"), "candidates were chosen from one"),
        (("--rerank", 0), "--rerank"),
        (("--rerank", "many"), "--rerank"),
    ],
)
def test_what_cannot_be_asked(
    options: tuple[object, ...],
    message: str,
    diptych: Command,
    blip: Path,
    scenes_folder: Path,
    tmp_path: Path,
) -> None:
    refused = diptych("evaluate", blip, "--data", scenes_folder, "--out", tmp_path / "e", *options)
    assert refused.code == 2
    assert message in refused.err
    assert not (tmp_path / "e").exists()


def test_help_says_how(diptych: Command) -> None:
    done = diptych("evaluate", "--help")
    assert done.code == 0
    assert "--rerank 256" in done.out
    assert "--unranked" in done.out
