// Fifty samples at a time.

import { byId, element, label, look, percent } from "./dom.js";
import { DROPPABLE, state, subject } from "./state.js";

const STAMPS = { keep: "kept", suggestion: "accepted", other: "other", unsure: "unsure", none: "no class", drop: "dropped" };
const tiles = () => [...document.querySelectorAll("#stage .tile")];

export function showGrid(answer, { turn, decideMany, open }) {
  const stage = byId("stage");
  if (!answer.tiles.length) return false;
  const marked = element("span", { class: "grow", id: "marked" }, "");
  const step = (by, text) => element("button", {
    type: "button", onclick: () => turn(state.page + by), disabled: state.page + by < 0 || state.page + by >= answer.n_pages,
  }, text);
  const act = (verdict, text) => element("button", { type: "button", "data-many": verdict, onclick: () => decideMany(verdict) }, text);
  const pager = element("div", { class: "pager" }, step(-1, "← Previous"),
    element("span", {}, `page ${state.page + 1} of ${answer.n_pages} (${answer.n_in_queue.toLocaleString("en")} samples)`), step(1, "Next →"),
    marked, act("keep", "Keep (K)"), subject() === "label" ? act("suggestion", "Accept (S)") : null,
    [...DROPPABLE, "leaks"].includes(state.queue.view) ? act("drop", "Drop (D)") : null,
    element("button", { type: "button", onclick: () => markAll() }, "Mark all"));
  const grid = element("div", { class: "tiles", role: "listbox", "aria-multiselectable": "true", "aria-label": "Samples" },
    answer.tiles.map((sample) => tile(sample, open)));
  stage.replaceChildren(pager, grid);
  tiles()[0].focus();
  countMarked();
  return true;
}

export function chosenTiles() {
  const marked = tiles().filter((one) => one.getAttribute("aria-selected") === "true");
  const chosen = marked.length ? marked : tiles().filter((one) => one === document.activeElement);
  return chosen.map((one) => [Number(one.dataset.row), Number(one.dataset.version)]);
}

export function updateTiles(stored) {
  const known = new Map(stored.map((sample) => [String(sample.row), sample]));
  for (const one of tiles()) {
    const sample = known.get(one.dataset.row);
    if (!sample) continue;
    one.dataset.version = sample.version;
    one.setAttribute("aria-selected", "false");
    one.classList.toggle("decided", isDecided(sample));
    one.querySelector(".stamp")?.remove();
    if (isDecided(sample)) one.append(stamp(sample));
  }
  countMarked();
}

export function moveFocus(key) {
  const every = tiles();
  const at = every.indexOf(document.activeElement);
  if (at < 0) { every[0]?.focus(); return; }
  const columns = every.filter((one) => one.offsetTop === every[0].offsetTop).length;
  const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[key];
  every[Math.min(every.length - 1, Math.max(0, at + by))].focus();
}

export function toggleMark() {
  const one = document.activeElement.closest(".tile");
  if (one) mark(one, one.getAttribute("aria-selected") !== "true");
}

function markAll() {
  const open = tiles().filter((one) => !one.classList.contains("decided"));
  const on = open.some((one) => one.getAttribute("aria-selected") !== "true");
  for (const one of open) mark(one, on);
}

function mark(one, on) {
  one.setAttribute("aria-selected", String(on));
  countMarked();
}

function countMarked() {
  const n = document.querySelectorAll('#stage .tile[aria-selected="true"]').length;
  const box = byId("marked");
  if (box) box.textContent = n ? `${n} marked` : "Mark with Space or a click";
  for (const button of document.querySelectorAll("[data-many]")) button.disabled = n === 0;
}

function tile(sample, open) {
  const one = element("div", {
    class: `tile${isDecided(sample) ? " decided" : ""}`, role: "option", tabindex: "0", "aria-selected": "false",
    "data-row": sample.row, "data-version": sample.version,
    onclick: (event) => mark(event.currentTarget, event.currentTarget.getAttribute("aria-selected") !== "true"),
    ondblclick: () => open(sample.row),
  }, look(sample, "tile"), caption(sample));
  if (isDecided(sample)) one.append(stamp(sample));
  return one;
}

export function caption(sample) {
  const name = (kind) => element("span", { class: kind, dir: "auto", title: label(sample[kind]) }, label(sample[kind]));
  return element("span", { class: "caption" }, name("given"), " → ", name("suggested"), " ",
    element("span", { class: "p" }, percent(sample.probability)));
}

// A sample that was dropped elsewhere needs no decision here.
const isDecided = (sample) => sample.verdict !== null || sample.dropped_by !== null;
const stamp = (sample) => element("span", { class: "stamp" }, STAMPS[sample.verdict ?? "drop"]);
