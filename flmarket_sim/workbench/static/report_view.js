// The content of a report page (cards, sentences, figures, tables, settings) inside the workbench.

import { cards } from "./parts.js";
import { withFigures } from "./library.js";

export function showReport(parent, data) {
  for (const notice of data.notices) put(parent, "p", "notice", notice);
  for (const input of data.inputs) {
    if (data.inputs.length > 1) {
      put(parent, "h3", "", `${input.label} (${input.kind})`);
      put(parent, "p", "about", input.title === input.folder ? input.folder : `${input.title}, in ${input.folder}`);
    }
    cards(parent, input.cards);
  }
  if (data.sentences.length) {
    const list = put(parent, "ul", "sentences");
    for (const sentence of data.sentences) put(list, "li", "", sentence);
  }
  if (data.charts.length || data.pictures.length) {
    put(parent, "h2", "", "Figures");
    const figures = put(parent, "div", "figures");
    for (const chart of data.charts) figures.appendChild(figureOf(chart, data.colours));
    for (const picture of data.pictures) {
      const figure = put(figures, "figure", "figure wide drawn");
      put(figure, "h3", "", `As drawn by the study: ${picture.label}`);
      const image = put(figure, "img");
      image.alt = "the study's own figure";
      image.src = picture.address;
    }
    withFigures();
  }
  if (data.tables.length) {
    put(parent, "h2", "", "Tables");
    for (const table of data.tables) makeTable(parent, table);
  }
  if (data.settings.rows.length) { put(parent, "h2", "", "Settings"); makeTable(parent, { ...data.settings, title: "" }); }
  put(parent, "h2", "", "Provenance");
  makeTable(parent, { ...data.provenance, title: "" });
}
