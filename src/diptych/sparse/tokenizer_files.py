"""WordPiece tokenizers of the ``tokenizers`` library: made from pieces, read from files, found by name."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from diptych.core.errors import StorageError, UsageError
from diptych.core.reading import file_errors, read_json, read_text
from diptych.encoders.hub import LOADING_ERRORS, loading_failure
from diptych.sparse.wordpiece import CONTINUATION

_UNKNOWN, _BEGIN, _END = "[UNK]", "[CLS]", "[SEP]"
SPECIAL_TERMS = ("[PAD]", _UNKNOWN, _BEGIN, _END, "[MASK]")


def bert_tokenizer(pieces: Sequence[str], lower_case: bool = True) -> Any:
    """A ``tokenizers.Tokenizer`` that reads captions as BERT does, with these pieces."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    ids = {piece: place for place, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=_UNKNOWN, continuing_subword_prefix=CONTINUATION))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower_case)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((_END, ids[_END]), (_BEGIN, ids[_BEGIN]))
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.add_special_tokens([AddedToken(piece, special=True) for piece in SPECIAL_TERMS if piece in ids])
    return tokenizer


def read_tokenizer(path: Path | str) -> Any:
    """The tokenizer of a ``tokenizer.json``."""
    from tokenizers import Tokenizer

    content = read_json(path)
    try:
        return Tokenizer.from_str(json.dumps(content))
    except Exception as error:  # the library raises nothing narrower
        raise StorageError(f"{path} is not a tokenizer: {error}", "download or sparsify again") from error


def source_tokenizer(source: str | Path) -> Any:
    """The tokenizer of a BERT-like model: a folder with tokenizer.json or vocab.txt, or a name on a hub.

    A vocab.txt is read in lower case unless the tokenizer_config.json beside it says otherwise.
    """
    folder = Path(source).expanduser()
    if not folder.is_dir():
        return _by_name(str(source))
    if (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder / "tokenizer.json")
    if not (folder / "vocab.txt").is_file():
        raise StorageError(
            f"{source} holds no vocabulary: neither tokenizer.json nor vocab.txt",
            "download the model again, its tokenizer included",
        )
    pieces = read_text(folder / "vocab.txt", fix="download it again").removesuffix("\n").split("\n")
    lacking = [piece for piece in (_UNKNOWN, _BEGIN, _END) if piece not in pieces]
    if lacking or len(set(pieces)) != len(pieces):
        reason = f"lacks {', '.join(lacking)}" if lacking else "has a term twice"
        raise StorageError(f"{folder / 'vocab.txt'} {reason}", "download the model again")
    settings = folder / "tokenizer_config.json"
    lower_case = True
    if settings.is_file():
        with file_errors(settings, fix="download it again"):
            lower_case = read_json(settings).get("do_lower_case", True)
    return bert_tokenizer(pieces, bool(lower_case))


def _by_name(source: str) -> Any:
    import transformers

    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    except LOADING_ERRORS as error:
        fix = f"run `hf download {source} --local-dir FOLDER` where there is network; pass FOLDER"
        raise loading_failure(source, None, error, fix) from error
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise UsageError(
            f"{source} has a {type(tokenizer).__name__}, which cannot be saved as tokenizer.json",
            "take a BERT or DistilBERT model",
        )
    return backend
