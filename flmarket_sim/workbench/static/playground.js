// The playground: one owner's bid is moved, and everybody's outcome follows at once.

import { get, post } from "./api.js";
import { action, choice, heading, labelled, scenarioChoice, toast } from "./parts.js";
import { BidMap } from "./bid_map.js";
import { withFigures } from "./library.js";

const COLOURS = ["#999999", "#0072B2", "#D55E00"];
const LINES = ["#0072B2", "#999999", "#D55E00"];
const MEASURES = { utility: "utility", payment: "payment", privacy_loss: "privacy loss", weight: "weight" };
const HER = [["utility", "utility"], ["payment", "is paid"], ["privacy_loss", "privacy loss"], ["weight", "weight"]];
const MARKET = [["error", "error bound"], ["spent", "money spent"], ["privacy_sold", "privacy sold"]];

export async function show(main, _rest, here) {
  const bar = heading(main, "Playground", "Drag the blue bid. Up asks for more money, left offers less privacy. Grey is what the truth would bring.", "one market");
  const known = await get("/api/playground");
  if (!here()) return;
  const setting = { scenario: "quickstart", seed: 1, owners: 10, auction: "pay-as-bid", rule: "opt-aggr", factor: 0.6, owner: 2, asks: 1.25, privacy_budget: 1, data_size: 1 };
  const panel = put(main, "div", "panel grid four");
  const fields = {
    auction: labelled(panel, "auction", (box) => choice(box, known.auctions, setting.auction)),
    rule: labelled(panel, "aggregation rule", (box) => choice(box, known.rules, setting.rule)),
    scenario: labelled(panel, "owners of scenario", (box) => scenarioChoice(box, known.scenarios, setting.scenario)),
    owners: labelled(panel, "owners", (box) => choice(box, [5, 10, 20, 30].map(String), "10")),
    factor: labelled(panel, "budget factor", (box) => slider(box, 0.1, 2, 0.05, setting.factor)),
    seed: labelled(panel, "draw of the market", (box) => { const input = put(box, "input"); input.type = "number"; input.min = 0; input.value = 1; return input; }),
  };
  const stage = put(main, "div", "stage");
  const left = put(stage, "div", "panel"), right = put(stage, "div", "panel");
  const who = put(left, "h3");
  const map = new BidMap(left, (factors) => { Object.assign(setting, factors); sliders(); ask(); }, (owner) => { Object.assign(setting, { owner, asks: 1, privacy_budget: 1, data_size: 1 }); sliders(); ask(); });
  put(left, "p", "note", "Filled: sells. Larger: more records. Dashed: her truth. A click on another owner chooses her.");
  const three = put(left, "div", "grid three");
  const moves = {
    asks: labelled(three, "asks", (box) => slider(box, -1.3, 0.7, 0.01, 0)),
    privacy_budget: labelled(three, "privacy budget", (box) => slider(box, 0.05, 1, 0.01, 1)),
    data_size: labelled(three, "records", (box) => slider(box, 0.05, 1, 0.01, 1)),
  };
  put(right, "h3", "", "Her");
  const hers = put(right, "div", "deltas");
  put(right, "h3", "", "The market");
  const markets = put(right, "div", "deltas");
  const note = put(right, "p", "note");
  const figures = put(main, "div", "figures");
  let measure = "payment", figure = null, curveFigure = null, busy = false, again = false, timer = 0, market = null, rising = null;
  const picker = put(main, "div", "chips");
  for (const key in MEASURES) {
    const chip = putButton(picker, MEASURES[key], "show this of everybody", () => { measure = key; for (const other of picker.children) other.setAttribute("aria-pressed", String(other === chip)); bars(); });
    chip.className = "chip";
    chip.setAttribute("aria-pressed", String(key === measure));
  }
  main.insertBefore(picker, figures);

  function sliders() {
    moves.asks.value = Math.log10(setting.asks);
    moves.privacy_budget.value = setting.privacy_budget;
    moves.data_size.value = setting.data_size;
    say(moves.asks, `× ${digits(Number(setting.asks.toFixed(2)))}`);
    for (const key of ["privacy_budget", "data_size"]) say(moves[key], `${Math.round(setting[key] * 100)} %`);
    say(fields.factor, digits(setting.factor));
  }

  // One question at a time: while one is under way, the newest waits.
  async function ask() {
    if (busy) { again = true; return; }
    busy = true;
    try {
      market = await post("/api/play", setting);
      if (!here()) return;
      draw();
      clearTimeout(timer);
      timer = setTimeout(curve, 120);
    } catch (error) { toast(error.message); } finally { busy = false; }
    if (again) { again = false; ask(); }
  }

  function draw() {
    const her = market.owners[setting.owner];
    who.textContent = `Owner ${setting.owner}: ${her.family}, ${digits(her.data_size)} records, privacy budget ${digits(her.privacy_budget)}`;
    map.draw(market, setting);
    moves.data_size.disabled = market.certified.includes("data_size");
    delta(hers, HER.map(([key, text]) => [text, market.truth[key][setting.owner], market.report[key][setting.owner], key === "utility"]));
    delta(markets, MARKET.map(([key, text]) => [key === "error" ? `${text} (${market.error_kind})` : text, market.truth[key], market.report[key], false]));
    note.textContent = `Budget ${digits(market.budget)}.` + (market.draws > 1 ? ` This auction draws numbers: means of ${market.draws} draws, the same for both.` : "") + (market.certified.length ? " The broker has verified the records." : "");
    bars();
    document.documentElement.dataset.played = JSON.stringify([setting.owner, setting.asks, market.report.utility[setting.owner]]);
  }

  function bars() {
    if (!market) return;
    const side = (world) => market[world][measure].map((value, i) => [i === setting.owner ? `owner ${i} (she)` : `${i}`, value]);
    const chart = { id: "everybody", title: `Everybody's ${MEASURES[measure]}`, kind: "bars", x_label: "owner", y_label: MEASURES[measure], series: [{ name: "by the truth", points: side("truth"), labels: [] }, { name: "after her report", points: side("report"), labels: [] }], note: "", x_log: false, y_log: false, percent: false, diagonal: false };
    if (figure) updateFigure(figure, chart); else { figure = figureOf(chart, COLOURS); figures.prepend(figure); withFigures(); }
  }

  async function curve() {
    try { rising = await post("/api/curve", setting); } catch { return; }
    if (!here()) return;
    const her = market.report.utility[setting.owner];
    const chart = { id: "curve", title: "What her price brings her", kind: "line", x_label: "money asked, times her truth", y_label: "her utility", series: [{ name: "utility", points: rising.asks.map((x, k) => [x, rising.utility[k]]), labels: [] }, { name: "by the truth", points: [[1, market.truth.utility[setting.owner]]], labels: ["the truth"] }, { name: "now", points: [[setting.asks, her]], labels: ["her bid now"] }], note: "Everybody else tells the truth. A mechanism is truthful if no point lies above the truth.", x_log: false, y_log: false, percent: false, diagonal: false };
    if (curveFigure) updateFigure(curveFigure, chart); else { curveFigure = figureOf(chart, LINES); figures.appendChild(curveFigure); }
  }

  for (const [key, input] of Object.entries(fields)) input.addEventListener(input.type === "range" ? "input" : "change", () => {
    setting[key] = ["owners", "factor", "seed"].includes(key) ? Number(input.value) : input.value;
    if (setting.owner >= setting.owners) setting.owner = 0;
    sliders();
    ask();
  });
  for (const [key, input] of Object.entries(moves)) input.addEventListener("input", () => { setting[key] = key === "asks" ? 10 ** Number(input.value) : Number(input.value); sliders(); ask(); });
  action(bar, "Back to the truth", "her own valuation, budget and records", () => { Object.assign(setting, { asks: 1, privacy_budget: 1, data_size: 1 }); sliders(); return ask(); }).id = "truth";
  sliders();
  await ask();
  return () => clearTimeout(timer);
}

function slider(box, least, most, step, value) {
  const input = put(box, "input");
  Object.assign(input, { type: "range", min: least, max: most, step, value });
  put(box, "output", "at");
  return input;
}

function say(input, text) {
  input.parentNode.querySelector("output").textContent = text;
  input.setAttribute("aria-valuetext", text);
}

function delta(parent, rows) {
  parent.replaceChildren();
  const heads = put(parent, "div", "delta heads");
  for (const text of ["", "truth", "now", "change"]) put(heads, "span", "", text);
  for (const [text, before, after, good] of rows) {
    const row = put(parent, "div", "delta");
    put(row, "span", "what", text);
    put(row, "span", "before", before === null ? "none" : digits(before));
    put(row, "b", "after", after === null ? "none" : digits(after));
    const by = before === null || after === null ? 0 : after - before, small = Math.abs(by) < 1e-6 * Math.max(1, Math.abs(before || 0));
    const mark = put(row, "span", "by" + (good && !small ? (by > 0 ? " up" : " down") : ""), small ? "same" : `${by > 0 ? "+" : "−"}${digits(Math.abs(by))}`);
    mark.setAttribute("aria-label", "change");
  }
}
