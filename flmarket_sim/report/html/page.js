"use strict";
// Puts the page together from its data. Whatever came from a scenario enters by textContent alone.

function section(main, contents, id, title) {
  const node = put(main, "section");
  put(node, "h2", "", title).id = id;
  put(contents, "a", "", title).href = "#" + id;
  return node;
}

function cards(parent, pairs) {
  const list = put(parent, "dl", "cards");
  for (const [label, value] of pairs) {
    const card = put(list, "div", "card");
    put(card, "dt", "", label);
    put(card, "dd", "", value);
  }
}

function theme() {
  const button = document.getElementById("theme"), root = document.documentElement;
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches);
  const say = () => { button.textContent = dark() ? "light" : "dark"; };
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; say(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", say);
  say();
}

function build(data) {
  document.title = `${data.title} - flmarket report`;
  document.getElementById("kind").textContent = data.kind;
  document.getElementById("title").textContent = data.title;
  document.getElementById("description").textContent = data.description;
  const main = document.getElementById("main"), contents = document.getElementById("contents");
  main.replaceChildren();
  for (const notice of data.notices) put(main, "p", "notice", notice).setAttribute("role", "alert");

  const summary = section(main, contents, "summary", "Summary");
  for (const input of data.inputs) {
    if (data.inputs.length > 1) {
      put(summary, "h3", "", `${input.label} (${input.kind})`);
      put(summary, "p", "about", input.title === input.folder ? input.folder : `${input.title}, in ${input.folder}`);
    }
    cards(summary, input.cards);
  }
  if (data.sentences.length) {
    const list = put(summary, "ul", "sentences");
    for (const sentence of data.sentences) put(list, "li", "", sentence);
  }
  if (data.charts.length || data.pictures.length) {
    const shown = put(section(main, contents, "figures", "Figures"), "div", "figures");
    for (const chart of data.charts) shown.appendChild(figureOf(chart, data.colours));
    for (const picture of data.pictures) {
      const figure = put(shown, "figure", "figure wide drawn");
      put(figure, "h3", "", `As drawn by the study: ${picture.label}`);
      const image = put(figure, "img");
      image.alt = "the study's own figure";
      image.src = picture.address;
    }
  }
  if (data.tables.length) {
    const tables = section(main, contents, "tables", "Tables");
    for (const table of data.tables) makeTable(tables, table);
  }
  if (data.settings.rows.length) makeTable(section(main, contents, "settings", "Settings"), { ...data.settings, title: "" });
  makeTable(section(main, contents, "provenance", "Provenance"), { ...data.provenance, title: "" });
  document.getElementById("footer").textContent = `Made by flmarket-sim ${data.version}. This page is complete in itself: it loads nothing.`;
}

theme();
build(JSON.parse(document.getElementById("data").textContent));
document.documentElement.dataset.ready = "yes";
