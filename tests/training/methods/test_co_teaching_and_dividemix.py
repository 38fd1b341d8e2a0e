"""The losses of Co-teaching(+), DivideMix and AugDesc against their papers' formulas written out."""

from typing import Any

import numpy as np
import pytest
import torch
from method_steps import C, softmax, step_of, whole_batch_step
from torch import Tensor

from laplaceconfidence.training.augment.mixing import MixUp
from laplaceconfidence.training.methods.augdesc import AugDesc
from laplaceconfidence.training.methods.co_teaching import CoTeaching
from laplaceconfidence.training.methods.co_teaching_plus import CoTeachingPlus
from laplaceconfidence.training.methods.confidences import averaged_losses
from laplaceconfidence.training.methods.dividemix import DivideMix
from laplaceconfidence.training.methods.interface import Phase, Plan
from laplaceconfidence.training.step import Step
from small_runs import noisy_digits, quick


@pytest.mark.parametrize("number", [0, 2, 5, 30])
def test_co_teaching_learns_from_what_the_other_finds_easy(number: int) -> None:
    method = CoTeaching(forget_rate=0.6, ramp=5)
    step = whole_batch_step(method, method.phases(0)[0], round=number)
    kept = int((1 - 0.6 * min(number / 5, 1)) * 12)
    inputs, labels = step.batch.inputs, step.batch.labels
    each = []
    for network in step.networks:
        p = network(inputs).detach().softmax(dim=1).numpy()
        each.append(-np.log(p[np.arange(12), labels.numpy()]))
    expected = each[0][np.argsort(each[1])[:kept]].mean() + each[1][np.argsort(each[0])[:kept]].mean()
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-5)


def losses_and_predictions(step: Step) -> tuple[list[Any], list[Any]]:
    labels = step.batch.labels.numpy()
    predictions = [softmax(network(step.batch.inputs)) for network in step.networks]
    return [-np.log(p[np.arange(len(p)), labels]) for p in predictions], predictions


@pytest.mark.parametrize("number", [0, 3, 30])
def test_co_teaching_plus_exchanges_small_losses_among_the_disagreement(number: int) -> None:
    method = CoTeachingPlus(forget_rate=0.5, ramp=5, initial=0)
    step = whole_batch_step(method, method.phases(0)[0], round=number)
    losses, predictions = losses_and_predictions(step)
    differ = np.flatnonzero(predictions[0].argmax(axis=1) != predictions[1].argmax(axis=1))
    assert 2 < len(differ) < 12
    kept = max(1, int((1 - 0.5 * min(number / 5, 1)) * len(differ)))
    chosen = [differ[np.argsort(own[differ], kind="stable")][:kept] for own in losses]
    expected = losses[0][chosen[1]].mean() + losses[1][chosen[0]].mean()
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-5)


def test_co_teaching_plus_begins_as_co_teaching_and_learns_nothing_where_both_agree() -> None:
    method = CoTeachingPlus(forget_rate=0.5, initial=3)
    assert [method.phases(number)[0].name for number in (2, 3)] == ["co-teaching", "disagreement"]
    first = whole_batch_step(method, method.phases(0)[0])
    plain = whole_batch_step(CoTeaching(forget_rate=0.5), CoTeaching().phases(0)[0])
    assert torch.equal(method.loss(first), CoTeaching(forget_rate=0.5).loss(plain))
    agreed = whole_batch_step(method, method.phases(3)[0])
    agreed.networks = (agreed.networks[0], agreed.networks[0])
    loss = method.loss(agreed)
    loss.backward()
    assert float(loss.detach()) == 0
    assert not agreed.networks[0].weight.grad.any()  # type: ignore[attr-defined]


def mixmatch_loss(step: Step, confidence: Tensor, trained: Any = None) -> float:
    """The loss of DivideMix with ramp 8 after warm-up 2; ``trained`` turns inputs into what is trained on."""
    own, peer = step.networks[1], step.networks[0]
    x, u = step.batches["labelled"], step.batches["unlabelled"]

    def squared(p: Any) -> Any:
        return p**2 / (p**2).sum(axis=1, keepdims=True)

    w = confidence[x.index].numpy()[:, None]
    target_x = squared(w * np.eye(C)[x.labels.numpy()] + (1 - w) * softmax(own(x.inputs)))
    target_u = squared((softmax(own(u.inputs)) + softmax(peer(u.inputs))) / 2)
    inputs = torch.cat([x.inputs, x.inputs, u.inputs, u.inputs])
    inputs = (inputs if trained is None else trained(inputs)).numpy()
    targets = np.concatenate([target_x, target_x, target_u, target_u])
    part, partner = MixUp(4, own_part_larger=True).draw(len(inputs), torch.Generator().manual_seed(3))
    assert part >= 0.5
    inputs = part * inputs + (1 - part) * inputs[partner]
    targets = part * targets + (1 - part) * targets[partner]
    p = softmax(own(torch.from_numpy(inputs).float()))
    loss_x = -(targets[:8] * np.log(p[:8])).sum(axis=1).mean()
    loss_u = ((targets[8:] - p[8:]) ** 2).mean()
    prior = (np.log(1 / C / p.mean(axis=0)) / C).sum()
    ramp = (5.5 - 2) / 8
    return float(loss_x + 10 * ramp * loss_u + prior)


BATCHES = {"labelled": [8, 9, 10, 11], "unlabelled": [0, 1, 2]}


def test_dividemix_is_mixmatch_on_refined_and_guessed_labels() -> None:
    method = DivideMix(warmup=2, unlabelled_weight=10, ramp=8, sharpen=2, mix_alpha=4)
    confidence = torch.linspace(0, 1, 12)
    plan = Plan({}, {"confidence": confidence})
    step = step_of(method, Phase("mixmatch", trains=(1,)), plan, BATCHES)
    assert float(method.loss(step).detach()) == pytest.approx(mixmatch_loss(step, confidence), rel=1e-4)


def test_augdesc_guesses_on_weak_views_and_is_trained_on_strong_ones() -> None:
    method = AugDesc(warmup=2, unlabelled_weight=10, ramp=8, sharpen=2, mix_alpha=4)
    confidence = torch.linspace(0, 1, 12)
    plan = Plan({}, {"confidence": confidence})
    step = step_of(
        method, Phase("mixmatch", trains=(1,)), plan, BATCHES, strong=lambda images, generator: images * 2
    )
    expected = mixmatch_loss(step, confidence, trained=lambda inputs: 2 * inputs)
    assert float(method.loss(step).detach()) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("view", "scale"), [("weak", 1), ("strong", 2)])
def test_augdesc_warms_up_on_either_view(view: str, scale: int) -> None:
    method = AugDesc(warmup_view=view)
    strong: Any = lambda images, generator: images * 2  # noqa: E731
    step = whole_batch_step(method, method.phases(0)[0], strong=strong)
    expected = torch.nn.functional.cross_entropy(step.trained(scale * step.batch.inputs), step.batch.labels)
    torch.testing.assert_close(method.loss(step), expected)


def test_dividemix_predicts_by_summed_logits() -> None:
    X, y, _ = noisy_digits(60)
    fitted = quick(method="dividemix", rounds=1).fit(X, y)
    inputs = fitted._model.normalized(torch.from_numpy(X).unsqueeze(1))
    with torch.no_grad():
        logits = [network.eval()(inputs) for network in fitted.networks_]
    np.testing.assert_allclose(fitted.predict_proba(X), softmax(logits[0] + logits[1]), atol=1e-5)
    mean = (softmax(logits[0]) + softmax(logits[1])) / 2
    assert np.abs(fitted.predict_proba(X) - mean).max() > 1e-4


def test_dividemix_averages_the_last_five_scaled_losses() -> None:
    rng, state, scaled = np.random.default_rng(0), {}, []
    for _ in range(7):
        losses = rng.random(10) * 5
        scaled.append((losses - losses.min()) / (losses.max() - losses.min()))
        mean = averaged_losses(state, 0, losses)
        np.testing.assert_allclose(mean, np.mean(scaled[-5:], axis=0), rtol=1e-5)
    assert state["losses_0"].shape == (5, 10)
