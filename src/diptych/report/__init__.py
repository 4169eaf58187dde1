"""Self-contained HTML pages, their figures, and contact sheets."""
