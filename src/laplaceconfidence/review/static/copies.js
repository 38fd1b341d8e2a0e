// A sample and its copies, side by side.

import { byId, droppedText, element, label, look, percent, verdictButton } from "./dom.js";

const KEPT = { keep: "kept", drop: "dropped", unsure: "unsure" };

export function showCopies({ sample: set, position, n_in_queue: n }, { decideCopies }) {
  const place = position === null ? `${n.toLocaleString("en")} sets in this queue` : `${position.toLocaleString("en")} of ${n.toLocaleString("en")} sets in this queue`;
  const more = set.n_copies - set.copies.length;
  const tiles = set.copies.map((copy, index) => tile(copy, index, set, () => decideCopies("keep-one", copy.row)));
  const one = { verdict: null };
  byId("stage").replaceChildren(element("div", { class: "card copies sample text", "data-row": set.row },
    element("div", {}, element("div", { class: "where" }, element("span", {}, place)), question(set),
      element("div", { class: `tiles sides${set.text === null ? "" : " texts"}` }, tiles),
      more > 0 ? element("p", { class: "note" }, `and ${more.toLocaleString("en")} more of the same, to which the decision applies, too`) : null,
      element("div", { class: "actions row-of" },
        set.best === null ? null : verdictButton(one, "keep-one", "S", "Keep the recommended one, drop the others", () => decideCopies("keep-one", set.best), true),
        verdictButton(one, "keep", "K", "Keep all", () => decideCopies("keep")),
        verdictButton(one, "drop", "D", "Drop all", () => decideCopies("drop")),
        verdictButton(one, "unsure", "U", "Unsure", () => decideCopies("unsure"))),
      verdict(set))));
}

export function copiesStoredText(verdict, n) {
  if (verdict === "keep-one") return `Stored: 1 kept, ${(n - 1).toLocaleString("en")} dropped. Z undoes it.`;
  return `Stored: all ${n.toLocaleString("en")} ${KEPT[verdict]}. Z undoes it.`;
}

function question(set) {
  const n = set.n_copies.toLocaleString("en");
  const labels = set.n_conflicting > 1 ? element("span", { class: "given" }, `They have ${set.n_conflicting} different labels. `) : null;
  return element("p", { class: "question" }, `${n} copies of the same sample. `, labels, "Which one should stay?");
}

function tile(copy, index, set, keep) {
  const isBest = copy.row === set.best;
  const number = index < 9 ? element("kbd", {}, String(index + 1)) : null;
  const stamp = copy.verdict === null ? null : element("span", { class: "stamp" }, KEPT[copy.verdict]);
  const elsewhere = copy.dropped_by && copy.dropped_by.subject !== "copies" ? copy.dropped_by : null;
  const details = element("span", { class: "caption" }, element("b", { dir: "auto", title: label(copy.given) }, label(copy.given)),
    isBest ? element("span", { class: "p" }, "recommended") : null,
    element("span", { class: "p" }, copy.confidence === null ? "" : `confidence ${percent(copy.confidence, 1)}`),
    element("span", { class: "id" }, `id ${copy.id}`),
    copy.leak ? element("span", { class: "warn" }, `also in the test set as ${copy.leak.id}`) : null,
    elsewhere ? element("span", { class: "warn" }, droppedText(elsewhere)) : null);
  return element("div", { class: `tile${isBest ? " best" : ""}${copy.verdict === "drop" ? " decided" : ""}`, "data-copy": copy.row },
    look(copy, set.text === null ? "large" : "tile"), details, stamp,
    element("button", { type: "button", onclick: keep, disabled: elsewhere !== null }, "Keep this one ", number));
}

function verdict(set) {
  const decided = set.copies.find((copy) => copy.decided !== null);
  if (!decided) return null;
  const { who, at } = decided.decided;
  return element("p", { class: "verdict", id: "verdict" }, `Decided by ${who} on ${new Date(at).toLocaleString()}.`);
}
