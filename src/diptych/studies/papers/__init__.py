"""What papers say that formulas cannot: a module beside a paper's file."""
