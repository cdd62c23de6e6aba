// Small parts that several pages use: badges, fields with labels, cards, times, messages.

let fields = 0;

export function toast(text) {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => { box.hidden = true; }, 8000);
}

export function badge(parent, outcome) {
  return put(parent, "span", `badge is-${outcome.replaceAll(" ", "-")}`, outcome);
}

export function heading(parent, title, about, kind) {
  const head = put(parent, "div", "head");
  const words = put(head, "div", "words");
  if (kind) put(words, "p", "kind", kind);
  put(words, "h1", "", title);
  if (about) put(words, "p", "about", about);
  return put(head, "div", "actions");
}

export function action(parent, text, title, act, main = false) {
  const button = putButton(parent, text, title, async () => {
    button.disabled = true;
    try { await act(); } catch (error) { toast(error.message); } finally { button.disabled = false; }
  });
  button.className = main ? "do main" : "do";
  return button;
}

export function linkTo(parent, text, ...path) {
  const link = put(parent, "a", "", text);
  link.href = "#/" + path.map(encodeURIComponent).join("/");
  return link;
}

// A label with its input; `make(box, id)` puts the input into the box and returns it.
export function labelled(parent, text, make, about = "") {
  const box = put(parent, "div", "field"), id = `field-${++fields}`;
  const label = put(box, "label", "", text);
  label.htmlFor = id;
  const input = make(box);
  input.id = id;
  if (about) { put(box, "p", "note", about).id = `${id}-about`; input.setAttribute("aria-describedby", `${id}-about`); }
  return input;
}

export function choice(box, options, value) {
  const select = put(box, "select");
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    put(select, "option", "", text).value = key;
  }
  if (value !== undefined) select.value = value;
  return select;
}

export function scenarioChoice(box, names, value) {
  const select = put(box, "select");
  const groups = new Map();
  for (const name of names) {
    const folder = name.includes("/") ? name.split("/")[0] : "to begin with";
    if (!groups.has(folder)) { groups.set(folder, document.createElement("optgroup")); groups.get(folder).label = folder; }
    put(groups.get(folder), "option", "", name).value = name;
  }
  for (const folder of [...groups.keys()].sort((a, b) => (b === "to begin with") - (a === "to begin with"))) select.appendChild(groups.get(folder));
  select.value = value;
  return select;
}

export function cards(parent, pairs) {
  const list = put(parent, "dl", "cards");
  for (const [label, value] of pairs) {
    const card = put(list, "div", "card");
    put(card, "dt", "", label);
    put(card, "dd", "", value);
  }
  return list;
}

export function ago(seconds) {
  const past = Date.now() / 1000 - seconds;
  if (past < 60) return "just now";
  if (past < 3600) return `${Math.floor(past / 60)} min ago`;
  if (past < 86400) return `${Math.floor(past / 3600)} h ago`;
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}

export const percent = (share) => (share === null || share === undefined ? "" : `${digits(share * 100)} %`);

export const short = (value) => {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size >= 1e12) return value.toExponential(2).replace("e+", "e");
  for (const [unit, name] of [[1e9, " bn"], [1e6, " m"], [1e4, " k"]]) if (size >= unit) return Number((value / (unit === 1e4 ? 1e3 : unit)).toPrecision(3)) + name;
  return digits(value);
};
