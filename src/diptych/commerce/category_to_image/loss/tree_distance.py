"""A loss that knows how far apart categories are: margins that grow with their distance in the tree.

The chapter's error analysis asks for predictions nearer to the target in the tree, and leaves the loss to future
work (section 7.6.1). This one is the soft-max margin: with m the strength, and D(j, k) ∈ [0, 1] the distance between
the categories of pairs j and k as a share of the greatest there can be::

    ℓ_j(c→p) = −log( exp(s_jj/τ) / Σ_k exp((s_jk + m·D(j, k))/τ) )

and likewise p→c. A product has to score below the own one by m·D more than otherwise: m is in units of the cosine, and
what lies in another tree is pushed away with exp(m·D/τ) times the weight that its score alone would give. Siblings keep
nearly the plain weight, so that a model which cannot get everything right errs among them.

- m = 0 is the plain loss, to the bit, whatever is done with duplicates, for whom D = 0.
- τ·ℓ_j is never less than m·D(j, k*) for the best-scored k*: the loss bounds the distance of the prediction, which is
  what is to become small.

Distances are edges, different trees joined above their roots; the greatest is twice the depth of the deepest category
that a product is paired with. Soft-max margin: Gimpel and Smith, NAACL 2010; mistakes that are near in a tree:
Bertinetto et al., CVPR 2020.
"""

from __future__ import annotations

import numpy as np

from diptych.core.errors import UsageError
from diptych.data.taxonomy import CategoryTree


def greatest_distance(tree: CategoryTree, nodes: np.ndarray) -> int:
    """The most edges there could be between two of ``nodes``: twice the depth of the deepest."""
    return int(2 * tree.depth[nodes].max(initial=1))


def tree_margins(
    tree: CategoryTree, nodes: np.ndarray, strength: float, greatest: int | None = None
) -> np.ndarray:
    """(β, β) float32 margins m·D(j, k) of pairs whose categories are ``nodes``.

    Args:
        nodes: (β,) the category of each pair.
    """
    if not strength >= 0:
        raise UsageError(f"strength {strength} of the tree-aware loss", "give 0 or more, such as 0.1")
    greatest = greatest_distance(tree, nodes) if greatest is None else greatest
    distances = tree.distance(nodes[:, None], nodes[None, :])
    margins: np.ndarray = (strength * distances / greatest).astype(np.float32)
    return margins
