"""HTML of a classifier for notebooks: scikit-learn's diagram, and a summary of the training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import estimator_html_repr

from laplaceconfidence.data.labels import MISSING
from laplaceconfidence.notebook_html import BLUE, ORANGE, Html, element, joined, panel, section
from laplaceconfidence.wording import counted

WIDTH, HEIGHT, MARGIN = 460, 150, 40  # pixels of the chart

_LINES = {"validation_accuracy": ("held-out given labels", BLUE), "test_accuracy": ("test set", ORANGE)}


class NotebookSummary:
    """Mixin of classifiers that notebooks show with a summary of their training above the diagram."""

    @property
    def _repr_html_(self) -> Any:
        if get_config()["display"] != "diagram":
            raise AttributeError("_repr_html_ is only defined where scikit-learn's 'display' is 'diagram'")
        return lambda: classifier_html(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = classifier_html(self)
        return bundle


def classifier_html(classifier: Any) -> str:
    """A classifier as HTML: the diagram of its settings and, once it is fitted, a summary of the training.

    Parameters
    ----------
    classifier : RobustClassifier

    Returns
    -------
    str
    """
    diagram: str = estimator_html_repr(classifier)
    if not hasattr(classifier, "summary_"):
        return diagram
    return training_html(classifier) + diagram


def training_html(classifier: Any) -> str:
    """A summary of the training of a fitted classifier: accuracies and changed labels.

    Parameters
    ----------
    classifier : RobustClassifier
        Fitted.

    Returns
    -------
    str
    """
    summary = classifier.summary_
    parts = []
    lines = {key: _measured(classifier.history_, key) for key in _LINES}
    lines = {key: values for key, values in lines.items() if values}
    if lines:
        parts.append(section("Accuracy after every round", _chart(lines, summary["chosen_round"])))
    title = f"Trained for {counted(summary['rounds'], 'round')}; round {summary['chosen_round']} was chosen"
    return panel(title, *parts, note=_facts(classifier, summary))


def _facts(classifier: Any, summary: Mapping[str, Any]) -> str:
    facts = []
    if "validation_accuracy" in summary:
        facts.append(f"accuracy on held-out given labels {summary['validation_accuracy']:.1%}")
    if "test_accuracy_of_chosen_round" in summary:
        facts.append(f"on the test set {summary['test_accuracy_of_chosen_round']:.1%}")
    codes = {value: code for code, value in enumerate(classifier.classes_.tolist())}
    refined = np.array([codes[value] for value in classifier.refined_labels_.tolist()])
    given = classifier._given_codes
    n_changed, n_labeled = int(((given != MISSING) & (given != refined)).sum()), int((given != MISSING).sum())
    facts.append(f"would change {n_changed:,} of {counted(n_labeled, 'given label')}")
    return "; ".join(facts)


def _measured(history: Sequence[Mapping[str, Any]], key: str) -> list[tuple[int, float]]:
    return [(record["round"], record[key]) for record in history if record.get(key) is not None]


def _chart(lines: Mapping[str, list[tuple[int, float]]], chosen_round: int) -> Html:
    """Lines over the rounds, with the chosen round marked."""
    values = [value for line in lines.values() for _, value in line]
    low, high = min(values), max(values)
    low, high = max(0.0, low - 0.1 * (high - low) - 0.01), min(1.0, high + 0.1 * (high - low) + 0.01)
    n_rounds = max(number for line in lines.values() for number, _ in line)
    right, bottom, top = WIDTH - 10, HEIGHT - 24, 10

    def x(number: int) -> float:
        return round(MARGIN + (right - MARGIN) * (number - 1) / max(1, n_rounds - 1), 1)

    def y(value: float) -> float:
        return round(bottom - (bottom - top) * (value - low) / (high - low), 1)

    chosen = x(chosen_round)
    soft = {"stroke": "currentColor", "stroke_opacity": 0.35}
    shapes = [
        element("line", x1=MARGIN, y1=bottom, x2=right, y2=bottom, **soft),
        element("line", x1=MARGIN, y1=top, x2=MARGIN, y2=bottom, **soft),
        element("line", x1=chosen, y1=top, x2=chosen, y2=bottom, stroke_dasharray=3, **soft),
        _text(MARGIN - 6, bottom, f"{low:.0%}", "end"),
        _text(MARGIN - 6, top + 8, f"{high:.0%}", "end"),
        _text(x(1), HEIGHT - 8, "round 1", "start"),
        _text(x(n_rounds), HEIGHT - 8, f"{n_rounds}", "end"),
    ]
    for key, line in lines.items():
        color = _LINES[key][1]
        points = " ".join(f"{x(number)},{y(value)}" for number, value in line)
        shapes.append(element("polyline", points=points, fill="none", stroke=color, stroke_width=2))
        shapes += [element("circle", cx=x(number), cy=y(v), r=2.5, fill=color) for number, v in line[-1:]]
    last = "; ".join(f"{_LINES[key][0]} {line[-1][1]:.1%}" for key, line in lines.items())
    chart = element(
        "svg",
        *shapes,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        style=f"width:{WIDTH}px;max-width:100%",
        role="img",
        aria_label=f"Accuracy after every round; after the last one: {last}",
    )
    return joined([chart, element("div", *_legend(lines), class_="lc-note")])


def _legend(lines: Mapping[str, Any]) -> list[object]:
    swatch = "display:inline-block;width:10px;height:10px;margin:0 4px 0 12px;background:"
    legend: list[object] = []
    for key in lines:
        name, color = _LINES[key]
        legend += [element("span", style=swatch + color), name]
    return [*legend, "; dashed: the chosen round"]


def _text(x: float, y: float, text: str, anchor: str) -> Html:
    return element("text", text, x=x, y=y, text_anchor=anchor, font_size=11, fill="currentColor")
