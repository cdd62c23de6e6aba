// Results beside each other, labelled by what differs.

import { get } from "./api.js";
import { heading, linkTo } from "./parts.js";
import { showReport } from "./report_view.js";

export async function show(main, names, here) {
  const actions = heading(main, "Beside each other", "Reading …", "comparison");
  for (const name of names) { const link = linkTo(actions, name, "result", name); link.className = "chip"; }
  const data = await get("/api/page", names.map((name) => ["of", name]));
  if (!here()) return;
  main.querySelector("h1").textContent = data.title;
  main.querySelector(".about").textContent = "Labels say what differs. A click on a name in a legend hides its line.";
  showReport(main, data);
}
