"""One of several processes. Usage: distributed_run.py FOLDER RANK SIZE"""

import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parents[1]))
from laplaceconfidence.exceptions import Interrupted
from laplaceconfidence.training.methods.interface import Evidence, Method, Phase, Plan, Problem, State
from laplaceconfidence.training.methods.m_correction import MCorrection
from laplaceconfidence.training.methods.mentornet import MentorNet
from laplaceconfidence.training.methods.registry import METHODS as REGISTRY
from laplaceconfidence.training.step import Step
from small_runs import noisy_digits, quick

FROM_INPUTS = "laplace, confidences from inputs"
AVERAGED = "laplace, averaged weights"
DYNAMIC = "m_correction, dynamic"
LEARNED = "mentornet, learned"
HIDDEN = "laplacenet, hidden labels"
METHODS = (FROM_INPUTS, AVERAGED, DYNAMIC, LEARNED, HIDDEN, *REGISTRY)


@dataclass(frozen=True)
class RestingHead(Method):
    """A head that is used in every other round only."""

    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("head" if round % 2 else "rest", trains=(0,)),)

    def heads(self, n_features: int, n_classes: int) -> dict[str, nn.Module]:
        return {"second": nn.Linear(n_features, n_classes)}

    def loss(self, step: Step) -> Tensor:
        outputs = step.trained.outputs(step.batch.weak())
        logits = outputs.heads["second"] if step.phase.name == "head" else outputs.logits
        return functional.cross_entropy(logits, step.batch.labels)


@dataclass(frozen=True)
class ChangedModule(Method):
    """A module that plans change, which only the first process makes."""

    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def modules(self, n_classes: int) -> dict[str, nn.Module]:
        return {"weight": nn.Linear(1, 1)}

    def plan(self, phase: Phase, evidence: Evidence, state: State) -> Plan:
        with torch.no_grad():
            evidence.modules["weight"].bias += evidence.round + 1.0  # type: ignore[operator]
        return Method.plan(self, phase, evidence, state)

    def loss(self, step: Step) -> Tensor:
        losses = functional.cross_entropy(
            step.trained(step.batch.weak()), step.batch.labels, reduction="none"
        )
        with torch.no_grad():
            weights = step.modules["weight"](losses[:, None])[:, 0]
        return (losses * weights).mean()


@dataclass(frozen=True)
class LearnedLabels(Method):
    """Label logits with gradients of their own, and two steps of the optimizer per batch."""

    n_networks: ClassVar[int] = 1

    def phases(self, round: int) -> tuple[Phase, ...]:
        return (Phase("training", trains=(0,)),)

    def initial_state(self, problem: Problem) -> State:
        return {"label_logits": 5.0 * functional.one_hot(problem.labels, problem.n_classes)}

    def loss(self, step: Step) -> Tensor:
        rows = step.variable("labels", step.state["label_logits"][step.batch.index])
        return -(rows.softmax(dim=1) * step.trained(step.batch.weak()).log_softmax(dim=1)).sum(dim=1).mean()

    def losses(self, step: Step) -> Iterator[Tensor]:
        yield self.loss(step)
        yield self.loss(step)

    def after_step(self, step: Step) -> None:
        moved = step.state["label_logits"][step.batch.index] - 100 * step.gradients["labels"]
        step.write_rows("label_logits", step.batch.index, moved)


TOYS = {"head": RestingHead(), "module": ChangedModule(), "learned labels": LearnedLabels()}


def run(method: str | Method, out: Path | None = None) -> Any:
    # 135 samples are trained on: batches of 32 leave a short one that does not split evenly.
    X, y, true = noisy_digits(150)
    more: dict[str, Any] = {}
    fit: dict[str, Any] = {"test": (X, y)}
    if method == FROM_INPUTS:
        X, method = X.reshape(len(X), -1).astype("float32"), "laplace"
        fit["test"] = (X, y)
        more = {"own": {"confidence_from": "inputs"}, "weak": "none", "strong": "none"}
    if method == AVERAGED:
        method, more = "laplace", {"schedule": "cosine", "learning_rate_drops": (), "clip_gradients": 1.0}
        more |= {"weight_average": 0.9, "average_evidence": True}
    if method == DYNAMIC:
        method = MCorrection("MD-DYR-SH", warmup=1, dynamic_mixup=1)
    if method == LEARNED:
        method, fit["audited"] = MentorNet("learned", burn_in=0.0, mentor_steps=5), dict(enumerate(true[:60]))
    if method == HIDDEN:
        method, y, more = "laplacenet", y.copy(), {"own": {"labeled_share": 0.3}, "missing_label": -1}
        y[60:] = -1  # all classes are among the others
    classifier = quick(network="small_runs:plain_mlp", method=method, out=out, **more)
    if out is not None:
        with suppress(Interrupted):  # only the first process calls listeners: all must stop all the same
            classifier.fit(X, y, **fit, listeners=[lambda _: signal.raise_signal(signal.SIGTERM)])
    classifier.fit(X, y, **fit)
    return {
        "history": classifier.history_,
        "confidence": torch.from_numpy(classifier.confidence_),
        "networks": [network.state_dict() for network in classifier.networks_],
    }


if __name__ == "__main__":
    folder, rank, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    results = {method: run(method) for method in METHODS}
    results |= {"stopped": run("laplace", folder / "run")}
    results |= {name: run(toy) for name, toy in TOYS.items()}
    torch.save(results, folder / f"results-{rank}.pt")
    dist.destroy_process_group()
