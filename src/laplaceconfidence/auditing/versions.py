"""Which versions of what made a result."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

PACKAGES = ("laplaceconfidence", "numpy", "scipy", "scikit-learn", "faiss-cpu", "pandas", "pyarrow")


def installed_versions() -> dict[str, str]:
    """Versions of Python, of this package and of all that its numbers depend on."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # faiss from conda, say, which brings no metadata under this name
            versions[package] = "unknown"
    return versions
