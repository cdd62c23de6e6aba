// The frame of the workbench: addresses after the #, tabs, theme, and messages.

import { afterFirstPaint, clearFigures, withFigures } from "./library.js";
import { toast } from "./parts.js";

const PARTS = {
  "": ["results", () => import("./folder.js")],
  new: ["new", () => import("./scenario.js")],
  result: ["results", () => import("./result.js")],
  compare: ["results", () => import("./compare.js")],
  sql: ["sql", () => import("./sql.js")],
  probe: ["probe", () => import("./probe.js")],
  playground: ["playground", () => import("./playground.js")],
};
let leave = null; // what the part on the screen does when it goes
let visit = 0;

async function show() {
  const [, name = "", ...rest] = location.hash.split("/");
  const [tab, load] = PARTS[name] || PARTS[""];
  const main = document.getElementById("main"), mine = ++visit;
  for (const link of document.querySelectorAll("#tabs a")) {
    if (link.dataset.tab === tab) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  const part = await load();
  if (mine !== visit) return;
  if (leave) leave();
  leave = null;
  clearFigures(main);
  main.replaceChildren();
  try {
    const gone = await part.show(main, rest.map(decodeURIComponent), () => mine === visit);
    if (mine === visit) leave = gone || null; else if (gone) gone();
  } catch (error) {
    if (mine === visit) put(main, "p", "notice", error.message).setAttribute("role", "alert");
  }
  document.documentElement.dataset.shown = location.hash || "#/";
}

function theme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const say = () => { button.textContent = dark() ? "light" : "dark"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; localStorage.setItem("theme", root.dataset.theme); say(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
}

if (location.search) history.replaceState(null, "", location.pathname + location.hash); // the token leaves the address
theme();
addEventListener("hashchange", show);
addEventListener("unhandledrejection", (event) => toast(event.reason && event.reason.message ? event.reason.message : String(event.reason)));
show();
afterFirstPaint(() => withFigures().catch((error) => toast(error.message)));
