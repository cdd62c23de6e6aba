// The list of results: filter, choose some to put beside each other, open one.

import { get } from "./api.js";
import { action, ago, badge, heading, linkTo, percent, short, toast } from "./parts.js";

const FIRST = 100; // rows drawn at once
const COLUMNS = [["", "pick"], ["result", "name"], ["kind", "kind"], ["outcome", "outcome"], ["auction", "auction"], ["rounds", "rounds"], ["accuracy", "accuracy"], ["money", "money"], ["when", "when"]];

export async function show(main, _rest, here) {
  const actions = heading(main, "Results", "Reading the folder …");
  const about = main.querySelector(".about");
  const compare = action(actions, "Put beside each other", "compare the chosen results", () => { location.hash = "#/compare/" + [...chosen].map(encodeURIComponent).join("/"); });
  const fresh = linkTo(actions, "New run", "new");
  fresh.className = "do main";
  const filter = put(main, "input", "filter");
  filter.type = "search";
  filter.placeholder = "filter by name, kind, outcome, auction";
  filter.setAttribute("aria-label", "filter results");
  const scroll = put(main, "div", "scroll results"), grid = put(scroll, "table");
  const head = put(put(grid, "thead"), "tr");
  for (const [title, name] of COLUMNS) { const cell = put(head, "th", `at-${name}`, title); cell.scope = "col"; if (!title) cell.setAttribute("aria-label", "choose"); }
  const body = put(grid, "tbody");
  const more = putButton(main, "", "draw the other rows too", () => { most = Infinity; fill(); });
  more.className = "more";
  const chosen = new Set();
  let entries = [], most = FIRST, timer = 0;

  function fill() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = entries.filter((one) => words.every((word) => `${one.name} ${one.scenario} ${one.kind} ${one.outcome} ${one.auction}`.toLowerCase().includes(word)));
    body.replaceChildren(...rows.slice(0, most).map(row));
    more.hidden = rows.length <= most;
    more.textContent = `show all ${rows.length.toLocaleString("en-US")} results`;
    if (!rows.length) {
      const cell = put(put(body, "tr"), "td", "empty");
      cell.colSpan = COLUMNS.length;
      if (entries.length) cell.textContent = "No result matches.";
      else { put(cell, "p", "", "Nothing is here yet."); linkTo(cell, "Start with the quickstart scenario", "new", "quickstart"); }
    }
    compare.disabled = chosen.size < 2;
    compare.textContent = chosen.size < 2 ? "Compare" : `Compare ${chosen.size}`;
  }

  function row(one) {
    const line = document.createElement("tr");
    const pick = put(put(line, "td", "at-pick"), "input");
    pick.type = "checkbox";
    pick.checked = chosen.has(one.name);
    pick.disabled = one.outcome === "failed to start";
    pick.setAttribute("aria-label", `choose ${one.name}`);
    pick.addEventListener("change", () => { if (pick.checked) chosen.add(one.name); else chosen.delete(one.name); compare.disabled = chosen.size < 2; compare.textContent = chosen.size < 2 ? "Compare" : `Compare ${chosen.size}`; });
    const name = put(line, "td", "at-name");
    linkTo(name, one.name, "result", one.name);
    if (one.scenario && !one.name.startsWith(one.scenario)) put(name, "span", "sub", one.scenario);
    if (one.problem) put(name, "span", "sub", one.problem);
    put(line, "td", "at-kind", one.view ? "view" : one.kind);
    badge(put(line, "td", "at-outcome"), one.outcome);
    put(line, "td", "at-auction", one.auction || "");
    const rounds = put(line, "td", "at-rounds number");
    if (one.kind === "run" && one.rounds !== undefined) rounds.textContent = one.outcome === "finished" ? digits(one.rounds) : `${digits(one.rounds)} of ${digits(one.of)}`;
    else if (one.kind === "sweep" && one.of) rounds.textContent = `${digits(one.of)} runs`;
    put(line, "td", "at-accuracy number", percent(one.accuracy));
    put(line, "td", "at-money number", short(one.spent));
    const when = put(line, "td", "at-when", ago(one.when));
    when.title = new Date(one.when * 1000).toLocaleString();
    return line;
  }

  async function load() {
    let wait = 5000;
    try {
      const list = await get("/api/folder");
      if (!here()) return;
      entries = list.entries;
      const going = entries.filter((one) => one.outcome === "running").length;
      about.textContent = `${entries.length.toLocaleString("en-US")} in ${list.folder}` + (going ? `, ${going} running` : "");
      fill();
      if (list.missing) wait = 50; else if (going) wait = 1500;
    } catch (error) { toast(error.message); }
    if (here()) timer = setTimeout(() => (document.hidden ? (timer = setTimeout(load, 2000)) : load()), wait);
  }

  filter.addEventListener("input", fill);
  await load();
  return () => clearTimeout(timer);
}
