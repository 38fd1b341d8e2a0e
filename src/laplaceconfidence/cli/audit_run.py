"""One audit as the command line asks for it: read, judge, write, and say what was found."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.issues import audit as find_issues
from laplaceconfidence.auditing.verified import draw_for_review
from laplaceconfidence.cli.evidence_files import load_graph, load_probabilities
from laplaceconfidence.cli.image_features import (
    ImageFeatures,
    ImageOptions,
    describes_itself,
    learn_features,
    tell_skipped,
)
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.review_sample import tell_what_to_do
from laplaceconfidence.cli.second_set import read_second_set
from laplaceconfidence.cli.source_names import full_path, stem_of, with_full_paths
from laplaceconfidence.cli.summary import show_summary
from laplaceconfidence.cli.verified import check_can_learn, verified_labels
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.records import write_audit
from laplaceconfidence.records.run_folder import check_place
from laplaceconfidence.stages import stage


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What the user asked for; ``None`` where nothing was said."""

    source: str
    read_options: dict[str, Any]
    test: str | None
    test_options: dict[str, str | None]
    pred_probs: Path | None
    knn_graph: Path | None
    audited: tuple[Path, ...]
    decisions: Path | None
    estimator: str | None
    settings: dict[str, Any]  # of the estimator
    seed: int
    n_jobs: int | None
    image_options: ImageOptions
    threshold: float | None
    target_precision: float | None
    n_suspects: int
    n_for_review: int | None
    out: Path | None
    overwrite: bool


def run_audit(request: AuditRequest, warnings: list[str]) -> None:
    """Audit, write the run and show its summary; ``warnings`` collects what was noted on the way."""
    folder = request.out or Path(f"laplaceconfidence-audit-{stem_of(request.source)}")
    check_place(folder, overwrite=request.overwrite)
    with showing_progress():
        with stage("reading"):
            dataset = read_dataset(request.source, **request.read_options)
            second = read_second_set(request.test, request.read_options, **request.test_options)
            if request.audited:
                check_can_learn(request.estimator, dataset, request.pred_probs, request.knn_graph)
            verified = verified_labels(dataset, request.audited, request.decisions)
        learned = ImageFeatures(dataset)
        if request.pred_probs is None and request.knn_graph is None and not describes_itself(dataset):
            learned = learn_features(dataset, request.image_options, seed=request.seed, n_jobs=request.n_jobs)
        else:
            request.image_options.refuse()
        known = verified.by_row(learned.dataset)
        sample = None
        if request.n_for_review is not None:
            sample = draw_for_review(
                learned.dataset.labels, request.n_for_review, seed=request.seed, verified=known or ()
            )
        result = find_issues(
            learned.dataset,
            audited=known,
            audited_at_random=None if known is None else verified.rows_at_random(learned.dataset),
            recalibrate=verified.recalibrate,
            estimator=request.estimator,
            pred_probs=None if request.pred_probs is None else load_probabilities(request.pred_probs),
            knn_graph=None if request.knn_graph is None else load_graph(request.knn_graph),
            test=second,
            threshold=request.threshold,
            target_precision=request.target_precision,
            random_state=request.seed,
            **request.settings,
        )
        with stage("writing"):
            run = write_audit(
                result,
                folder,
                source=_described(request)
                | verified.described
                | ({"features_learned_by": learned.described} if learned.described else {}),
                warnings=tuple(warnings),
                overwrite=request.overwrite,
                review_sample=sample,
            )
    tell_skipped(learned.skipped)
    used = None if known is None else verified.told(known, learned.dataset, result.estimator)
    show_summary(result, run, n_suspects=request.n_suspects, verified=used)
    if sample is not None:
        tell_what_to_do(run)


def _described(request: AuditRequest) -> dict[str, Any]:
    """Where the data came from, with full paths, so that it can be found again from elsewhere."""
    files = {"pred_probs": request.pred_probs, "knn_graph": request.knn_graph, "test": request.test}
    return {
        "source": full_path(request.source),
        "options": with_full_paths(request.read_options),
        **{name: full_path(str(path)) for name, path in files.items() if path is not None},
    }
