"""The readme of the package metadata: README.md without its picture, whose path means nothing outside."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ReadmeHook(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        without_picture = re.sub(r"^!\[[^\]]*\]\([^)]*\)\n\n", "", text, flags=re.MULTILINE)
        metadata["readme"] = {"content-type": "text/markdown", "text": without_picture}
