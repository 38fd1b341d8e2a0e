"""``laplaceconfidence`` and ``python -m laplaceconfidence``."""

from __future__ import annotations

import os


def main() -> None:
    """Run the command line."""
    # faiss, BLAS and torch each bring a pool of threads; waiting ones must not eat the others' time.
    # OpenMP reads this when it is loaded, so it has to be said before anything heavy is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    from laplaceconfidence.cli.app import app

    app()


if __name__ == "__main__":
    main()
