"""``laplaceconfidence`` and ``python -m laplaceconfidence``."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line."""
    # faiss, BLAS and torch each have a pool of threads; waiting threads must not use the cores of others.
    # OpenMP reads this when it is loaded, so it must be set before anything else is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from laplaceconfidence.cli.app import app

    app()


if __name__ == "__main__":
    main()
