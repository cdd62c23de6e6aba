// Probes: the best lies of owners. Starts a search, and opens those that are stored.

import { get, post } from "./api.js";
import { action, ago, badge, choice, heading, labelled, linkTo, scenarioChoice } from "./parts.js";

export async function show(main, _rest, here) {
  heading(main, "The best lies", "A probe searches, for every owner of many markets, the misreport that earns her the most: a lower bound on what manipulation gains.", "probes");
  const [known, list] = await Promise.all([get("/api/playground"), get("/api/folder")]);
  if (!here()) return;
  const form = put(main, "div", "panel grid");
  const auction = labelled(form, "auction", (box) => choice(box, known.auctions, "pay-as-bid"));
  const scenario = labelled(form, "market of scenario", (box) => scenarioChoice(box, known.scenarios, "quickstart"));
  const profiles = labelled(form, "markets", (box) => number(box, 20));
  const effort = labelled(form, "effort", (box) => choice(box, ["quick", "standard", "exhaustive"], "quick"));
  const budgets = labelled(form, "budget factors", (box) => { const input = put(box, "input"); input.value = "uniform"; return input; }, "uniform, one number, or low:high:step");
  const seed = labelled(form, "seed", (box) => number(box, 0));
  action(put(form, "div", "actions"), "Search", "start the probe", async () => {
    const { text } = await get("/api/scenario", [["name", scenario.value]]);
    const { name } = await post("/api/probe", { text, auction: auction.value, profiles: Number(profiles.value), effort: effort.value, budgets: budgets.value, seed: Number(seed.value) });
    location.hash = "#/result/" + encodeURIComponent(name);
  }, true).id = "search";
  put(main, "h2", "", "Stored probes");
  const probes = list.entries.filter((one) => one.kind === "probe" && !one.problem);
  if (!probes.length) put(main, "p", "about", "None yet. A file that `flmarket probe --out` wrote into this folder shows up here too.");
  const rows = put(main, "ul", "plain");
  for (const one of probes) {
    const line = put(rows, "li");
    linkTo(line, one.name, "result", one.name);
    badge(line, one.outcome);
    put(line, "span", "note", `${one.auction || ""} ${one.scenario ? "in " + one.scenario : ""} · ${ago(one.when)}`);
  }
}

function number(box, value) {
  const input = put(box, "input");
  input.type = "number";
  input.min = 0;
  input.value = value;
  return input;
}
