// A training sample beside the sample of the test set that it is a copy of.

import { byId, droppedText, element, label, look, verdictButton } from "./dom.js";

export const LEAK_OUTCOMES = { keep: "Kept", drop: "Dropped", unsure: "Unsure" };

export function showLeak({ sample, position, n_in_queue: n }, { decide }) {
  const place = position === null ? `${n.toLocaleString("en")} in this queue` : `${position.toLocaleString("en")} of ${n.toLocaleString("en")} in this queue`;
  const { leak } = sample;
  byId("stage").replaceChildren(element("div", { class: "card sample text", "data-row": sample.row },
    element("div", {}, element("div", { class: "where" }, element("span", {}, place)), question(sample),
      leak ? element("div", { class: `tiles sides${sample.text === null ? "" : " texts"}` },
        side("In this data", look(sample, "large"), sample.given, sample.id),
        side("In the test set", look({ ...leak, row: sample.row, given: leak.label }, "large", "test_picture"), leak.label, leak.id)) : null,
      leak ? element("div", { class: "actions row-of" },
        verdictButton(sample, "drop", "D", "Drop it from this data", () => decide("drop"), true),
        verdictButton(sample, "keep", "K", "Keep it", () => decide("keep")),
        verdictButton(sample, "unsure", "U", "Unsure", () => decide("unsure"))) : null,
      verdict(sample))));
}

function question({ leak, given }) {
  if (!leak) return element("p", { class: "question" }, "This sample is not in the test set.");
  const labels = leak.label !== null && given !== null && leak.label !== given
    ? element("span", { class: "given" }, "The labels differ. ") : null;
  return element("p", { class: "question" }, "This sample seems to be in the test set, too. ", labels, "Should it stay in this data?");
}

function side(title, shown, name, id) {
  return element("div", { class: "tile" }, element("b", {}, title), shown, element("span", { class: "caption" },
    element("b", { dir: "auto", title: label(name) }, label(name)), element("span", { class: "id" }, `id ${id}`)));
}

function verdict(sample) {
  if (sample.decided === null) return sample.dropped_by && element("p", { class: "verdict", id: "verdict" }, droppedText(sample.dropped_by));
  const { who, at } = sample.decided;
  return element("p", { class: "verdict", id: "verdict" }, `${LEAK_OUTCOMES[sample.verdict]}, by ${who} on ${new Date(at).toLocaleString()}.`);
}
