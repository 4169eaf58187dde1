"""Tiny random masked language models in the layouts of transformers."""

from __future__ import annotations

from typing import Any

PIECES = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("a", "dog", "runs", "snow", "##board", "##ing", "##s", "on", ".", "red"),
]
WIDTH = 8


def masked_model(kind, seed=0, terms=15):
    """``bert`` or ``distilbert``, every weight of the head drawn."""
    import torch
    import transformers

    torch.manual_seed(seed)
    if kind == "bert":
        sizes = {
            "hidden_size": WIDTH,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "intermediate_size": 8,
        }
        model: Any = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=terms, **sizes))
    else:
        config = transformers.DistilBertConfig(
            vocab_size=terms, dim=WIDTH, n_layers=1, n_heads=2, hidden_dim=8
        )
        model = transformers.DistilBertForMaskedLM(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(0.0, 0.5)
    return model


def masked_folder(kind, folder, seed=0):
    """Its files, the tokenizer among them."""
    from transformers import BertTokenizer

    masked_model(kind, seed).save_pretrained(folder)
    BertTokenizer(vocab={piece: place for place, piece in enumerate(PIECES)}).save_pretrained(folder)
    return folder
