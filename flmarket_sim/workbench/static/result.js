// One result: watched while it is written, then with everything that its report page has.

import { get, post } from "./api.js";
import { action, badge, cards, heading, linkTo, percent, short, toast } from "./parts.js";
import { LiveCharts } from "./live_charts.js";
import { clearFigures, withFigures } from "./library.js";
import { showReport } from "./report_view.js";

const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];
const MAY_RESUME = ["stopped", "interrupted", "failed"];

export async function show(main, [name], here) {
  const actions = heading(main, name, "", "result");
  const state = put(main, "div", "state");
  const live = put(main, "div", "live"), report = put(main, "div", "report");
  let source = null, view = null;

  function begin() {
    if (source) source.close();
    clearFigures(live);
    live.replaceChildren();
    clearFigures(report);
    report.replaceChildren();
    view = new LiveView(live, state);
    source = new EventSource(`/api/live?name=${encodeURIComponent(name)}`);
    source.onmessage = (event) => { const news = JSON.parse(event.data); view.take(news); buttons(news); };
    source.addEventListener("end", () => { source.close(); whole(); });
    source.onerror = () => { if (here() && source.readyState === EventSource.CLOSED) toast("The workbench does not answer. The run goes on without it."); };
  }

  function buttons(news) {
    const as = JSON.stringify([news.outcome, news.ours, Boolean(news.totals)]);
    if (actions.dataset.as === as) return;
    actions.dataset.as = as;
    actions.replaceChildren();
    badge(actions, news.outcome);
    if (news.ours) action(actions, "Stop", "the run completes its round and can be resumed", async () => { await post("/api/stop", { name }); toast("It ends after this round."); }).id = "stop";
    if (MAY_RESUME.includes(news.outcome)) action(actions, "Resume", "continue to exactly the files of a whole run", async () => { await post("/api/resume", { name }); begin(); }, true).id = "resume";
    if (news.totals) linkTo(actions, "Ask SQL", "sql", name).className = "do";
  }

  async function whole() {
    if (!here()) return;
    if (view.outcome === "failed to start") return;
    const waiting = put(report, "p", "about", "Drawing figures and tables …");
    try {
      const data = await get("/api/page", [["of", name]]);
      if (!here()) return;
      main.querySelector("h1").textContent = data.title;
      main.querySelector(".kind").textContent = `${data.kind} · ${name}`;
      if (data.description && !main.querySelector(".words .about")) put(main.querySelector(".words"), "p", "about", data.description);
      clearFigures(live);
      live.replaceChildren();
      state.replaceChildren();
      waiting.remove();
      showReport(report, data);
      document.documentElement.dataset.whole = name;
    } catch (error) { waiting.remove(); put(report, "p", "notice", error.message); }
  }

  begin();
  return () => source && source.close();
}

class LiveView {
  constructor(parent, state) {
    this.state = state;
    this.numbers = put(parent, "div");
    this.charts = new LiveCharts(put(parent, "div", "figures"), COLOURS);
    this.words = put(parent, "div", "messages");
    this.feed = [];
    withFigures();
  }

  take(news) {
    this.outcome = news.outcome;
    this.state.replaceChildren();
    if (news.tasks) this.progress(news.tasks.done, news.tasks.of, "tasks");
    if (news.totals) {
      const t = news.totals;
      this.progress(t.rounds, t.of, "rounds");
      const pairs = [["rounds", `${digits(t.rounds)} of ${digits(t.of)}`], ["accuracy", percent(t.accuracy)], ["constant guess", percent(news.constant_guess)], ["balanced accuracy", percent(t.balanced_accuracy)], ["money spent", short(t.spent)], ["privacy sold", short(t.privacy_sold)], ["gradients", short(t.delivered)], ["events", news.events.toLocaleString("en-US")]];
      this.numbers.replaceChildren();
      cards(this.numbers, pairs.filter(([, value]) => value !== ""));
    }
    if (news.rounds && news.rounds.length) this.charts.add(news.rounds, news.constant_guess);
    if (news.messages && news.messages.length) this.say(news.messages);
    if (news.output) put(this.state, "pre", "output", news.output);
    document.documentElement.dataset.rounds = news.totals ? news.totals.rounds : "";
  }

  progress(done, of, what) {
    if (!of && !done) { put(this.state, "p", "about", "Preparing …"); return; }
    const bar = put(this.state, "progress");
    if (of) { bar.max = of; bar.value = done; }
    bar.setAttribute("aria-label", what);
    put(this.state, "span", "note", of ? `${digits(done)} of ${digits(of)} ${what}` : `${digits(done)} ${what} done`);
  }

  say(messages) {
    this.feed = [...this.feed, ...messages].slice(-24);
    this.words.replaceChildren();
    put(this.words, "h3", "", "Messages as they happen");
    const list = put(this.words, "ol", "feed");
    for (const one of [...this.feed].reverse()) {
      const line = put(list, "li");
      put(line, "span", "at", `round ${one.round + 1}`);
      put(line, "b", "", one.kind);
      put(line, "span", "way", `${one.sender} → ${one.receiver}`);
      put(line, "span", "says", one.says);
    }
  }
}
