"""The arguments of ``laplaceconfidence tune``, as a bench of one method with swept settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laplaceconfidence.cli.bench.request import BenchRequest
from laplaceconfidence.cli.errors import check_torch
from laplaceconfidence.cli.sources import stem_of
from laplaceconfidence.evaluation.bench_file import Bench, checked_bench
from laplaceconfidence.evaluation.contenders import expand
from laplaceconfidence.evaluation.noises import NONE
from laplaceconfidence.validation import must_be

PAPER_GRID: dict[str, list[Any]] = {"sharpen": [1, 2, 3, 4], "n_neighbors": [2, 10, 50, 100]}
"""What the paper chooses LaplaceConfidence's settings from, on held-out noisy labels."""

POSTERIOR_GRID: dict[str, list[Any]] = {"label_smoothing": [0.0, 0.1, 0.2]}
"""The same where networks learn from posteriors, which are not sharpened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest(BenchRequest):
    """The arguments of the command."""

    method: str = "laplace"
    tried: tuple[str, ...] = ()  # "setting=value,value"

    @property
    def needs_tests(self) -> bool:
        """Nothing is measured on test data: settings must not be chosen by them."""
        return False

    @property
    def folder(self) -> Path:
        """The folder of the runs."""
        return self.out or Path(f"laplaceconfidence-tune-{stem_of(self.source)}")

    def bench(self) -> Bench:
        """One method on one data set, once for each combination of the values that are tried."""
        check_torch("Tuning")
        from laplaceconfidence.training.methods.registry import check_method_name
        from laplaceconfidence.training.presets import load_preset, parse_changes

        check_method_name(self.method)
        tables = parse_changes(self.changes)
        own = {name: value for name, value in tables.pop("method", {}).items() if name != "name"}
        preset = "digits" if self.preset is None and self.source == "digits" else self.preset
        stated = None if preset is None else load_preset(preset, method=self.method, method_settings=own)
        # Without a preset, the data decide about estimator and targets, and they are not read yet.
        usual = {} if stated is None else {"confidence": "laplace", "targets": "refurbished", **stated.method}
        tried = self._values() or self._usual_grid({**usual, **own})
        if "sharpen" in tried and usual.get("targets") == "posterior":
            advice = "Add --set method.confidence=laplace, or try label_smoothing."
            raise must_be(
                "try", "about settings that are used: posteriors are not sharpened", "sharpen", advice
            )
        noise = NONE
        if self.noises:
            noise = self.noises[0]
        elif stated is not None and stated.noise is not None:
            noise = f"{stated.noise.kind}:{stated.noise.rate}"
        for name in tried:
            if name in own or name in tables.get("training", {}):
                raise must_be("try", "about settings that --set does not fix", name)
        content: dict[str, Any] = {
            "name": stem_of(self.source),
            "source": self.source,
            "noises": [noise],
            "test_share": self.test_share or tables.get("data", {}).get("test_share"),
            "image_size": tables.get("data", {}).get("image_size", self.image_size),
            "skip_bad": self.skip_bad,
            **self.read_options,
        }
        checked = checked_bench({"data": [content], "contender": [{"method": self.method}]}, "Tuning")
        return Bench(
            title=f"Settings of {self.method}, by accuracy on held-out noisy labels",
            data=checked.data,
            contenders=tuple(expand("training", self.method, {**own, **tried})),
            seeds=self.seeds(),
            preset=preset,
            training=tables.get("training", {}),
        )

    def _values(self) -> dict[str, list[Any]]:
        from laplaceconfidence.training.presets import parse_changes

        found = {}
        for text in self.tried:
            name, equals, values = text.partition("=")
            words = [word.strip() for word in values.split(",") if word.strip()]
            if not (name.strip() and equals and words):
                raise must_be("try", "written setting=value,value, such as sharpen=1,2,3,4", text)
            parsed = [parse_changes([f"value={word}"])["training"]["value"] for word in words]
            found[name.strip()] = parsed
        return found

    def _usual_grid(self, settings: Mapping[str, Any]) -> dict[str, list[Any]]:
        """What is tried unless the user says so: for refurbished labels, what the paper tries."""
        if self.method != "laplace":
            advice = "For example --try learning_rate=0.01,0.02,0.05."
            raise must_be(
                "try", f"given for {self.method!r}: only 'laplace' has values of its own", None, advice
            )
        if settings.get("confidence") == "laplace":
            return PAPER_GRID
        return (
            {"sharpen": PAPER_GRID["sharpen"]} if settings.get("targets") == "refurbished" else POSTERIOR_GRID
        )
