"use strict";
// Charts as SVG: lines with bands, clouds of points, bars with whiskers, timelines. Names only ever become text nodes.

const SVG = "http://www.w3.org/2000/svg";
const MARKS = ["circle", "square", "triangle", "diamond"];

function drawn(name, attributes, parent, text) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  if (parent) parent.appendChild(node);
  return node;
}

function mark(parent, shape, x, y, size, colour, opacity) {
  const common = { fill: colour, "fill-opacity": opacity };
  if (shape === "square") return drawn("rect", { ...common, x: x - size * 0.9, y: y - size * 0.9, width: size * 1.8, height: size * 1.8 }, parent);
  if (shape === "triangle") return drawn("path", { ...common, d: `M${x} ${y - size * 1.2}l${size * 1.15} ${size * 2}h${-size * 2.3}z` }, parent);
  if (shape === "diamond") return drawn("path", { ...common, d: `M${x} ${y - size * 1.3}l${size * 1.3} ${size * 1.3}l${-size * 1.3} ${size * 1.3}l${-size * 1.3} ${-size * 1.3}z` }, parent);
  return drawn("circle", { ...common, cx: x, cy: y, r: size }, parent);
}

function shortened(text, most) {
  return text.length > most ? text.slice(0, most - 1) + "…" : text;
}

class Figure {
  constructor(chart, colours, tip) {
    this.chart = chart;
    this.tip = tip;
    this.colours = colours;
    this.hidden = new Set();
    this.log = chart.y_log && this.canBeLog();
    this.node = document.createElement("figure");
    this.node.className = "figure" + (chart.kind === "timeline" ? " wide" : "");
    this.node.id = "chart-" + chart.id;
    const head = put(this.node, "div", "chart-head");
    put(head, "h3", "", chart.title);
    if (chart.kind !== "timeline" && this.canBeLog()) this.tools(head);
    this.legend();
    this.svg = drawn("svg", { role: "img", "aria-label": chart.title }, this.node);
    if (chart.note) put(this.node, "figcaption", "note", chart.note);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerdown", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.leave());
    this.width = 0;
    new ResizeObserver(() => {
      const width = Math.round(this.node.clientWidth);
      if (width && width !== this.width) { this.width = width; this.draw(); }
    }).observe(this.node);
  }

  canBeLog() {
    const values = this.chart.series.flatMap((one) => one.points.map((point) => point[1]).filter((value) => value !== null));
    return !this.chart.percent && values.length > 0 && values.every((value) => value > 0);
  }

  tools(head) {
    const tools = put(head, "div", "chart-tools");
    const button = put(tools, "button", "", "log");
    button.type = "button";
    button.setAttribute("aria-pressed", String(this.log));
    button.addEventListener("click", () => {
      this.log = !this.log;
      button.setAttribute("aria-pressed", String(this.log));
      this.draw();
    });
  }

  colour(place) {
    const colour = this.colours[place % this.colours.length];
    return { "#000000": "var(--ink)", "#0072B2": "var(--blue)" }[colour] || colour; // these two are lost on a dark page
  }

  shape(place) { return MARKS[Math.floor(place + place / this.colours.length) % MARKS.length]; }

  legend() {
    if (this.chart.series.length < 2) return;
    const legend = put(this.node, "div", "legend");
    this.chart.series.forEach((one, place) => {
      const button = put(legend, "button");
      button.type = "button";
      button.title = "show or hide";
      button.setAttribute("aria-pressed", "true");
      const swatch = drawn("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, button);
      mark(swatch, this.chart.kind === "scatter" || this.chart.kind === "line" ? this.shape(place) : "square", 7, 7, 4.5, this.colour(place), 1);
      put(button, "span", "", one.name);
      button.addEventListener("click", () => {
        if (!this.hidden.delete(place)) this.hidden.add(place);
        button.setAttribute("aria-pressed", String(!this.hidden.has(place)));
        this.draw();
      });
    });
  }

  draw() {
    this.svg.replaceChildren();
    this.spots = [];
    this.leave();
    const style = getComputedStyle(this.node);
    const width = Math.max(220, this.width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight));
    const shown = this.chart.series.map((one, place) => ({ ...one, place })).filter((one) => !this.hidden.has(one.place) && one.points.length);
    if (this.chart.kind === "timeline") this.timeline(width, shown);
    else if (this.chart.kind === "bars") this.bars(width, shown);
    else this.plane(width, shown);
  }

  size(width, height) {
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.box = { width, height };
  }

  nothing(width) {
    this.size(width, 60);
    drawn("text", { x: width / 2, y: 34, "text-anchor": "middle", class: "empty" }, this.svg, "nothing to show");
  }

  // Horizontal grid with numbers at the left; returns how much room they took.
  levels(y, left, right) {
    for (const tick of y.ticks) {
      const at = y.place(tick);
      drawn("line", { x1: left, x2: right, y1: at, y2: at, class: "grid" }, this.svg);
      drawn("text", { x: left - 6, y: at + 4, "text-anchor": "end", class: "axis" }, this.svg, onAxis(tick, this.chart.percent));
    }
    drawn("text", { x: 0, y: 12, class: "title-of-axis" }, this.svg, shortened(this.chart.y_label, Math.floor(right / 6.3)));
  }

  below(x, top, bottom, middle) {
    for (const tick of x.ticks) {
      const at = x.place(tick);
      drawn("line", { x1: at, x2: at, y1: top, y2: bottom, class: "grid" }, this.svg);
      drawn("text", { x: at, y: bottom + 16, "text-anchor": "middle", class: "axis" }, this.svg, onAxis(tick, false));
    }
    drawn("text", { x: middle, y: bottom + 34, "text-anchor": "middle", class: "title-of-axis" }, this.svg, this.chart.x_label);
  }

  plane(width, shown) {
    const height = Math.round(Math.min(380, Math.max(240, width * 0.62)));
    const left = 52, right = width - 12, top = 24, bottom = height - 42;
    const ys = shown.flatMap((one) => one.points.flatMap((point) => [point[1], point[2], point[3]])).filter((v) => typeof v === "number");
    const xs = shown.flatMap((one) => one.points.map((point) => point[0]));
    const x = scale(xs, left, right, { log: this.chart.x_log, pad: true, about: width / 80 });
    const y = scale(ys, bottom, top, { log: this.log, pad: true, about: 5 });
    if (!x || !y) return this.nothing(width);
    this.size(width, height);
    if (this.chart.kind === "line" && xs.every(Number.isInteger)) x.ticks = x.ticks.filter(Number.isInteger);
    this.levels(y, left, right);
    this.below(x, top, bottom, (left + right) / 2);
    if (this.chart.diagonal) this.diagonal(x, y);
    for (const one of shown) {
      const colour = this.colour(one.place);
      const points = one.points.map((point, k) => ({ point, k })).filter(({ point }) => x.shows(point[0]) && y.shows(point[1]));
      const lines = this.chart.kind === "line";
      if (lines) {
        const banded = points.filter(({ point }) => y.shows(point[2]) && y.shows(point[3]));
        if (banded.length > 1) {
          const upper = banded.map(({ point }) => `${x.place(point[0])} ${y.place(point[3])}`);
          const lower = banded.map(({ point }) => `${x.place(point[0])} ${y.place(point[2])}`).reverse();
          drawn("path", { d: "M" + [...upper, ...lower].join("L") + "z", fill: colour, "fill-opacity": 0.15 }, this.svg);
        }
        const path = points.map(({ point }) => `${x.place(point[0]).toFixed(1)} ${y.place(point[1]).toFixed(1)}`).join("L");
        drawn("path", { d: "M" + path, fill: "none", stroke: colour, "stroke-width": 2, "stroke-linejoin": "round", class: "series" }, this.svg);
      }
      const size = points.length > 300 ? 2.2 : points.length > 60 ? 2.8 : 3.6;
      for (const { point, k } of points) {
        const at = { x: x.place(point[0]), y: y.place(point[1]) };
        if (!lines || points.length <= 60) mark(this.svg, this.shape(one.place), at.x, at.y, size, colour, lines ? 1 : 0.8);
        if (lines && points.length <= 12 && y.shows(point[2]) && y.shows(point[3])) this.whisker(at.x, y.place(point[2]), y.place(point[3]), colour);
        this.spots.push({ ...at, text: this.words(one, k) });
      }
    }
  }

  diagonal(x, y) {
    const low = Math.max(x.low, y.low), high = Math.min(x.high, y.high);
    if (low >= high) return;
    const at = [];
    for (let k = 0; k <= 40; k++) { // straight only where both axes are of one kind
      const value = this.log && low > 0 ? low * Math.pow(high / low, k / 40) : low + ((high - low) * k) / 40;
      if (x.shows(value) && y.shows(value)) at.push(`${x.place(value)} ${y.place(value)}`);
    }
    drawn("path", { d: "M" + at.join("L"), class: "reference" }, this.svg);
  }

  whisker(x, low, high, colour) {
    drawn("path", { d: `M${x} ${low}V${high}M${x - 4} ${low}h8M${x - 4} ${high}h8`, stroke: colour, "stroke-width": 1.5, fill: "none" }, this.svg);
  }

  // Bars lie down: names stay readable on a phone.
  bars(width, shown) {
    const names = [...new Set(shown.flatMap((one) => one.points.map((point) => point[0])))];
    if (!names.length) return this.nothing(width);
    const most = Math.max(8, Math.floor(width * 0.34 / 6.4));
    const left = Math.min(width * 0.36, Math.max(...names.map((name) => Math.min(most, String(name).length))) * 6.6 + 14);
    const thick = shown.length > 3 ? 9 : shown.length > 1 ? 12 : 18;
    const lane = shown.length * (thick + 2) + 12;
    const top = 22, bottom = top + names.length * lane, right = width - 18;
    const values = shown.flatMap((one) => one.points.flatMap((point) => [point[1], point[2], point[3]])).filter((v) => typeof v === "number");
    const x = scale(values, left, right, { log: this.log, zero: true, pad: true, about: width / 100 });
    if (!x) return this.nothing(width);
    this.size(width, bottom + 24);
    for (const tick of x.ticks) {
      const at = x.place(tick);
      drawn("line", { x1: at, x2: at, y1: top, y2: bottom, class: "grid" }, this.svg);
      drawn("text", { x: at, y: bottom + 16, "text-anchor": "middle", class: "axis" }, this.svg, onAxis(tick, this.chart.percent));
    }
    drawn("text", { x: 0, y: 12, class: "title-of-axis" }, this.svg, shortened(`${this.chart.y_label}, by ${this.chart.x_label}`, Math.floor(width / 6.3)));
    const zero = x.place(this.log ? x.low : 0);
    names.forEach((name, row) => {
      const middle = top + row * lane + lane / 2;
      const text = drawn("text", { x: left - 8, y: middle + 4, "text-anchor": "end", class: "axis" }, this.svg, shortened(String(name), most));
      drawn("title", {}, text, String(name));
      shown.forEach((one, place) => {
        const k = one.points.findIndex((point) => point[0] === name);
        if (k < 0 || !x.shows(one.points[k][1])) return;
        const [, value, low, high] = one.points[k];
        const y = top + row * lane + 6 + place * (thick + 2), end = x.place(value), colour = this.colour(one.place);
        drawn("rect", { x: Math.min(zero, end), y, width: Math.max(1, Math.abs(end - zero)), height: thick, fill: colour, class: "series" }, this.svg);
        if (x.shows(low) && x.shows(high)) {
          const half = y + thick / 2;
          drawn("path", { d: `M${x.place(low)} ${half}H${x.place(high)}M${x.place(low)} ${half - 4}v8M${x.place(high)} ${half - 4}v8`, stroke: "var(--ink)", "stroke-width": 1.3, fill: "none" }, this.svg);
        }
        this.spots.push({ x: (zero + end) / 2, y: y + thick / 2, wide: Math.abs(end - zero) / 2, text: this.words(one, k) });
      });
    });
  }

  timeline(width, shown) {
    const lanes = [...new Set(this.chart.series.flatMap((one) => one.points.map((point) => point[2])))];
    const order = new Map(lanes.map((name, row) => [name, row]));
    const left = Math.min(width * 0.3, Math.max(...lanes.map((name) => name.length)) * 6.6 + 14);
    const thick = lanes.length > 20 ? 9 : 14, lane = thick + 5, top = 8, bottom = top + lanes.length * lane, right = width - 14;
    const x = scale(shown.flatMap((one) => one.points.flatMap((point) => [point[0], point[1]])), left, right, { zero: true, about: width / 90 });
    if (!x) return this.nothing(width);
    this.size(width, bottom + 42);
    this.below(x, top, bottom, (left + right) / 2);
    lanes.forEach((name, row) => {
      if (lanes.length > 24 && row % 2) return;
      drawn("text", { x: left - 8, y: top + row * lane + thick / 2 + 5, "text-anchor": "end", class: "axis" }, this.svg, shortened(name, Math.floor(left / 6)));
    });
    for (const one of shown) {
      const colour = this.colour(one.place);
      one.points.forEach(([start, end, name], k) => {
        const y = top + order.get(name) * lane + 2, from = x.place(start), to = x.place(end);
        if (start === end) drawn("rect", { x: from - 1, y: y - 1, width: 2, height: thick + 2, fill: colour, class: "series" }, this.svg);
        else drawn("rect", { x: from, y, width: Math.max(0.8, to - from - 0.6), height: thick, fill: colour, class: "series" }, this.svg);
        this.spots.push({ x: (from + to) / 2, y: y + thick / 2, wide: (to - from) / 2, text: this.words(one, k) });
      });
    }
  }

  // What a point is, line by line.
  words(one, k) {
    const point = one.points[k], chart = this.chart;
    const number = (value) => (chart.percent ? digits(value * 100) + " %" : digits(value));
    const head = chart.series.length > 1 || chart.kind === "timeline" ? [one.name] : [];
    const label = one.labels.length ? [one.labels[k]] : [];
    if (chart.kind === "timeline") return [`${point[2]}: ${one.name}`, ...label];
    const range = typeof point[2] === "number" && typeof point[3] === "number" ? ` [${number(point[2])}, ${number(point[3])}]` : "";
    return [...head, ...label, `${chart.x_label}: ${digits(point[0])}`, `${chart.y_label}: ${number(point[1])}${range}`];
  }

  point(event) {
    const frame = this.svg.getBoundingClientRect();
    if (!this.box || !frame.width) return;
    const times = this.box.width / frame.width;
    const at = { x: (event.clientX - frame.left) * times, y: (event.clientY - frame.top) * times };
    let best = null, least = 26 * 26;
    for (const spot of this.spots) {
      const dx = Math.max(0, Math.abs(spot.x - at.x) - (spot.wide || 0)), dy = spot.y - at.y, distance = dx * dx + dy * dy;
      if (distance < least) { least = distance; best = spot; }
    }
    if (!best) return this.leave();
    if (!this.ring) this.ring = drawn("circle", { r: 6, fill: "none", stroke: "var(--ink)", "stroke-width": 1.5, "pointer-events": "none" });
    this.ring.setAttribute("cx", best.wide ? at.x : best.x);
    this.ring.setAttribute("cy", best.y);
    this.svg.appendChild(this.ring);
    this.tip.show(best.text, event.clientX, event.clientY);
  }

  leave() {
    if (this.ring) this.ring.remove();
    this.tip.hide();
  }
}
