"use strict";
// Figures on a page: `figureOf(chart, colours)` makes one, `updateFigure(element, chart)` gives it new data. A figure is drawn when it comes
// into view, and again when its width or the theme changes. Its legend hides series; its buttons change the scale and save it.

const PLOTLY = { displayModeBar: false, displaylogo: false, responsive: false, showTips: false, doubleClick: "reset", scrollZoom: false };
const figuresByElement = new Map(); // from the element to its figure
const printing = { now: false };

function themeNow() {
  if (printing.now) return LIGHT;
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(["paper", "card", "ink", "quiet", "line", "blue"].map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

const seenFigures = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const figure = figuresByElement.get(entry.target);
    if (!figure) continue;
    figure.visible = entry.isIntersecting;
    if (figure.visible) figure.draw();
  }
}, { rootMargin: "300px" });

const sizedFigures = new ResizeObserver((entries) => {
  for (const entry of entries) {
    const figure = figuresByElement.get(entry.target);
    if (!figure) continue;
    figure.reserve();
    if (figure.visible) figure.draw();
  }
});

class Figure {
  constructor(chart, colours) {
    this.colours = colours;
    this.hidden = new Set(); // names of series
    this.visible = false;
    this.node = document.createElement("figure");
    const head = put(this.node, "div", "chart-head");
    this.title = put(head, "h3");
    const tools = put(head, "div", "chart-tools");
    this.logButton = putButton(tools, "log", "linear or logarithmic scale", () => { this.log = !this.log; this.changed(); });
    for (const format of ["svg", "png"]) putButton(tools, format.toUpperCase(), `save this figure as ${format.toUpperCase()}`, () => this.save(format)).className = "save-" + format;
    this.legend = put(this.node, "div", "legend");
    this.plot = put(this.node, "div", "plot");
    this.plot.setAttribute("role", "img");
    this.note = put(this.node, "figcaption", "note");
    this.log = null;
    this.set(chart);
  }

  set(chart) {
    this.chart = chart;
    this.node.className = "figure" + (chart.kind === "timeline" ? " wide" : "");
    this.node.id = "chart-" + chart.id;
    this.title.textContent = chart.title;
    this.plot.setAttribute("aria-label", chart.title);
    this.note.textContent = chart.note || "";
    this.note.hidden = !chart.note;
    this.logButton.hidden = !canBeLog(chart);
    if (this.log === null) this.log = Boolean(chart.y_log);
    this.changed();
  }

  changed() {
    this.drawnAs = "";
    this.logButton.setAttribute("aria-pressed", String(this.log && canBeLog(this.chart)));
    this.fillLegend();
    if (this.visible) this.draw();
  }

  look(width) {
    const hidden = new Set(this.chart.series.map((one, place) => (this.hidden.has(one.name) ? place : -1)));
    const still = matchMedia("(pointer: coarse)").matches; // a finger scrolls the page
    return { colours: this.colours, theme: themeNow(), hidden, log: this.log && canBeLog(this.chart), width, height: heightOf(this.chart, width), still };
  }

  fillLegend() {
    this.legend.replaceChildren();
    this.legend.hidden = this.chart.series.length < 2;
    if (this.legend.hidden) return;
    const overlaps = overlapsOf(this.chart), theme = themeNow();
    this.chart.series.forEach((one, place) => {
      const button = putButton(this.legend, "", "show or hide", () => {
        if (!this.hidden.delete(one.name)) this.hidden.add(one.name);
        this.changed();
      });
      button.setAttribute("aria-pressed", String(!this.hidden.has(one.name)));
      this.swatch(button, place, overlaps[place], theme);
      put(button, "span", "", one.name);
      if (overlaps[place].same !== null) put(button, "span", "same", `same as ${this.chart.series[overlaps[place].same].name}`);
    });
  }

  swatch(button, place, overlap, theme) {
    const colour = colourOf(this.colours, place, theme), lines = this.chart.kind === "line";
    const swatch = putSvg(button, "svg", { viewBox: lines ? "0 0 26 14" : "0 0 14 14", "aria-hidden": "true" });
    const reference = this.chart.series[place].reference;
    const dash = reference ? referenceDash(this.chart, place).replaceAll("px", "") : overlap.above ? dashOf(overlap).replaceAll("px", "") : "none";
    if (lines) putSvg(swatch, "path", { d: "M0 7H26", stroke: reference ? theme.ink : colour, "stroke-width": widthOf(overlap), "stroke-dasharray": dash });
    if (reference) return;
    const x = lines ? 13 : 7, shape = ["line", "scatter"].includes(this.chart.kind) ? markOf(this.colours, place) : "square";
    const paths = {
      circle: `M${x - 4.5} 7a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0`, square: `M${x - 4} 3h8v8h-8z`, "triangle-up": `M${x} 2l5 9h-10z`, "triangle-down": `M${x} 12l5 -9h-10z`,
      diamond: `M${x} 1.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z`, cross: `M${x - 1.7} 2h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z`,
      x: `M${x - 4.5} 4.7l2.2 -2.2l2.3 2.3l2.3 -2.3l2.2 2.2l-2.3 2.3l2.3 2.3l-2.2 2.2l-2.3 -2.3l-2.3 2.3l-2.2 -2.2l2.3 -2.3z`,
      star: `M${x} 1.5l1.6 3.6l4 .4l-3 2.7l.9 3.9l-3.5 -2l-3.5 2l.9 -3.9l-3 -2.7l4 -.4z`,
    };
    putSvg(swatch, "path", { d: paths[shape], fill: colour });
  }

  width() {
    const style = getComputedStyle(this.node);
    return Math.max(220, Math.round(this.node.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight)));
  }

  // A figure has its height before it is drawn: the page does not jump.
  reserve() { this.plot.style.height = heightOf(this.chart, this.width()) + "px"; }

  draw() {
    if (typeof Plotly === "undefined") return; // the library comes last, after what can be read without it
    if (!this.node.clientWidth) return;
    const look = this.look(this.width()), as = JSON.stringify([look.width, look.theme, look.log, look.still]);
    if (as === this.drawnAs) return;
    if (this.drawnAs && look.theme.ink !== this.ink) this.fillLegend();
    this.drawnAs = as;
    this.ink = look.theme.ink;
    const traces = tracesOf(this.chart, look);
    this.plot.style.height = look.height + "px";
    Plotly.react(this.plot, traces, layoutOf(this.chart, look), PLOTLY);
  }

  async save(format) {
    const { data, layout } = pictureOf(this.chart, this.look(760));
    const address = await Plotly.toImage({ data, layout, config: PLOTLY }, { format, width: layout.width, height: layout.height, scale: format === "png" ? 3 : 1 });
    const body = address.slice(address.indexOf(",") + 1), name = fileName(this.chart.title, "." + format);
    if (format === "svg") saveFile(name, decodeURIComponent(body), "image/svg+xml");
    else saveFile(name, Uint8Array.from(atob(body), (letter) => letter.charCodeAt(0)), "image/png");
  }
}

function figureOf(chart, colours) {
  const figure = new Figure(chart, colours);
  figuresByElement.set(figure.node, figure);
  seenFigures.observe(figure.node);
  sizedFigures.observe(figure.node);
  return figure.node;
}

function updateFigure(element, chart) {
  const figure = figuresByElement.get(element);
  if (figure) figure.set(chart);
}

// A page that takes a figure away for good says so: its drawing is freed.
function removeFigure(element) {
  const figure = figuresByElement.get(element);
  if (!figure) return;
  seenFigures.unobserve(element);
  sizedFigures.unobserve(element);
  figuresByElement.delete(element);
  Plotly.purge(figure.plot);
  element.remove();
}

function redrawFigures(all) {
  for (const figure of figuresByElement.values()) { figure.drawnAs = all ? "" : figure.drawnAs; if (all || figure.visible) figure.draw(); }
}

addEventListener("DOMContentLoaded", () => redrawFigures(false));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => redrawFigures(false));
new MutationObserver(() => redrawFigures(false)).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
addEventListener("beforeprint", () => { printing.now = true; redrawFigures(true); });
addEventListener("afterprint", () => { printing.now = false; redrawFigures(true); });
