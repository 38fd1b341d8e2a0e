// Elements built from text: nothing of the data is ever read as HTML.

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
  if (value > 0 && value < 1) return digits ? `${value.toFixed(digits)}%` : "<1%";
  if (value > 99 && value < 100) return digits ? `${value.toFixed(digits)}%` : ">99%";
  return `${value.toFixed(digits)}%`;
}

export const label = (name) => (name === null ? "no label" : name);

let hiding = 0;
export function toast(text, bad = false) {
  const box = byId("toast");
  box.textContent = text;
  box.className = bad ? "on bad" : "on";
  clearTimeout(hiding);
  hiding = setTimeout(() => { box.className = ""; }, bad ? 6000 : 1800);
}

export function look(sample, size) {
  if (sample.text !== null) return element("div", { class: "words" }, sample.text || "(empty text)");
  if (!sample.picture) return element("div", { class: "look" }, element("div", { class: "lost" }, `sample ${sample.id}`));
  const image = element("img", {
    class: "picture", src: `/picture/${size}/${sample.row}`, loading: size === "tile" ? "lazy" : null,
    alt: `picture of sample ${sample.id}, labelled ${label(sample.given)}`,
  });
  const box = element("div", { class: "look" }, image);
  image.addEventListener("load", () => image.classList.toggle("coarse", image.naturalWidth <= 64));
  image.addEventListener("error", () => {
    box.replaceChildren(element("div", { class: "lost" }, "The picture cannot be shown: it moved, vanished or is damaged."));
  });
  return box;
}
