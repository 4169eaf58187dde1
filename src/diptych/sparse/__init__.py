"""Floor 4, sparse: from dense rows to bags of weighted terms, and what that keeps and loses."""
