// Elements built from text: no data is ever parsed as HTML.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) made.append(child);
  }
  return made;
}

export const byId = (id) => document.getElementById(id);

export function percent(share, digits = 0) {
  if (share === null || share === undefined) return "–";
  const value = 100 * share;
  const shown = value.toFixed(digits);
  const least = (10 ** -digits).toFixed(digits);
  // What is nearly 0% or nearly 100% is not rounded to it.
  if (value > 0 && Number(shown) < Number(least)) return `<${least}%`;
  if (value < 100 && Number(shown) > 100 - Number(least)) return `>${(100 - Number(least)).toFixed(digits)}%`;
  return `${shown}%`;
}

export const label = (name) => (name === null ? "no label" : name);

// A class name within a sentence, isolated so that right-to-left names do not reorder the words around it.
export const quoted = (name) => `\u2068${label(name)}\u2069`;

// The beginning and the end of a long id, which is shown completely where the pointer rests on it.
export const shortened = (text, most = 60) => (text.length <= most ? text : `${text.slice(0, most / 2 - 1)}…${text.slice(-most / 2)}`);

export function verdictButton(sample, verdict, key, text, action, primary = false) {
  return element("button", {
    type: "button", "data-verdict": verdict, class: `${primary ? "primary" : ""} ${sample.verdict === verdict ? "chosen" : ""}`.trim(), onclick: action,
  }, text, " ", element("kbd", {}, key));
}

export function droppedText({ subject, verdict, who }) {
  const why = { label: verdict === "none" ? "because no class fits" : "when its label was decided on", copies: "as a copy", leaks: "because it is also in the test set" }[subject];
  return `Left out ${why}, by ${who}.`;
}

let hiding = 0;
export function toast(text, bad = false) {
  const box = byId("toast");
  box.textContent = text;
  box.className = bad ? "on bad" : "on";
  clearTimeout(hiding);
  hiding = setTimeout(() => { box.className = ""; }, bad ? 6000 : 1800);
}

export function look(sample, size, route = "picture") {
  if (sample.text !== null) return element("div", { class: "words" }, sample.text || "(empty text)");
  if (!sample.picture) return element("div", { class: "look" }, element("div", { class: "lost", title: sample.id }, `sample ${shortened(sample.name ?? sample.id)}`));
  const image = element("img", {
    class: "picture", src: `/${route}/${size}/${sample.row}`, loading: size === "tile" ? "lazy" : null,
    alt: `picture of sample ${sample.name ?? sample.id}, labeled ${label(sample.given)}`,
  });
  const box = element("div", { class: "look" }, image);
  image.addEventListener("load", () => image.classList.toggle("coarse", image.naturalWidth <= 64));
  image.addEventListener("error", () => {
    box.replaceChildren(element("div", { class: "lost" }, size === "tile" ? "no picture" : "The picture cannot be shown: it was moved, deleted or is damaged."));
  });
  return box;
}
