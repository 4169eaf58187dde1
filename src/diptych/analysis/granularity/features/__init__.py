"""Features of granularity, found by their registry; adding one is one file here."""
