"""The model that predicts new samples as plain arrays, so that a run can keep it without pickles."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from laplaceconfidence.confidence.noise_aware.coordinates import PrincipalAxes
from laplaceconfidence.confidence.noise_aware.discriminants import Discriminants
from laplaceconfidence.confidence.noise_aware.noise_model import Pool
from laplaceconfidence.confidence.noise_aware.prediction import FittedView, NewSampleModel, Predictor
from laplaceconfidence.confidence.noise_aware.probes import LinearProbe, Probes
from laplaceconfidence.confidence.noise_aware.views import FeatureView, NeighborGraph

_AXES = ("mean", "axes", "half_whitening", "center")
_DISCRIMINANTS = tuple(field.name for field in dataclasses.fields(Discriminants))
_POOL = ("weights", "bias", "transition")


def predictor_arrays(predictor: Predictor) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Take apart a predictor of samples with one view and without ``pred_probs``.

    Parameters
    ----------
    predictor : Predictor
        It must have predicted something, so that all of it is fitted.

    Returns
    -------
    arrays : dict of str to ndarray
    facts : dict of str to object
        What JSON can store.
    """
    model, pool = predictor.model, predictor.feature_pool
    assert model is not None  # there are features, and no pred_probs
    assert pool is not None
    (fitted,) = model.fitted()
    view = fitted.view
    assert view.axes is not None
    assert view.coordinates is not None
    arrays = {
        "coordinates": view.coordinates,
        "neutral": fitted.neutral,
        **{name: getattr(view.axes, name) for name in _AXES},
        **{f"pool_{name}": getattr(pool, name) for name in _POOL},
        "regressions": fitted.probes.regressions.weights,
        **{f"discriminants_{name}": getattr(fitted.probes.discriminants, name) for name in _DISCRIMINANTS},
        **{f"message_{number}": message for number, message in enumerate(fitted.messages)},
    }
    facts = {
        "name": view.name,
        "largest": view.axes.largest,
        "graphs": [[graph.metric, graph.n_neighbors] for graph in view.graphs],
        "n_classes": model.n_classes,
    }
    return arrays, facts


def restored_predictor(
    arrays: Mapping[str, NDArray[Any]], facts: Mapping[str, Any], n_jobs: int | None
) -> Predictor:
    """Put a predictor together again.

    Parameters
    ----------
    arrays, facts : mapping
        What ``predictor_arrays`` returned.
    n_jobs : int or None
        Number of threads.

    Returns
    -------
    Predictor
    """
    axes = PrincipalAxes(facts["largest"], *(arrays[name] for name in _AXES))
    # New samples are compared with all, so that only the number of neighbors is needed.
    graphs = tuple(
        NeighborGraph(metric, k, sparse.csr_array((0, 0)), np.empty(0), None) for metric, k in facts["graphs"]
    )
    view = FeatureView(facts["name"], None, arrays["coordinates"], axes, graphs)
    probes = Probes(
        LinearProbe(arrays["regressions"]),
        Discriminants(*(arrays[f"discriminants_{name}"] for name in _DISCRIMINANTS)),
    )
    messages = [arrays[f"message_{number}"] for number in range(len(graphs))]
    fitted = FittedView(view, probes, messages, arrays["neutral"])
    labels = np.empty(0, dtype=np.int64)  # only a fit needs them
    model = NewSampleModel([view], labels, None, facts["n_classes"], n_jobs, [fitted])
    return Predictor(model, Pool(*(arrays[f"pool_{name}"] for name in _POOL)), None)
