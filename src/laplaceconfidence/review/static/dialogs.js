// Dialogs: choose another class by typing, and accept many suggestions at once after a preview.

import { get, post } from "./api.js";
import { byId, element, look, quoted, toast } from "./dom.js";
import { caption } from "./grid.js";
import { state, who } from "./state.js";

const MOST_LISTED = 50;

export function chooseOther(decide) {
  const dialog = byId("dialog-other");
  const input = byId("other-input");
  const list = byId("other-list");
  let found = [];
  let at = 0;
  const listed = () => {
    const wanted = input.value.trim().toLocaleLowerCase();
    const every = state.classes.map((name, code) => ({ name, code, folded: name.toLocaleLowerCase() }));
    found = every.filter((one) => one.folded.includes(wanted));
    found.sort((a, b) => Number(b.folded.startsWith(wanted)) - Number(a.folded.startsWith(wanted)));
    found = found.slice(0, MOST_LISTED);
    at = 0;
    show();
  };
  const show = () => {
    list.replaceChildren(...found.map((one, index) => element("li", {
      role: "option", id: `class-${one.code}`, "aria-selected": String(index === at), onclick: () => choose(index),
    }, one.name)));
    if (found.length) {
      input.setAttribute("aria-activedescendant", `class-${found[at].code}`);
      list.children[at].scrollIntoView({ block: "nearest" });
    } else list.replaceChildren(element("li", {}, "No class has this name"));
  };
  const choose = (index) => {
    if (!found[index]) return;
    dialog.close();
    decide("other", found[index].code);
  };
  input.value = "";
  input.oninput = listed;
  input.onkeydown = (event) => {
    if (event.key === "ArrowDown") at = Math.min(found.length - 1, at + 1);
    else if (event.key === "ArrowUp") at = Math.max(0, at - 1);
    else if (event.key === "Enter") { event.preventDefault(); choose(at); return; }
    else return;
    event.preventDefault();
    show();
  };
  listed();
  dialog.showModal();
  input.focus();
}

export async function openBulk(accepted) {
  const dialog = byId("dialog-bulk");
  const pairs = (await get("/api/pairs?view=worst")).filter((pair) => pair.n_left > 0);
  if (!pairs.length) { toast("There are no undecided suspects."); return; }
  const select = byId("bulk-pair");
  const name = (code) => quoted(state.classes[code]);
  select.replaceChildren(...pairs.map((pair) => element("option", { value: `${pair.given},${pair.suggested}` },
    `${name(pair.given)} → ${name(pair.suggested)} (${pair.n_left})`)));
  if (state.queue.given !== null) select.value = `${state.queue.given},${state.queue.suggested}`;
  if (select.selectedIndex < 0) select.selectedIndex = 0;
  let offer = null;
  const preview = async () => {
    const [given, suggested] = select.value.split(",").map(Number);
    const least = Math.min(1, Math.max(0, Number(byId("bulk-least").value) || 0));
    byId("bulk-accept").disabled = true;
    const answer = await get(`/api/bulk?given=${given}&suggested=${suggested}&min_probability=${least}`);
    offer = { given, suggested, min_probability: least, fingerprint: answer.fingerprint };
    const rest = answer.n - answer.tiles.length;
    byId("bulk-count").textContent = answer.n
      ? `${answer.n === 1 ? "1 label" : `${answer.n.toLocaleString("en")} labels`} would change from ${name(given)} to ${name(suggested)}${rest > 0 ? `; the ${answer.tiles.length} most probable are shown` : ""}.`
      : `No undecided suspect of this pair has a suggestion that probable${answer.surest === null ? "" : `; the highest probability is ${answer.surest.toFixed(3)}`}.`;
    byId("bulk-tiles").replaceChildren(...answer.tiles.map((sample) => element("div", { class: "tile" }, look(sample, "tile"), caption(sample))));
    byId("bulk-accept").disabled = answer.n === 0;
    byId("bulk-accept").textContent = answer.n ? `Accept ${answer.n.toLocaleString("en")}` : "Accept";
  };
  select.onchange = preview;
  byId("bulk-least").oninput = preview;
  byId("bulk-cancel").onclick = () => dialog.close();
  byId("bulk-accept").onclick = async () => {
    byId("bulk-accept").disabled = true;
    try {
      const answer = await post("/api/bulk", { ...offer, who: who() });
      dialog.close();
      toast(answer.n_stored === 1 ? "1 suggestion accepted. Z undoes it." : `${answer.n_stored.toLocaleString("en")} suggestions accepted. Z undoes all of them.`);
      accepted();
    } catch (error) {
      toast(error.message, true);
      await preview();
    }
  };
  await preview();
  dialog.showModal();
}
