// Questions to a run in SQL. The answer can be sorted, filtered and saved as CSV.

import { get, post } from "./api.js";
import { action, choice, heading, labelled } from "./parts.js";

const EXAMPLES = [
  ["Rounds", "SELECT buyer, round + 1 AS round, budget, spent, winners, delivered, error_bound, accuracy\nFROM rounds ORDER BY seq"],
  ["Who earns the most", "SELECT p.receiver AS owner, o.family, count(*) AS sales, sum(p.amount) AS paid,\n       sum(p.amount - d.value) AS surplus\nFROM payment p\nJOIN decision d ON d.sender = p.receiver AND d.round = p.round AND d.buyer = p.buyer\nJOIN owners o ON o.owner = p.receiver\nGROUP BY ALL ORDER BY surplus DESC LIMIT 20"],
  ["Winners by family", "SELECT o.family, count(*) AS bids, sum(CASE WHEN a.privacy_loss > 0 THEN 1 ELSE 0 END) AS wins,\n       avg(a.payment) AS mean_payment\nFROM allocation a JOIN owners o ON o.owner = a.receiver\nGROUP BY o.family ORDER BY wins DESC"],
  ["Noise and bias", "SELECT avg(variance / error_bound) AS noise_share, avg(squared_bias / error_bound) AS bias_share\nFROM delivery WHERE valid"],
  ["Columns of bids", "DESCRIBE bid"],
];

export async function show(main, [name], here) {
  heading(main, "SQL", "Every kind of event of a run is a table; so are rounds, owners and ledger. Questions only read.", "questions");
  const runs = (await get("/api/folder")).entries.filter((one) => one.kind === "run" && one.outcome !== "failed to start");
  if (!here()) return;
  if (!runs.length) { put(main, "p", "about", "There is no run to ask yet."); return; }
  const known = runs.map((one) => one.name);
  if (name && !known.includes(name)) known.unshift(name);
  const run = labelled(main, "run", (box) => choice(box, known, name || known[0]));
  const examples = put(main, "div", "chips");
  const query = labelled(main, "question", (box) => put(box, "textarea", "code"));
  query.rows = 7;
  query.spellcheck = false;
  query.value = EXAMPLES[0][1];
  for (const [title, text] of EXAMPLES) putButton(examples, title, "use this question", () => { query.value = text; query.focus(); }).className = "chip";
  const bar = put(main, "div", "actions"), answer = put(main, "div", "answer");

  async function ask() {
    answer.replaceChildren();
    try {
      const found = await post("/api/sql", { run: run.value, query: query.value });
      if (!here()) return;
      const many = found.rows.length.toLocaleString("en-US");
      const note = `${many} rows in ${found.seconds} s` + (found.cut ? "; more were left out: `flmarket sql` gives them all" : "");
      makeTable(answer, { id: "answer", title: "Answer", columns: found.columns, rows: found.rows, note });
    } catch (error) { put(answer, "p", "notice", error.message).setAttribute("role", "alert"); }
  }

  action(bar, "Ask", "Ctrl and Enter ask too", ask, true).id = "ask";
  query.addEventListener("keydown", (event) => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) ask(); });
}
