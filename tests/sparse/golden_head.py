"""The published head and loss on fixed inputs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from diptych.sparse.head import SparseHead

GOLDEN = Path(__file__).parents[1] / "golden" / "d2s_head_loss.npz"

PARAMETERS = {
    "proj.weight": "W1",
    "proj.bias": "b1",
    "vocab_layer_norm.weight": "ln_weight",
    "vocab_layer_norm.bias": "ln_bias",
    "vocab_projector.weight": "W2",
    "vocab_projector.bias": "b2",
}


def golden_head():
    """The head with its weights, all values by name, and which terms each caption contains."""
    with np.load(GOLDEN, allow_pickle=False) as file:
        values = {name: torch.tensor(file[name]) for name in file.files}
    head = SparseHead(8, 12, 40, eps=float(values["ln_eps"])).double()
    head.load_state_dict({name: values[of] for name, of in PARAMETERS.items()})
    own = torch.zeros(5, 40, dtype=torch.bool)
    for row in range(5):
        own[row, values["input_ids"][row][values["attention_mask"][row] == 1]] = True
    return head, values, own


def l1_penalty(weights):
    """The mean over rows of the sum of a row's weights; weights are not negative."""
    return weights.sum(dim=1).mean()


def flops_penalty(weights):
    """The sum over terms of the squared mean weight (Paria et al. 2020)."""
    return weights.mean(dim=0).square().sum()
