"""A generated shop: ``products`` and ``shop_log``, what visitors do; what is planted is written to ``truth.json``."""
