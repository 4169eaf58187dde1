"""The files of generated products: what whoever reads them has to know."""

from __future__ import annotations

DATASET = "product-scenes"
"""What ``dataset.json`` calls it."""

VERSION = 1
"""Raised whenever the same seed would give other products; part of the cache's key."""

MARKER = "dataset.json"
"""What was asked for: ``dataset``, ``version``, ``fingerprint``, ``n_products``, ``levels``, ``seed`` …"""

PRODUCTS = "products.jsonl"
"""A line for each product: ``id``, ``split``, ``picture`` (its file, or null), ``title`` (or null), ``attributes``,
``category_paths``, ``belongs`` (the path that it belongs to, given or not), ``depends`` (the facets that this category
depends on, one for each level), ``facts`` (of every facet) and ``told`` (what each modality tells, rightly or
wrongly)."""

TRUTH = "truth.json"
