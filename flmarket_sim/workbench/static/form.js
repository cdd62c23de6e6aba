// The form of a scenario: sections of fields, made from what the server read in the JSON Schema.

import { get } from "./api.js";
import { choice, labelled } from "./parts.js";
import { assign, nameAt, remove, valueAt } from "./tables.js";

const OPEN = ["", "owners", "market", "auction"];
const OTHER = "another …";

export class ScenarioForm {
  // `changed()` is called after every change of `tables`.
  constructor(parent, described, tables, changed) {
    this.described = described;
    this.tables = tables;
    this.changed = changed;
    this.places = new Map(); // path -> {box, section}
    for (const section of described.sections) this.section(parent, section);
  }

  section(parent, section) {
    const box = put(parent, "details", "panel section");
    box.open = OPEN.includes(section.path);
    box.dataset.section = section.path || "scenario";
    const head = put(box, "summary");
    put(head, "b", "", section.title);
    put(head, "span", "count");
    put(head, "span", "about", section.about);
    const grid = put(box, "div", "grid");
    for (const field of section.fields) this.field(grid, box, field);
  }

  field(parent, section, field) {
    if (field.kind === "plugin") return this.plugin(parent, section, field);
    const name = field.path.split(".").pop().replaceAll("_", " ");
    const input = field.kind === "names" ? this.names(parent, field, name) : labelled(parent, name, (box) => this.input(box, field), limits(field));
    const box = input.closest(".field");
    this.places.set(field.path, { box, section, input });
    return box;
  }

  input(box, field) {
    const now = valueAt(this.tables, field.path);
    if (field.kind === "choice" || field.kind === "yes-no") {
      const words = field.kind === "choice" ? field.choices : ["true", "false"];
      const usual = field.default === null || field.default === undefined ? "not set" : `${field.default} (usual)`;
      const select = choice(box, [["", usual], ...words], now === undefined ? "" : String(now));
      select.addEventListener("change", () => this.set(field, select.value === "" ? undefined : field.kind === "yes-no" ? select.value === "true" : select.value));
      return select;
    }
    const input = put(box, "input");
    input.value = now === undefined ? "" : shown(now);
    input.placeholder = field.default === null || field.default === undefined || field.default === "" ? "" : shown(field.default);
    if (["number", "integer", "range"].includes(field.kind)) input.inputMode = "decimal";
    input.dataset.path = field.path;
    input.addEventListener("input", () => this.set(field, entered(field, input.value)));
    return input;
  }

  names(parent, field, name) {
    const box = put(parent, "fieldset", "field names");
    put(box, "legend", "", name);
    const now = new Set(valueAt(this.tables, field.path) || field.default || []);
    const boxes = put(box, "div", "chips");
    for (const one of new Set([...this.described.plugins[field.plugin], ...now])) {
      const label = put(boxes, "label", "chip"), tick = put(label, "input");
      tick.type = "checkbox";
      tick.checked = now.has(one);
      put(label, "span", "", one);
      tick.addEventListener("change", () => { if (tick.checked) now.add(one); else now.delete(one); this.set(field, [...now]); });
    }
    if (field.about) put(box, "p", "note", field.about);
    return boxes;
  }

  plugin(parent, section, field) {
    const names = this.described.plugins[field.plugin], now = nameAt(this.tables, field.path);
    const usual = field.default ? `${field.default} (usual)` : "none";
    const known = now && !names.includes(now) ? [...names, now] : names;
    const select = labelled(parent, field.label, (box) => choice(box, [["", usual], ...known, [OTHER, "another: module:Class …"]], now || ""), field.about);
    select.dataset.path = field.path;
    const options = put(parent, "div", "options grid");
    this.places.set(field.path, { box: select.closest(".field"), section, input: select });
    select.addEventListener("change", () => {
      let name = select.value;
      if (name === OTHER) {
        name = (prompt("module:Class, importable where the workbench was started") || "").trim();
        if (name && !known.includes(name)) { known.push(name); put(select, "option", "", name).value = name; }
        select.value = name;
      }
      const kept = field.path === "model" || field.path === "aggregation" ? own(this.described, this.tables, field.path) : {};
      remove(this.tables, field.path);
      if (name) assign(this.tables, field.path, { name, ...kept });
      else for (const key in kept) assign(this.tables, `${field.path}.${key}`, kept[key]);
      this.options(options, section, field, name || field.default);
      this.changed();
    });
    this.options(options, section, field, now || field.default);
  }

  // The options of a plug-in, read from its constructor when it is chosen.
  async options(parent, section, field, name) {
    parent.replaceChildren();
    for (const path of [...this.places.keys()]) if (this.places.get(path).box.parentNode === null) this.places.delete(path);
    if (!name) return;
    let found;
    try { found = await get("/api/options", [["kind", field.plugin], ["name", name]]); } catch { return; } // the check says what is wrong
    if (nameAt(this.tables, field.path) && nameAt(this.tables, field.path) !== name) return;
    parent.replaceChildren();
    for (const option of found) this.field(parent, section, { ...option, path: `${field.path}.${option.path}` });
  }

  set(field, value) {
    if (value === undefined) remove(this.tables, field.path); else assign(this.tables, field.path, value);
    this.changed();
  }

  // Puts every problem beside its field; returns those that have no field.
  problems(problems) {
    for (const old of document.querySelectorAll(".field .wrong")) old.remove();
    for (const { box, input } of this.places.values()) { box.classList.remove("bad"); input.removeAttribute("aria-invalid"); }
    for (const count of document.querySelectorAll(".section .count")) count.textContent = "";
    const homeless = [], counts = new Map();
    for (const problem of problems) {
      const place = this.home(problem.path);
      if (!place) { homeless.push(problem); continue; }
      place.box.classList.add("bad");
      place.input.setAttribute("aria-invalid", "true");
      put(place.box, "p", "wrong", problem.message).setAttribute("role", "alert");
      counts.set(place.section, (counts.get(place.section) || 0) + 1);
      if (!place.section.open) place.section.open = true;
    }
    for (const [section, count] of counts) section.querySelector(".count").textContent = count === 1 ? "1 error" : `${count} errors`;
    return homeless;
  }

  home(path) {
    const keys = path.replace(/\[\d+\]/g, "").split(".");
    for (let k = keys.length; k > 0; k--) {
      const place = this.places.get(keys.slice(0, k).join("."));
      if (place && place.box.isConnected) return place;
    }
    return null;
  }
}

// The keys of a plug-in's table that belong to the scenario and stay when another plug-in is chosen.
function own(described, tables, path) {
  const section = described.sections.find((one) => one.path === path);
  const keys = section.fields.map((field) => field.path.slice(path.length + 1)).filter(Boolean);
  const now = valueAt(tables, path);
  return now && typeof now === "object" ? Object.fromEntries(Object.entries(now).filter(([key]) => keys.includes(key))) : {};
}

function limits(field) {
  const ends = [];
  if (field.least !== undefined) ends.push(`at least ${shown(field.least)}`);
  if (field.above !== undefined) ends.push(`above ${shown(field.above)}`);
  if (field.most !== undefined && field.most < 1e6) ends.push(`at most ${shown(field.most)}`);
  if (field.kind === "range") ends.push("a number, or two: low, high");
  return [field.about, ends.join(", ")].filter(Boolean).join("; ");
}

function shown(value) {
  if (Array.isArray(value)) return value.map(shown).join(", ");
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

// What was typed as a value. What is no number stays a text, so that the check says so.
function entered(field, text) {
  const trimmed = text.trim();
  if (trimmed === "") return undefined;
  const number = (part) => (part !== "" && Number.isFinite(Number(part)) ? Number(part) : part);
  if (field.kind === "text") return text;
  if (field.kind === "range") {
    const parts = trimmed.split(/[,;\s]+/).filter(Boolean).map(number);
    return parts.length === 1 ? parts[0] : parts;
  }
  if (field.kind === "number" || field.kind === "integer") return number(trimmed);
  try { return JSON.parse(trimmed); } catch { return trimmed; }
}
