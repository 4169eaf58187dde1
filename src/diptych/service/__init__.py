"""Search over HTTP, and a page: what diptych serve runs."""
