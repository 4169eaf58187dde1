"""A generated shop: ``products`` in a category tree, and ``shop_log``, what visitors do and which of them buy.

What is planted is written to ``truth.json``.
"""
