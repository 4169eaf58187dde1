"""Groups of verbs for shops; entry points join them to the command, as they join those of plug-ins."""

from diptych.cli.verbs import group

INTENT = group(
    "intent",
    "Predict purchases: from raw shop logs to a calibrated, explained probability.",
    {
        name: f"diptych.cli.intent:{name}"
        for name in (
            "ingest",
            "describe",
            "features",
            "evaluate",
            "audit",
            "train",
            "score",
            "drift",
            "report",
        )
    },
)
CATEGORIES = group(
    "categories",
    "Find images for every category of a tree, and categories for products without one.",
    {
        name: f"diptych.cli.categories:{name}"
        for name in ("train", "evaluate", "pick", "fill", "index", "tree", "download")
    },
)
