"""One audit as the command line asks for it: read, estimate, write, and show what was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from laplaceconfidence.auditing.issues import audit as find_issues
from laplaceconfidence.auditing.result import AuditResult
from laplaceconfidence.auditing.review_sample import choose_for_review, drawn_order
from laplaceconfidence.cli.audit.blocks import run_block_audit, runs_in_blocks
from laplaceconfidence.cli.audit.gate import Gate
from laplaceconfidence.cli.audit.summary import (
    show_encoders,
    show_next_steps,
    show_reused,
    show_skipped,
    show_summary,
)
from laplaceconfidence.cli.audit.verified import check_can_learn, verified_labels
from laplaceconfidence.cli.image_features import learn_features
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.cli.sources import (
    EncoderRequest,
    ImageFeatures,
    ImageOptions,
    encoded_features,
    needs_learned_features,
    stem_of,
    with_image_size,
)
from laplaceconfidence.data.array_files import load_array, open_archive
from laplaceconfidence.data.dataset import NoisyDataset
from laplaceconfidence.data.readers import read_dataset
from laplaceconfidence.data.source_paths import full_path, with_full_paths
from laplaceconfidence.encoders.encoding import needs_encoding
from laplaceconfidence.exceptions import DataFormatError, InvalidInputError
from laplaceconfidence.records import write_audit
from laplaceconfidence.records.run_folder import reserved_place
from laplaceconfidence.stages import StageTimer, observing, stage
from laplaceconfidence.validation import must_be

LEARNING, LOADING, ENCODING = "learning features", "loading the encoder", "encoding"  # stages


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRequest:
    """What the user asked for; ``None`` where an option was not given."""

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
    encoders: tuple[str, ...]
    encoder_settings: tuple[str, ...]  # "key=value"
    no_cache: bool
    image_options: ImageOptions
    image_issues: bool | None
    threshold: float | None
    target_precision: float | None
    n_suspects: int
    n_for_review: int | None
    fail_if: tuple[str, ...]
    baseline: Path | None
    out: Path | None
    overwrite: bool
    discard_decisions: bool
    memory: str | None = None
    cluster: str | None = None
    work: Path | None = None
    keep_index: bool = False
    since: Path | None = None


def run_audit(request: AuditRequest, warnings: list[str]) -> None:
    """Audit, write the run and show its summary; ``warnings`` collects the warnings shown so far."""
    folder = request.out or Path(f"laplaceconfidence-audit-{stem_of(request.source)}")
    if request.discard_decisions and not request.overwrite:
        raise InvalidInputError(
            "'--discard-decisions' only applies to '--overwrite', which was not given. Give both or neither."
        )
    if "knn_graph_kind" in request.settings and request.knn_graph is None:
        raise InvalidInputError(
            "'--knn-graph-kind' says what the values of '--knn-graph' are, which was not given. Give both or "
            "neither."
        )
    gate = Gate.of(request.fail_if, request.baseline, has_test=request.test is not None)
    if runs_in_blocks(request):
        run_block_audit(request, folder, gate, warnings)
        return
    request = _with_image_size(request)
    replacing = {"overwrite": request.overwrite, "discard_decisions": request.discard_decisions}
    wanted = EncoderRequest(
        request.encoders,
        request.encoder_settings,
        request.image_options,
        request.n_jobs,
        uses_cache=not request.no_cache,
    )
    with reserved_place(folder, **replacing), showing_progress():
        with stage("reading"):
            dataset = read_dataset(request.source, **request.read_options)
            test = read_test_data(request.test, request.read_options, **request.test_options)
            if request.audited:
                check_can_learn(request.estimator, dataset, request.pred_probs, request.knn_graph)
            verified = verified_labels(
                dataset, request.audited, request.decisions, id_column=request.read_options.get("id")
            )
        learned, timer = ImageFeatures(dataset), StageTimer()
        has_other_evidence = request.pred_probs is not None or request.knn_graph is not None
        if wanted.is_given or (needs_encoding(dataset) and not has_other_evidence):
            wanted.refuse_network_options()
            with observing(timer):
                keep_features = wanted.is_given and "features" in request.read_options
                learned, test = encoded_features(dataset, test, wanted, keep_features=keep_features)
        elif wanted.settings:
            raise must_be("encoder_set", "left out where no encoder makes the features", wanted.settings[0])
        elif not has_other_evidence and needs_learned_features(dataset):
            earlier = [
                folder,
                *([request.decisions] if request.decisions and request.decisions.is_dir() else []),
            ]
            earlier += [table.absolute().parent for table in request.audited]
            with observing(timer), stage(LEARNING):
                learned, test = learn_features(
                    dataset,
                    request.image_options,
                    seed=request.seed,
                    n_jobs=request.n_jobs,
                    test=test,
                    cache=wanted.cache,
                    earlier=earlier,
                )
        else:
            request.image_options.refuse()
        known = verified.by_row(learned.dataset)
        if request.n_for_review is not None:  # before the work begins
            drawn_order(learned.dataset.labels, request.n_for_review, seed=request.seed, verified=known or ())
        result = find_issues(
            learned.dataset,
            audited=known,
            audited_at_random=None if known is None else verified.rows_at_random(learned.dataset),
            recalibrate=verified.recalibrate,
            estimator=request.estimator,
            pred_probs=None if request.pred_probs is None else load_array(request.pred_probs, "pred_probs"),
            knn_graph=None if request.knn_graph is None else load_graph(request.knn_graph),
            test=test,
            image_issues=request.image_issues,
            threshold=request.threshold,
            target_precision=request.target_precision,
            random_state=request.seed,
            **request.settings,
        )
        sample = None
        if request.n_for_review is not None:
            sample = choose_for_review(result, request.n_for_review, seed=request.seed, verified=known or ())
        result = _with_features(result, timer.seconds)
        with stage("writing"):
            run = write_audit(
                result,
                folder,
                source=_described(request) | verified.described | learned.recorded,
                warnings=tuple(warnings),
                **replacing,
                review_sample=sample,
                learned_features=learned.learned,
            )
    show_reused(learned.reused_from)
    show_encoders(learned)
    show_skipped(learned.skipped)
    used = None if known is None else verified.effect(known, learned.dataset, result.estimator)
    command = command_words(request)
    show_summary(result, run, n_suspects=request.n_suspects, verified=used, command=command)
    if sample is not None:
        show_next_steps(run)
    gate.check(run)


def read_test_data(source: str | None, options: dict[str, Any], **own: str | None) -> NoisyDataset | None:
    """Read the data of ``--test`` with the options of the audited data.

    ``own`` are the options of the test data alone: 'features', 'labels' and 'split', ``None`` if not given.
    """
    given = {name: value for name, value in own.items() if value is not None}
    if source is None:
        for name in given:
            raise InvalidInputError(
                f"'--test-{name}' describes the data of '--test', which was not given. Give both or neither."
            )
        return None
    shared = {name: value for name, value in options.items() if name not in ("labels", "split")}
    features = shared.get("features")
    if "features" not in given and isinstance(features, str) and Path(features).suffix == ".npy":
        raise InvalidInputError(
            f"'--features {features}' holds the features of the audited data only: name the file with those "
            "of the test data with '--test-features'."
        )
    return read_dataset(source, **(shared | given))


def load_graph(path: Path) -> Any:
    """A neighbor graph as ``scipy.sparse.save_npz`` writes it, in CSR format."""
    from scipy import sparse

    if not path.is_file():
        raise must_be("knn_graph", "a path to an existing .npz file", str(path))
    with open_archive(path) as archive:
        if lost := [key for key in ("data", "indices", "indptr", "shape") if key not in archive.keys]:
            raise DataFormatError(
                f"{path} is not a CSR graph: it has no {lost[0]!r}. "
                "Write it with scipy.sparse.save_npz(path, graph.tocsr())."
            )
        data, indices, indptr, shape = (archive.load(key) for key in ("data", "indices", "indptr", "shape"))
    try:
        graph = sparse.csr_array((data, indices, indptr), shape=tuple(shape.tolist()))
        graph.check_format(full_check=True)
    except (ValueError, TypeError) as error:
        raise DataFormatError(f"{path} is not a valid CSR graph ({error}). Write it again.") from error
    return graph


def command_words(request: AuditRequest) -> tuple[str, ...]:
    """The words of the command for the same audit, without those about its folder and its summary."""
    options = dict(request.read_options)
    features = options.pop("features", None)
    given: list[tuple[str, Any]] = [
        *options.items(),
        *(("features", name) for name in ([features] if isinstance(features, str) else features or ())),
        ("test", request.test),
        *((f"test_{name}", value) for name, value in request.test_options.items()),
        ("pred_probs", request.pred_probs),
        ("knn_graph", request.knn_graph),
        *(("audited", table) for table in request.audited),
        ("decisions", request.decisions),
        ("estimator", request.estimator),
        *request.settings.items(),
        ("seed", request.seed or None),
        *(("encoder", encoder) for encoder in request.encoders),
        *(("encoder_set", setting) for setting in request.encoder_settings),
        ("no_cache", request.no_cache),
        *asdict(request.image_options).items(),
        ("image_issues", request.image_issues),
        ("threshold", request.threshold),
        ("target_precision", request.target_precision),
    ]
    words = ["audit", request.source]
    for name, value in given:
        if name == "image_issues" and value is False:
            words.append("--no-image-issues")
        elif value is not None and value is not False:
            words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return tuple(words)


def _with_image_size(request: AuditRequest) -> AuditRequest:
    """The request with the image size among the options of the reader, where it decodes the images."""
    options, size = with_image_size(request.source, request.read_options, request.image_options.image_size)
    image_options = replace(request.image_options, image_size=size)
    return replace(request, read_options=options, image_options=image_options)


def _with_features(result: AuditResult, seconds: Mapping[str, float]) -> AuditResult:
    """Count the time in which a network learned the features, or an encoder made them."""
    spent = {name: seconds[name] for name in (LEARNING, LOADING, ENCODING) if name in seconds}
    total = result.timings["total"] + sum(spent.values())
    return replace(result, timings={**spent, **result.timings, "total": total})


def _described(request: AuditRequest) -> dict[str, Any]:
    """The source for the record of the run, with full paths."""
    files = {"pred_probs": request.pred_probs, "knn_graph": request.knn_graph, "test": request.test}
    return {
        "source": full_path(request.source),
        "options": with_full_paths(request.read_options),
        **{name: full_path(str(path)) for name, path in files.items() if path is not None},
    }
