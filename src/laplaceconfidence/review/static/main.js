// Entry point: connects queues, filters and keys.

import { get, post } from "./api.js";
import { copiesStoredText } from "./copies.js";
import { chooseOther, openBulk } from "./dialogs.js";
import { byId, element, quoted, toast } from "./dom.js";
import { chosenTiles, moveFocus, showGrid, toggleMark, updateTiles } from "./grid.js";
import { LEAK_OUTCOMES } from "./leaks.js";
import { showProgress } from "./progress.js";
import { OUTCOMES, showSample } from "./sample.js";
import { recall, remember, state, subject, who } from "./state.js";

const LABEL_KEYS = { k: "keep", s: "suggestion", u: "unsure", n: "none" };
const SAMPLE_KEYS = { k: "keep", d: "drop", u: "unsure" };
const WITH_DROP = { ...LABEL_KEYS, d: "drop" };
const VERDICT_KEYS = { outliers: WITH_DROP, images: WITH_DROP, empty: WITH_DROP, copies: SAMPLE_KEYS, leaks: SAMPLE_KEYS };
const verdictKeys = () => VERDICT_KEYS[state.queue.view] ?? LABEL_KEYS;
const actions = { decide, decideCopies, decideMany, open, switchView, turn: showPage, chooseOther: () => chooseOther(decide) };

// One request at a time, so that a key held down does not decide on samples that were not shown yet.
async function alone(work) {
  if (state.busy) return;
  state.busy = true;
  try {
    await work();
  } catch (error) {
    toast(error.message, true);
    if (error.status === 409 && error.content.sample && state.layout === "one") {
      show({ ...(await post(`/api/sample/${error.content.sample.row}`, state.queue)) });
    } else if (error.status === 409 && state.layout === "grid") await loadGrid();
  } finally {
    state.busy = false;
  }
}

function show(answer) {
  showSample(answer, actions);
  showProgress(answer.progress);
  byId("stage").focus({ preventScroll: true });
  if (answer.sample?.picture) prefetch(answer.sample.row);
}

// Fetches the picture of the next sample while this one is shown.
async function prefetch(row) {
  try {
    const following = (await post(`/api/next?after=${row}`, state.queue)).sample;
    if (following) new Image().src = `/picture/large/${following.row}`;
  } catch { /* the picture is then fetched later */ }
}

async function load() {
  remember();
  if (state.layout === "grid") await loadGrid();
  else show(await post("/api/next", state.queue));
}

async function loadGrid() {
  const answer = await post(`/api/grid?page=${state.page}`, state.queue);
  showProgress(answer.progress);
  if (!showGrid(answer, actions)) {
    if (state.page > 0) { state.page = 0; await loadGrid(); } else showSample({ sample: null, progress: answer.progress }, actions);
  }
}

function decide(verdict, label = null) {
  return alone(async () => {
    const sample = state.sample;
    if (!sample) return;
    const answer = await post("/api/decisions", {
      row: sample.row, verdict, label, version: sample.version, who: who(), queue: state.queue,
    });
    toast(storedText(sample, answer.stored));
    if (state.queue.show !== "undecided") show(await post(`/api/sample/${sample.row}`, state.queue));
    else show(answer);
  });
}

function storedText(sample, { verdict, decided }) {
  if (state.queue.view === "leaks") return `Stored: sample ${sample.id} ${LEAK_OUTCOMES[verdict].toLowerCase()}`;
  if (verdict === "keep") return `Stored: ${quoted(sample.given)} kept`;
  return `Stored: ${quoted(sample.given)} → ${decided.label === null ? OUTCOMES[verdict].toLowerCase() : quoted(decided.label)}`;
}

function decideCopies(verdict, kept = null) {
  return alone(async () => {
    const set = state.sample;
    if (!set) return;
    const answer = await post("/api/copies", {
      row: set.row, verdict, kept, fingerprint: set.fingerprint, who: who(), queue: state.queue,
    });
    toast(copiesStoredText(verdict, answer.n_stored));
    if (state.queue.show !== "undecided") show(await post(`/api/sample/${set.row}`, state.queue));
    else show(answer);
  });
}

function decideMany(verdict) {
  return alone(async () => {
    const rows = chosenTiles();
    if (!rows.length) return;
    const answer = await post("/api/decisions/many", { rows, verdict, who: who(), queue: state.queue });
    updateTiles(answer.stored);
    showProgress(answer.progress);
    toast(`Stored: ${rows.length === 1 ? "1 decision" : `${rows.length} decisions`}`);
  });
}

function undo() {
  return alone(async () => {
    const answer = await post("/api/undo", { who: who(), queue: state.queue });
    if (!answer.n_undone) { toast("You have no decisions to undo."); return; }
    const elsewhere = answer.subject === subject() ? "" : { label: " on labels", copies: " among the copies", leaks: " among the leaks" }[answer.subject];
    toast(answer.n_undone === 1 ? `Undone${elsewhere}.` : `${answer.n_undone.toLocaleString("en")} decisions undone${elsewhere}.`);
    if (state.layout === "grid" || answer.sample === null) await load();
    else show(answer);
  });
}

const browse = (direction) => alone(async () => {
  const after = state.sample ? `&after=${state.sample.row}` : "";
  const answer = await post(`/api/next?direction=${direction}${after}`, state.queue);
  if (answer.sample) show(answer);
  else toast("This queue has no other sample.");
});

function open(row) {
  return alone(async () => {
    setLayout("one");
    show(await post(`/api/sample/${row}`, state.queue));
  });
}

function showPage(page) {
  state.page = page;
  return alone(loadGrid);
}

function setLayout(layout) {
  state.layout = layout;
  byId("one").setAttribute("aria-pressed", String(layout === "one"));
  byId("grid").setAttribute("aria-pressed", String(layout === "grid"));
  remember();
}

// Copies are compared with each other, so there is no grid of them, and pairs of labels do not narrow their queue.
function adaptControls() {
  const { view } = state.queue;
  if (view === "copies") setLayout("one");
  byId("grid").disabled = view === "copies";
  byId("pair").closest("label").hidden = byId("bulk").hidden = subject() !== "label";
}

function switchLayout(layout) {
  if (layout === "grid" && byId("grid").disabled) { toast("Copies are shown one set at a time."); return; }
  setLayout(layout);
  state.page = 0;
  return alone(load);
}

async function listPairs() {
  const pairs = await get(`/api/pairs?view=${state.queue.view}`);
  const options = pairs.map((pair) => element("option", { value: `${pair.given},${pair.suggested}` },
    `${quoted(state.classes[pair.given])} → ${quoted(state.classes[pair.suggested])} (${pair.n.toLocaleString("en")})`));
  byId("pair").replaceChildren(element("option", { value: "" }, "all pairs"), ...options);
  byId("pair").value = state.queue.given === null ? "" : `${state.queue.given},${state.queue.suggested}`;
}

function changed(part) {
  Object.assign(state.queue, part);
  state.page = 0;
  return alone(load);
}

function showView(view) {
  for (const button of document.querySelectorAll("#views button")) {
    button.setAttribute("aria-pressed", String(button.dataset.view === view));
  }
}

async function switchView(view) {
  showView(view);
  state.sample = null;  // a key that is pressed now must not decide on it in another queue
  Object.assign(state.queue, { view, given: null, suggested: null });
  adaptControls();
  await listPairs();
  await changed({});
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (typing) { if (event.key === "Escape") { event.target.blur(); byId("stage").focus(); } return; }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const action = actionFor(key, state.layout === "grid", event.target);
  if (action) { event.preventDefault(); action(); }
}

function actionFor(key, inGrid, target) {
  const verdict = verdictKeys()[key];
  const isLabel = subject() === "label";
  if (state.queue.view === "copies") {
    if (verdict) return () => decideCopies(verdict);
    const kept = key === "s" ? state.sample?.best : /^[1-9]$/.test(key) ? state.sample?.copies[Number(key) - 1]?.row : null;
    if (kept !== null && kept !== undefined) return () => decideCopies("keep-one", kept);
  }
  if (verdict) return () => (inGrid ? decideMany(verdict) : decide(verdict));
  if (/^[1-5]$/.test(key) && !inGrid && isLabel) {
    const top = state.sample?.top[Number(key) - 1];
    return top && (() => decide("other", top.code));
  }
  const common = { z: undo, b: isLabel && (() => openBulk(refreshAll)), "/": () => byId("search").focus(), "?": () => byId("dialog-help").showModal() };
  if (key in common) return common[key];
  if (inGrid) {
    if (key.startsWith("Arrow")) return () => moveFocus(key);
    if (key === " " && target.closest(".tile")) return toggleMark;
    if (key === "Enter" && target.closest(".tile")) return () => open(Number(target.closest(".tile").dataset.row));
    return key === "Escape" ? () => switchLayout("one") : null;
  }
  const single = { a: () => isLabel && state.sample && chooseOther(decide), g: () => switchLayout("grid"), ArrowRight: () => browse(1), ArrowLeft: () => browse(-1) };
  return single[key];
}

const refreshAll = () => alone(async () => { await listPairs(); await load(); });

async function start() {
  const setup = await get("/api/setup");
  state.classes = setup.classes;
  byId("who").value = localStorage.getItem("who") || setup.reviewer;
  byId("who").addEventListener("change", () => localStorage.setItem("who", byId("who").value.trim()));
  const missing = [
    ["Image files that were moved or deleted, so that their pictures are missing", setup.n_lost_pictures],
    ["Images that are not shown, because symbolic links out of the folder of the data are not followed", setup.n_outside_pictures],
  ].filter(([, n]) => n);
  byId("lost").hidden = missing.length === 0;
  byId("lost").textContent = missing.map(([what, n]) => `${what}: ${n.toLocaleString("en")}.`).join(" ");
  recall();
  setLayout(state.layout);
  showView(state.queue.view);
  adaptControls();
  byId("search").value = state.queue.search;
  byId("show").value = state.queue.show;
  await listPairs();
  document.addEventListener("keydown", onKey);
  for (const button of document.querySelectorAll("#views button")) {
    button.addEventListener("click", () => switchView(button.dataset.view));
  }
  byId("pair").addEventListener("change", () => {
    const [given, suggested] = byId("pair").value ? byId("pair").value.split(",").map(Number) : [null, null];
    changed({ given, suggested });
  });
  let waiting = 0;
  byId("search").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => changed({ search: byId("search").value }), 250);
  });
  byId("show").addEventListener("change", () => changed({ show: byId("show").value }));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("one").addEventListener("click", () => switchLayout("one"));
  byId("grid").addEventListener("click", () => switchLayout("grid"));
  byId("bulk").addEventListener("click", () => openBulk(refreshAll));
  byId("undo").addEventListener("click", undo);
  byId("help").addEventListener("click", () => byId("dialog-help").showModal());
  await alone(load);
}

start().catch((error) => toast(error.message, true));
