"""A sentence-transformers model of a few thousand random weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..tiny_pretrained import bert_tokenizer

CAPTIONS = ["a red dog", "two dogs on a beach", "a dog", "a man rides a blue bicycle by the sea", "red"]


def sentence_folder(folder: Path, seed: int = 0, normalize: bool = True, **config: Any) -> Path:
    """The files of such a model, 24 wide."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    tokenizer = bert_tokenizer()
    options = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=32, **options, **config))
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.ndim > 1:
                weight.normal_(0.0, 0.5 if "embed" in name else 0.3)
    bare = folder.with_name(f"{folder.name}-bare")
    model.save_pretrained(bare)
    tokenizer.save_pretrained(bare)
    transformer = Transformer(str(bare), max_seq_length=16)
    parts = [transformer, Pooling(24, pooling_mode="mean"), *([Normalize()] if normalize else [])]
    SentenceTransformer(modules=parts, device="cpu").save_pretrained(str(folder), create_model_card=False)
    return folder
