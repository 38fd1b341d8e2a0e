"""The names of the files and folders of a training run, for all modules that write or read them.

========================================  ===========================================================
``settings.json``                         every setting as resolved, and a fingerprint of the data
``metrics.jsonl``                         what was measured, one line per round
``timings.jsonl``                         seconds of each round
``confidences/round-0016.parquet``        id and the confidence each network was trained with
``features/after-warm-up.npz``            features of at most 5,000 training samples after the warm-up
``features/after-training.npz``           the same of the chosen networks
``checkpoints/last.pt``                   to resume from; ``previous.pt`` is the one before it
``checkpoints/best.pt``                   the networks of the chosen round
``model/``                                the model: ``RobustClassifier.load``, ``laplaceconfidence predict``
``predictions.parquet``                   class probabilities of every training sample
``test_predictions.parquet``              class probabilities of the test set
``refined_labels.parquet``                given label, confidence and refined label of every sample
``summary.json``                          written last: the run is finished
``source.json``                           where the data came from (command line only)
``skipped_images.txt``                    images that could not be decoded (command line only)
``truth.parquet``                         true labels, where they are known (command line only)
``tensorboard/``                          logs for TensorBoard, if requested
``report.html``                           written by ``laplaceconfidence report``
``thumbnails/``                           written by ``laplaceconfidence review``
========================================  ===========================================================
"""

from __future__ import annotations

SETTINGS = "settings.json"
METRICS = "metrics.jsonl"
TIMINGS = "timings.jsonl"
PREDICTIONS = "predictions.parquet"
TEST_PREDICTIONS = "test_predictions.parquet"
REFINED_LABELS = "refined_labels.parquet"
SUMMARY = "summary.json"

CONFIDENCES = "confidences"
FEATURES = "features"
CHECKPOINTS = "checkpoints"
MODEL = "model"
AFTER_WARM_UP, AFTER_TRAINING = "after-warm-up.npz", "after-training.npz"  # in FEATURES
LAST_CHECKPOINT, PREVIOUS_CHECKPOINT, BEST_CHECKPOINT = "last.pt", "previous.pt", "best.pt"  # in CHECKPOINTS

SOURCE = "source.json"
SKIPPED_IMAGES = "skipped_images.txt"
TRUTH = "truth.parquet"
TENSORBOARD = "tensorboard"
REPORT = "report.html"
THUMBNAILS = "thumbnails"

ALL = frozenset(
    {
        *(SETTINGS, METRICS, TIMINGS, PREDICTIONS, TEST_PREDICTIONS, REFINED_LABELS, SUMMARY),
        *(CONFIDENCES, FEATURES, CHECKPOINTS, MODEL),
        *(SOURCE, SKIPPED_IMAGES, TRUTH, TENSORBOARD, REPORT, THUMBNAILS),
    }
)
"""Everything at the top of a run folder that belongs to the run."""


def confidences_of(round: int) -> str:
    """The file with the confidences of a round.

    Parameters
    ----------
    round : int
        Number of the round, from 1.

    Returns
    -------
    str
        Path relative to the folder of the run.
    """
    return f"{CONFIDENCES}/round-{round:04d}.parquet"
