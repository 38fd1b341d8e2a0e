"""The local Sphinx extensions are imported as the documentation build imports them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "_ext"))
