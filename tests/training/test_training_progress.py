"""Progress: which round is chosen, and what is said about a round."""

from laplaceconfidence.training.progress import TrainingProgress, measured_text


def test_the_last_round_within_one_standard_error_is_chosen() -> None:
    progress = TrainingProgress(state={})
    chosen = []
    for number, accuracy in enumerate([0.2, 0.5, 0.46, 0.44, 0.47, 0.3]):
        progress.round = number
        chosen.append(progress.choose(accuracy, n_samples=100))  # the error at 0.5 is 0.05
    assert chosen == [True, True, True, False, True, False]
    assert progress.best == {"round": 5, "validation_accuracy": 0.47, "highest_validation_accuracy": 0.5}


def test_a_round_in_words() -> None:
    phases = [{"loss": 1.0, "mean_confidence": 0.5}, {"loss": 2.0, "mean_confidence": 0.7}]
    record = {"round": 3, "phases": phases, "validation_accuracy": 0.9, "test_accuracy": 0.85}
    assert measured_text(record) == ["loss 1.500", "confidence 0.60", "validation 90.0%", "test 85.0%"]
    assert measured_text({"round": 1, "phases": []}) == []
