// What is shown. The filters are stored in the address, so that they survive a reload.

import { byId } from "./dom.js";

export const state = {
  layout: "one",
  queue: { view: "worst", given: null, suggested: null, search: "", show: "undecided" },
  classes: [],
  sample: null,
  page: 0,
  busy: false,
};

// Queues of labels in which a sample can be dropped although its label may be right.
export const DROPPABLE = ["outliers", "images", "empty", "missing", "order"];

// What is decided in the queue: the label, or whether copies and leaks stay.
export const subject = () => (["copies", "leaks"].includes(state.queue.view) ? state.queue.view : "label");

export const who = () => byId("who").value.trim() || "someone";

export function remember() {
  const { view, given, suggested, search, show } = state.queue;
  const parts = new URLSearchParams({ view, show, layout: state.layout });
  if (given !== null) { parts.set("given", given); parts.set("suggested", suggested); }
  if (search) parts.set("search", search);
  history.replaceState(null, "", `#${parts}`);
}

export function recall() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const number = (name) => (/^\d+$/.test(parts.get(name) || "") ? Number(parts.get(name)) : null);
  const oneOf = (name, values) => (values.includes(parts.get(name)) ? parts.get(name) : values[0]);
  const views = [...document.querySelectorAll("#views button")].map((button) => button.dataset.view);
  state.layout = oneOf("layout", ["one", "grid"]);
  state.queue = {
    view: oneOf("view", views), show: oneOf("show", ["undecided", "decided", "all"]),
    given: number("given"), suggested: number("suggested"), search: (parts.get("search") || "").slice(0, 200),
  };
}
