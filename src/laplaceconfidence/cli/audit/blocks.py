"""An audit in blocks of rows as the command line asks for it: stated first, and resumed if it was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from laplaceconfidence.auditing.block_audit import BlockAuditResult, audit_in_blocks, remove_work
from laplaceconfidence.auditing.block_growth import audit_since, refuse_settings
from laplaceconfidence.auditing.table import FlagRule
from laplaceconfidence.blocks.plan import parse_memory
from laplaceconfidence.cli.audit.gate import Gate
from laplaceconfidence.cli.audit.summary import against_truth
from laplaceconfidence.cli.console import notices, output, plain_table, shown
from laplaceconfidence.cli.progress import showing_progress
from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.data.read_options import ReadOptions
from laplaceconfidence.data.source_paths import with_full_paths
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.block_run import SUSPECTS, write_block_audit
from laplaceconfidence.records.run_folder import reserved_place
from laplaceconfidence.stages import stage
from laplaceconfidence.validation import must_be

if TYPE_CHECKING:
    from laplaceconfidence.cli.audit.run import AuditRequest


def runs_in_blocks(request: AuditRequest) -> bool:
    """Whether an option asks for an audit in blocks."""
    given = (request.memory, request.cluster, request.work, request.since)
    return request.keep_index or any(value is not None for value in given)


def run_block_audit(request: AuditRequest, folder: Path, gate: Gate, warnings: list[str]) -> None:
    """Audit in blocks, write the run and show its summary."""
    _refuse_other_options(request)
    replacing = {"overwrite": request.overwrite, "discard_decisions": request.discard_decisions}
    work = request.work or folder.absolute().with_name(f".{folder.name}.work")
    with reserved_place(folder, **replacing), showing_progress():
        options, rule = (
            ReadOptions(**request.read_options),
            FlagRule(request.threshold, request.target_precision),
        )
        if request.since is not None:
            given = {"estimator": request.estimator, "seed": request.seed or None, **_settings(request)}
            limits = {"memory": request.memory, "cluster": request.cluster, "work": request.work}
            refuse_settings(given | limits)
            result = audit_since(
                request.source,
                options,
                request.since,
                rule=None if rule == FlagRule() else rule,
                n_jobs=request.n_jobs,
                work=folder.absolute().with_name(f".{folder.name}.since"),
            )
        else:
            with _client(request) as client:
                result = audit_in_blocks(
                    request.source,
                    options,
                    estimator=request.estimator,
                    settings=request.settings,
                    rule=rule,
                    random_state=request.seed,
                    memory=request.memory,
                    client=client,
                    work=work,
                    keep_index=request.keep_index,
                    stating=_state,
                )
        source = dict(result.data.described) | {"options": with_full_paths(request.read_options)}
        with stage("writing"):
            run = write_block_audit(result, folder, source=source, warnings=tuple(warnings), **replacing)
    _show_summary(result, run, request.n_suspects)
    remove_work(result)
    gate.check(run)


def _settings(request: AuditRequest) -> dict[str, Any]:
    """Settings of the estimator, but for the number of threads, which is no part of a run."""
    return {name: value for name, value in request.settings.items() if name != "n_jobs"}


@contextmanager
def _client(request: AuditRequest) -> Iterator[Any]:
    if request.cluster is None:
        yield None
        return
    from laplaceconfidence.blocks.cluster import connected

    memory = None if request.memory is None else parse_memory(request.memory)
    with connected(request.cluster, memory=memory) as client:
        yield client


def _refuse_other_options(request: AuditRequest) -> None:
    """Raise for options that would be ignored."""
    given = {
        "test": request.test,
        **{f"test_{name}": value for name, value in request.test_options.items()},
        "pred_probs": request.pred_probs,
        "knn_graph": request.knn_graph,
        "audited": request.audited or None,
        "decisions": request.decisions,
        "encoder": request.encoders or None,
        "encoder_set": request.encoder_settings or None,
        "no_cache": request.no_cache or None,
        "sample_for_review": request.n_for_review,
        "image_issues": request.image_issues,
    }
    for name, value in given.items():
        if value is not None:
            raise must_be(name, "left out where an audit runs in blocks", value)
    request.image_options.refuse()


def _state(sentence: str) -> None:
    notices().print(Text(sentence), soft_wrap=True)


def _show_summary(result: BlockAuditResult, run: AuditRun, n_suspects: int) -> None:
    console = output()
    console.print()
    statement = result.statement
    console.print(Text(statement.headline, style="bold"))
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    for name, text in statement.facts:
        facts.add_row(f"{name}:", Text(text))
    console.print(facts)
    seconds = result.timings["total"]
    background = f"Estimator: {result.estimator_name!r}; {seconds:.1f} s in {result.plan.n_blocks} blocks"
    if result.diagnostics.search == "ivf" and result.diagnostics.recall is not None:
        background += f"; the approximate search found {result.diagnostics.recall:.1%} of the neighbors"
    console.print(Text(f"{background}.", style="dim"))
    if (is_wrong := result.data.is_wrong) is not None:
        is_known = is_wrong != MISSING
        wrong, flagged, scores = is_wrong[is_known] == 1, result.flagged[is_known], result.scores[is_known]
        console.print(against_truth(wrong, flagged, scores))
    if n_suspects and len(result.first_rows):
        names = dict(zip(result.data.class_values.tolist(), result.data.class_names, strict=True))
        table = plain_table("To look at first", "row:", "id", "given", "suggested", "probability:", "score:")
        listed = result.suspects(n_suspects)
        for row, sample in zip(listed.index, listed.to_dict("records"), strict=True):
            differs = sample["predicted_label"] != sample["given_label"]
            kind = "predicted" if differs else "alternative"
            table.add_row(
                str(row),
                shown(sample["id"], 24),
                shown(names[sample["given_label"]], 24),
                shown(names[sample[f"{kind}_label"]], 24),
                f"{sample[f'{kind}_probability']:.2f}",
                f"{sample['label_score']:.3f}",
            )
        console.print()
        console.print(table)
    console.print()
    console.print(Text.assemble("Written to ", (f"{run.folder}/", "bold"), ":"), soft_wrap=True)
    several = f" to {result.n_parts - 1:05d}" if result.n_parts > 1 else ""
    for name, meaning in (
        (SUSPECTS, "the labels to look at first"),
        (
            "issues-00000.parquet",
            f"every sample, in the order of the data{several and f', in parts{several}'}",
        ),
        ("evidence-00000.parquet", "top classes and neighbors of every sample, in the same parts"),
        ("audit.json", "what was found, settings, versions, timings"),
    ):
        console.print(f"  [bold]{name:<24}[/bold] {meaning}")
