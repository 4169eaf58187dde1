#!/usr/bin/env python3
"""Write docs/reference/openapi.json, the HTTP API of ``diptych serve``, from the code: python tools/openapi.py"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "docs" / "reference" / "openapi.json"


def document() -> dict[str, Any]:
    """Return the document of the code as it is."""
    from diptych.service.app import create_app

    found: dict[str, Any] = create_app([]).app.openapi()
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(document(), indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"written to {FILE}")
