"""Small audits on disk, for the tests of everything that comes after an audit."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from laplaceconfidence.auditing.issues import audit
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.records import AuditRun, write_audit

CLASS_NAMES = ("<script>alert(1)</script>", '猫 🐈 & "co"', "it's --> $x$ a/b")
N_SAMPLES = 90
ESTIMATORS = ("laplace", "noise-aware")  # the paper's and the default one

MakeRun = Callable[..., AuditRun]


def noisy_blobs(wrong_every: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features of three far clusters, codes of which every tenth (say) is wrong, and the true ones."""
    rng = np.random.default_rng(0)
    true = np.arange(N_SAMPLES) % 3
    features = (10 * np.eye(3)[true] + rng.normal(size=(N_SAMPLES, 3))).astype(np.float32)
    given = true.copy()
    shift = 1 + np.arange(N_SAMPLES)[::wrong_every] // wrong_every % 2
    given[::wrong_every] = (true[::wrong_every] + shift) % 3
    return features, given, true


def confusable_points(n: int = 240) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels that are drawn as a weak model would guess them, and the true labels.

    23% of the labels are wrong, but the features predict the wrong ones as well as overlapping classes would:
    the noise is not identified, and no label is flagged.
    """
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, 3))
    guesses = np.exp(features / 0.6)
    given = [rng.choice(3, p=row) for row in guesses / guesses.sum(axis=1, keepdims=True)]
    return features, np.array(given), features.argmax(axis=1)


def make_audit(
    folder: Path,
    kind: str = "csv",
    *,
    names: tuple[str, ...] = CLASS_NAMES,
    texts: list[str] | None = None,
    wrong_every: int = 10,
    estimator: str = "laplace",
) -> AuditRun:
    """Audit blobs that come as "csv" with texts, "parquet" with image paths, "npz", a "folder" of images or
    "digits". The data is in ``folder / "data"``, the run in ``folder / "run"``.

    Most tests do not depend on the estimator and use the fastest one; those that do use ``ESTIMATORS``.
    """
    import pandas as pd

    data = folder / "data"
    data.mkdir()
    features, given, _ = noisy_blobs(wrong_every)
    options: dict[str, object] = {}
    if kind == "digits":
        source: str | Path = "digits"
    elif kind == "csv":
        source = data / "texts.csv"
        table = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
        table.insert(0, "id", [f"s{row:03d}" for row in range(N_SAMPLES)])
        table["label"] = [names[code] for code in given]
        table["text"] = texts or [f"Text number {row}, <b>bold</b>" for row in range(N_SAMPLES)]
        table["price"] = [f"{row}.50 €" for row in range(N_SAMPLES)]
        table.to_csv(source, index=False, lineterminator="\r\n")  # quotes a lone carriage return, too
        options = {"features": "emb_*"}
    elif kind == "parquet":
        source = data / "paths.parquet"
        (data / "images").mkdir()
        for row in range(N_SAMPLES):
            write_image(data / "images" / f"{row}.png", row)
        pd.DataFrame(
            {
                "label": given,
                "embedding": list(features),
                "path": [f"images/{row}.png" for row in range(N_SAMPLES)],
            }
        ).to_parquet(source)
    elif kind == "npz":
        source = data / "arrays.npz"
        np.savez(source, features=features, labels=np.array(names)[given])
    else:
        source = data / "photos"
        for row, code in enumerate(given):
            labeled = source / f"class {'abc'[code]}"
            labeled.mkdir(parents=True, exist_ok=True)
            write_image(labeled / f"{row:03d}.png", row)
        order = np.argsort([f"class {'abc'[code]}/{row:03d}" for row, code in enumerate(given)])
        np.save(data / "features.npy", features[order])
        options = {"features": str(data / "features.npy")}
    settings = {"n_neighbors": 6, "alpha": 0.9} if estimator == "laplace" else {}
    result = audit(read_dataset(source, **options), estimator=estimator, random_state=0, **settings)
    described = {"source": str(source), "options": options}
    return write_audit(result, folder / "run", source=described)


def write_image(path: Path, number: int) -> None:
    Image.new("RGB", (120, 80), (2 * number % 256, 40, 200)).save(path)


def make_audit_with_other_issues(folder: Path) -> AuditRun:
    """Audit texts among which rows 90 to 94 are copies and an outlier, with a test set that repeats some.

    Row 90 is a copy of row 1 with the same label, 91 one of row 2 with another label, 92 and 93 are copies of
    row 4, and 94 is an outlier. Rows 5, 4, 92 and 93 are also in the test set.
    """
    import pandas as pd

    (folder / "data").mkdir()
    features, given, _ = noisy_blobs()
    names = ("apple", "pear", "plum")
    copied = [1, 2, 4, 4]
    features = np.concatenate([features, features[copied], [[-9, -10, -11]]]).astype(np.float32)
    given = np.concatenate([given, given[copied], [0]])
    given[91] = (given[2] + 1) % 3
    n = len(features)
    table = pd.DataFrame(features, columns=["emb_0", "emb_1", "emb_2"])
    table.insert(0, "id", [f"s{row:03d}" for row in range(n)])
    table["label"] = [names[code] for code in given]
    table["text"] = [f"Text number {row}, <b>bold</b>" for row in range(n)]
    table.to_csv(folder / "data" / "texts.csv", index=False)
    fresh = noisy_blobs()[0][:20] + np.float32(0.7)
    test = pd.DataFrame(np.concatenate([features[[5, 4]], fresh]), columns=["emb_0", "emb_1", "emb_2"])
    test.insert(0, "id", [f"t{row:03d}" for row in range(len(test))])
    test["label"] = [names[given[5]], names[(given[4] + 1) % 3], *["plum"] * len(fresh)]
    test["text"] = [f"Test text {row}" for row in range(len(test))]
    test.to_csv(folder / "data" / "test.csv", index=False)
    options = {"features": "emb_*"}
    result = audit(
        read_dataset(folder / "data" / "texts.csv", **options),
        test=read_dataset(folder / "data" / "test.csv", **options),
        estimator="laplace",
        random_state=0,
        n_neighbors=6,
        alpha=0.9,
    )
    source = {"source": str(folder / "data" / "texts.csv"), "options": options}
    return write_audit(result, folder / "run", source=source | {"test": str(folder / "data" / "test.csv")})
