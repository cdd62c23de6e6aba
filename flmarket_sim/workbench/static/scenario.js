// A new run: a shipped scenario, changed in a form or as TOML, checked at every change, and started.

import { get, post } from "./api.js";
import { action, heading, labelled, scenarioChoice, toast } from "./parts.js";
import { ScenarioForm } from "./form.js";

const QUIET = 250; // milliseconds after the last key before the scenario is checked
const STARTS = { run: "Run", sweep: "Run the sweep", study: "Run the study" };

export async function show(main, rest, here) {
  heading(main, "A new run", "Choose a scenario, change what you like, and start it. What you leave out has its usual value.", "scenario");
  const [scenarios, described] = await Promise.all([get("/api/scenarios"), get("/api/form")]);
  if (!here()) return;
  const names = scenarios.map((one) => one.name), wanted = rest.join("/");
  const top = put(main, "div", "panel chooser");
  const chooser = labelled(top, "scenario", (box) => scenarioChoice(box, names, names.includes(wanted) ? wanted : "quickstart"));
  const about = put(top, "p", "about");
  const tabs = put(main, "div", "switch");
  tabs.setAttribute("role", "tablist");
  const views = { form: put(main, "div", "view"), toml: put(main, "div", "view") };
  const text = labelled(views.toml, "scenario file (TOML)", (box) => put(box, "textarea", "code"));
  text.rows = 28;
  text.spellcheck = false;
  const homeless = put(main, "div", "homeless");
  const foot = put(main, "div", "foot"), verdict = put(foot, "p", "verdict"), starts = put(foot, "div", "actions");
  verdict.setAttribute("aria-live", "polite");
  let tables = {}, form = null, mode = "form", timer = 0, asked = 0, stale = false;

  const buttons = Object.fromEntries([["form", "Form"], ["toml", "TOML"]].map(([key, title]) => {
    const button = putButton(tabs, title, `edit as ${title}`, () => turn(key));
    button.setAttribute("role", "tab");
    button.id = `as-${key}`;
    return [key, button];
  }));

  function turn(to) {
    if (to === "form" && stale) { if (!tables) { toast("The text is not TOML yet; the form needs that first."); return; } build(); }
    mode = to;
    for (const key in views) { views[key].hidden = key !== mode; buttons[key].setAttribute("aria-selected", String(key === mode)); }
  }

  function build() {
    stale = false;
    views.form.replaceChildren();
    form = new ScenarioForm(views.form, described, tables, () => later({ tables }));
    const inText = ["buyers", "sweep"].filter((key) => tables[key]);
    if (tables.owners && tables.owners.behaviours) inText.push("owners.behaviours");
    if (inText.length) put(views.form, "p", "about", `${inText.join(", ")}: set in the TOML view.`);
  }

  function later(data) {
    clearTimeout(timer);
    verdict.className = "verdict waiting";
    timer = setTimeout(() => check(data), QUIET);
  }

  async function check(data) {
    const mine = ++asked;
    let found;
    try { found = await post("/api/check", data); } catch (error) { verdict.textContent = error.message; verdict.className = "verdict bad"; return; }
    if (mine !== asked || !here()) return;
    if (data.tables) text.value = found.text; else { tables = found.tables; stale = true; }
    judge(found);
  }

  function judge(found) {
    const rest = form && !stale ? form.problems(found.problems) : found.problems;
    homeless.replaceChildren();
    for (const problem of rest) put(homeless, "p", "wrong", `${problem.line ? `line ${problem.line}: ` : ""}${problem.path ? `${problem.path}: ` : ""}${problem.message}`).setAttribute("role", "alert");
    const many = found.problems.length;
    verdict.className = many ? "verdict bad" : "verdict good";
    verdict.textContent = many ? (many === 1 ? "1 error" : `${many} errors`) : found.summary.sentence;
    starts.replaceChildren();
    const possible = found.summary ? found.summary.starts : ["run"];
    for (const what of possible) {
      const button = action(starts, STARTS[what], "start it as a process of its own; it goes on if this page or the server ends", () => start(what), what === possible[possible.length - 1]);
      button.id = `start-${what}`;
      button.disabled = many > 0;
    }
    document.documentElement.dataset.checked = String(asked);
  }

  async function start(what) {
    const { name } = await post("/api/start", { what, text: text.value });
    location.hash = "#/result/" + encodeURIComponent(name);
  }

  async function open() {
    const found = await get("/api/scenario", [["name", chooser.value]]);
    if (!here()) return;
    tables = found.tables;
    text.value = found.text;
    about.textContent = tables.description || "";
    build();
    judge(found);
  }

  text.addEventListener("input", () => later({ text: text.value }));
  chooser.addEventListener("change", open);
  await open();
  turn("form");
  return () => clearTimeout(timer);
}
