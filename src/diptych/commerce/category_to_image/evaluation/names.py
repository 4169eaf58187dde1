"""The measures of category-to-image retrieval (thesis section 7.4.2)."""

from __future__ import annotations

CATEGORY_MEASURES = ("P@1", "P@5", "P@10", "mAP@5", "mAP@10", "R-precision", "mAP-hits@5", "mAP-hits@10")
"""For a category that asks for products. mAP@k divides by min(k, relevant products); mAP-hits@k by the relevant ones
among the first k, which the published numbers agree with better."""

PRODUCT_MEASURES = ("R@1", "R@5", "MRR")
"""For a product that asks for its category: R@1 is the share of products that would be put in the right place."""

PUBLISHED_COLUMNS = ("P@1", "P@5", "P@10", "mAP-hits@5", "mAP-hits@10", "R-precision")
"""The columns of thesis Table 7.1, under our names."""
