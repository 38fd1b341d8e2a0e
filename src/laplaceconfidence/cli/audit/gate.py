"""The conditions of ``--fail-if``, checked at the end of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer
from rich.text import Text

from laplaceconfidence.cli.console import notices
from laplaceconfidence.exceptions import InvalidInputError
from laplaceconfidence.records import AuditRun
from laplaceconfidence.records.gate import Condition, check_conditions, parse_condition, reasons_to_fail
from laplaceconfidence.records.refined_run import read_suggestions
from laplaceconfidence.records.run_difference import compare_runs


@dataclass(frozen=True, slots=True, eq=False)
class Gate:
    """The conditions under which the command fails, and the earlier audit that some of them compare with."""

    conditions: tuple[Condition, ...]
    baseline: AuditRun | None

    @classmethod
    def of(cls, texts: Sequence[str], baseline: Path | None, *, has_test: bool) -> Gate:
        """Parse the conditions, and raise for those that cannot be checked, before anything is read."""
        conditions = tuple(map(parse_condition, texts))
        check_conditions(conditions, has_test=has_test, has_baseline=baseline is not None)
        if baseline is None:
            return cls(conditions, None)
        if not any(condition.is_new for condition in conditions):
            raise InvalidInputError(
                "'--baseline' only applies to '--fail-if' with a condition such as 'new-leaks > 0', which "
                "was not given. To see what changed, use 'laplaceconfidence diff'."
            )
        earlier = read_suggestions(baseline)
        _ = earlier.issues  # read now: the folder may be the one that is replaced
        return cls(conditions, earlier)

    def check(self, run: AuditRun) -> None:
        """End with exit code 1, and say why, if the audit meets a condition."""
        difference = None if self.baseline is None else compare_runs(self.baseline, run)
        reasons = reasons_to_fail(self.conditions, run, difference)
        for reason in reasons:
            notices().print(Text.assemble(("Failed: ", "bold red"), reason), soft_wrap=True)
        if reasons:
            raise typer.Exit(1)
