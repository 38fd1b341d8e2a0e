// One sample at a time.

import { get } from "./api.js";
import { showCopies } from "./copies.js";
import { byId, droppedText, element, label, look, percent, quoted, shortened, verdictButton } from "./dom.js";
import { showLeak } from "./leaks.js";
import { DROPPABLE, state } from "./state.js";

const REASONS = { disputed: "Annotators differ.", uncertain: "The answer is least certain here.", outliers: "Unlike all other samples.", empty: "The text is empty.", groups: "In a group with many wrong labels.",
  rare: "Of a rare class.", order: "Near similar samples in the order of the rows." };

export const OUTCOMES = { keep: "Kept", suggestion: "Suggestion accepted", other: "Another class", unsure: "Unsure", none: "No class fits", drop: "Dropped" };

export function showSample(answer, actions) {
  const { decide, chooseOther, open, switchView } = actions;
  const stage = byId("stage");
  const sample = answer.sample;
  state.sample = sample;
  if (sample === null) {
    stage.replaceChildren(nothingLeft(answer.progress.n_left, switchView));
    return;
  }
  if (state.queue.view === "copies") { showCopies(answer, actions); return; }
  if (state.queue.view === "leaks") { showLeak(answer, actions); return; }
  const words = sample.text !== null;
  const box = element("div", { class: `card sample${words ? " text" : ""}`, "data-row": sample.row },
    words ? longText(sample) : look(sample, "large"),
    element("div", {}, where(answer), question(sample), classes(sample, decide), annotators(sample), tellingWords(sample), buttons(sample, decide, chooseOther), verdict(sample)));
  stage.replaceChildren(box, ...neighbors(sample, open));
}

function where({ sample, position, n_in_queue: n }) {
  const place = position === null ? `${n.toLocaleString("en")} in this queue` : `${position.toLocaleString("en")} of ${n.toLocaleString("en")} in this queue`;
  const confidence = sample.confidence === null ? null : `confidence ${percent(sample.confidence, 1)}`;
  const calibrated = sample.calibrated === null ? null : `calibrated ${percent(sample.calibrated, 1)}`;
  return element("div", { class: "where" }, element("span", {}, place), element("span", { class: "id", title: sample.id }, `id ${shortened(sample.id)}`),
    sample.name === sample.id ? null : element("span", { class: "row" }, sample.name),
    confidence && element("span", {}, confidence), calibrated && element("span", {}, calibrated));
}

function question(sample) {
  const asked = labelQuestion(sample);
  const odd = state.queue.view === "images" && sample.image_issues ? `Odd image: ${sample.image_issues}.` : null;
  const missing = state.queue.view === "missing" && sample.missing_values ? `Empty: ${sample.missing_values}.` : null;
  const reason = REASONS[state.queue.view] ?? odd ?? missing;
  if (reason) asked.prepend(`${reason} `);
  return asked;
}

function labelQuestion(sample) {
  const given = element("span", { class: "given" }, label(sample.given));
  const labeled = isMajority(sample) ? "Most often labeled " : "Labeled ";
  const suggested = element("span", { class: "suggested" }, label(sample.suggested));
  if (sample.given === null) return element("p", { class: "question" }, "No label was given. Is it ", suggested, "?");
  if (sample.given === sample.suggested) return element("p", { class: "question" }, labeled, given, ". Is that right?");
  return element("p", { class: "question" }, labeled, given, ". Should it be ", suggested, "?");
}

function classes(sample, decide) {
  return element("ol", { class: "classes", "aria-label": "Most probable classes" }, sample.top.map((top, index) => {
    const bar = element("div", {});
    bar.style.width = `${100 * top.probability}%`;
    const role = top.name === sample.given ? "is-given" : top.name === sample.suggested ? "is-suggested" : "";
    return element("li", {}, element("button", {
      type: "button", class: role, title: `Label it ${top.name} (${index + 1})`, onclick: () => decide("other", top.code),
    }, element("kbd", {}, String(index + 1)), element("span", { class: "name", dir: "auto" }, top.name),
    element("span", { class: "track" }, bar), element("span", { class: "p" }, percent(top.probability, 1))));
  }));
}

function buttons(sample, decide, chooseOther) {
  const button = (verdict, key, text, action, primary) => verdictButton(sample, verdict, key, text, action, primary);
  const keep = sample.given === null ? "Leave without a label" : `Keep ${quoted(sample.given)}`;
  const agrees = sample.given === sample.suggested;
  const isOutlier = DROPPABLE.includes(state.queue.view);
  const keepFirst = agrees || sample.top[0]?.name === sample.given;
  return element("div", { class: `actions${agrees ? " agrees" : ""}${isOutlier ? " with-drop" : ""}` },
    button("keep", "K", keep, () => decide("keep"), keepFirst),
    agrees ? null : button("suggestion", "S", `Accept ${quoted(sample.suggested)}`, () => decide("suggestion"), !keepFirst),
    button("other", "A", "Another class…", chooseOther),
    button("unsure", "U", "Unsure", () => decide("unsure")),
    button("none", "N", "No class fits", () => decide("none")),
    isOutlier ? button("drop", "D", "Drop it", () => decide("drop")) : null);
}

function isMajority(sample) {
  const counts = new Map();
  for (const { label: name } of sample.annotators?.said ?? []) counts.set(name, (counts.get(name) ?? 0) + 1);
  const own = counts.get(sample.given) ?? 0;
  return counts.size > 0 && [...counts].every(([name, n]) => name === sample.given || n < own);
}

function annotators(sample) {
  if (!sample.annotators) return null;
  const { said, n_more: more, ask } = sample.annotators;
  const rows = said.map((one) => element("tr", {},
    element("th", { scope: "row", dir: "auto", title: one.accuracy === null ? "" : `Estimated accuracy ${percent(one.accuracy, 1)}` }, one.annotator),
    element("td", { class: one.label === sample.given ? "given" : one.label === sample.suggested ? "suggested" : "", dir: "auto" }, one.label),
    element("td", { class: "p" }, one.accuracy === null ? "" : `right ${percent(one.accuracy)} of the time`)));
  return element("div", { class: "annotators" },
    element("h3", {}, said.length ? "Who said what" : "Nobody labeled it"),
    said.length ? element("table", {}, element("tbody", {}, rows)) : null,
    more ? element("p", { class: "telling" }, `and ${more.toLocaleString("en")} more labels`) : null,
    ask ? element("p", { class: "telling" }, "If in doubt, ask ", element("b", { dir: "auto" }, ask), ".") : null);
}

function tellingWords(sample) {
  const line = (words, name, kind) => words.length > 0 && element("p", { class: "telling" },
    "Words for ", element("span", { class: kind, dir: "auto" }, label(name)), ": ", element("span", { dir: "auto" }, words.join(", ")));
  const lines = [line(sample.words.suggested, sample.suggested, "suggested"), line(sample.words.given, sample.given, "given")].filter(Boolean);
  return lines.length ? element("div", { class: "words-for" }, ...lines) : null;
}

function verdict(sample) {
  if (sample.decided === null) return sample.dropped_by && element("p", { class: "verdict", id: "verdict" }, droppedText(sample.dropped_by));
  const { who, at, label: name } = sample.decided;
  const result = name === null ? "" : `: ${quoted(name)}`;
  return element("p", { class: "verdict", id: "verdict" },
    `${OUTCOMES[sample.verdict]}${result}, by ${who} on ${new Date(at).toLocaleString()}.`);
}

function neighbors(sample, open) {
  if (!sample.neighbors.length) return [];
  const tiles = sample.neighbors.map((near) => element("button", {
    type: "button", class: `tile ${near.position.replace(" ", "-")}`, title: `Show sample ${near.name} (similarity ${near.similarity.toFixed(2)}, ${percent(near.weight, 1)} of the weight)`, onclick: () => open(near.row),
  }, look(near, "tile"), element("span", { class: "caption" },
    element("b", { dir: "auto" }, label(near.given)), " ", element("span", { class: "p" }, `similarity ${near.similarity.toFixed(2)}`))));
  const disagree = sample.neighbors.filter((near) => near.position === "disagrees").length;
  return [element("h3", {}, `Neighbors of largest weight: ${disagree} of ${tiles.length} have another label than ${quoted(sample.given ?? sample.suggested)}`),
    element("div", { class: `tiles neighbors${sample.text === null ? "" : " texts"}` }, tiles)];
}

function longText(sample) {
  const box = look(sample, "large");
  box.setAttribute("tabindex", "0");
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Text of the sample");
  const characters = (text) => [...text].length;  // code points, as the server counts them: an emoji is one, not two
  let shown = characters(sample.text);
  if (shown >= sample.n_characters) return box;
  const more = element("button", { type: "button" }, "");
  const showRest = () => { more.textContent = `Show more (${(sample.n_characters - shown).toLocaleString("en")} characters left)`; };
  showRest();
  more.addEventListener("click", async () => {
    const part = (await get(`/api/text/${sample.row}?start=${shown}`)).text;
    box.append(part);
    shown += characters(part);
    if (part && shown < sample.n_characters) showRest();
    else more.remove();
  });
  return element("div", {}, box, more);
}

const viewButtons = () => [...document.querySelectorAll("#views button")];

function nothingLeft(left, switchView) {
  const { search, given, show, view } = state.queue;
  if (search || given !== null || show === "decided") {
    return element("div", { class: "card done" }, element("h2", {}, "Nothing matches these filters."),
      element("p", {}, "Choose all pairs, clear the search, or choose “Show: all”."));
  }
  const name = viewButtons().find((button) => button.dataset.view === view).textContent;
  const next = viewButtons().find((button) => button.dataset.view !== view && left[button.dataset.view] > 0);
  const exported = element("p", {}, "Write the corrected labels with ", element("code", {}, `laplaceconfidence export ${document.querySelector(".folder").textContent}`));
  return element("div", { class: "card done" },
    element("h2", {}, next ? `“${name}” is done.` : "All done: every queue is."),
    next && element("p", {}, element("button", { type: "button", class: "primary", id: "next-queue", onclick: () => switchView(next.dataset.view) },
      `Next: ${next.textContent} (${left[next.dataset.view].toLocaleString("en")} left)`)),
    exported, element("p", {}, "“Show: decided” lists your decisions; Z undoes the last one."));
}
