"use strict";
// From a chart's data to the traces and the layout of plotly: lines with bands, clouds of points, bars with whiskers, timelines.
// Plotly reads some tags in texts, so every text passes `asText`.

const MARKS = ["circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "x", "star"];
const DASHES = ["solid", "8px,7px", "2px,5px", "12px,5px,2px,5px"];
const REFERENCES = ["6px,4px", "1.5px,3px", "9px,3px,2px,3px"]; // dashes of the first, second, ... line that results are held against
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const LIGHT = { paper: "#ffffff", card: "#ffffff", ink: "#1b1f24", quiet: "#3d444d", line: "#d8dde3", blue: "#0072b2" };

function asText(text) {
  return String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function isNumber(value) { return typeof value === "number" && Number.isFinite(value); }

function colourOf(colours, place, theme) {
  const colour = colours[place % colours.length];
  return { "#000000": theme.ink, "#0072B2": theme.blue }[colour] || colour; // these two are lost on a dark page
}

function markOf(colours, place) { return MARKS[(place + Math.floor(place / colours.length)) % MARKS.length]; }

function referenceDash(chart, place) {
  const before = chart.series.slice(0, place).filter((one) => one.reference).length;
  return REFERENCES[before % REFERENCES.length];
}

function dashOf(overlap) { return DASHES[overlap.above % DASHES.length]; }

// A line that others lie on is wide, so that it shows on both sides of them.
function widthOf(overlap) { return overlap.below ? (overlap.above ? 4 : 6) : overlap.above ? 2.5 : 2; }

function tinted(colour, share) {
  const part = (from) => parseInt(colour.slice(from, from + 2), 16);
  return `rgba(${part(1)},${part(3)},${part(5)},${share})`;
}

function canBeLog(chart) {
  const values = chart.series.flatMap((one) => one.points.map((point) => point[1]).filter((value) => value !== null));
  return chart.kind !== "timeline" && !chart.percent && values.length > 0 && values.every((value) => value > 0);
}

// What a point is, line by line.
function wordsOf(chart, one, k) {
  const point = one.points[k];
  const number = (value) => (chart.percent ? digits(value * 100) + " %" : digits(value));
  const label = one.labels && one.labels.length ? [one.labels[k]] : [];
  const lines = [];
  if (chart.kind === "timeline") lines.push(`${point[2]}: ${one.name}`, ...label);
  else {
    const range = isNumber(point[2]) && isNumber(point[3]) ? ` [${number(point[2])}, ${number(point[3])}]` : "";
    if (chart.series.length > 1) lines.push(one.name);
    lines.push(...label, (chart.x_label ? chart.x_label + ": " : "") + digits(point[0]), `${chart.y_label}: ${number(point[1])}${range}`);
  }
  return lines.map((line) => asText(shortened(line, 64))).join("<br>");
}

function whiskers(points, colour) {
  const shown = (point) => isNumber(point[2]) && isNumber(point[3]);
  return {
    type: "data", symmetric: false, color: colour, thickness: 1.4, width: 4, visible: points.some(shown),
    array: points.map((point) => (shown(point) ? Math.max(0, point[3] - point[1]) : null)),
    arrayminus: points.map((point) => (shown(point) ? Math.max(0, point[1] - point[2]) : null)),
  };
}

function planeTraces(chart, look) {
  const lines = chart.kind === "line", overlaps = overlapsOf(chart), bands = [], marks = [];
  const fits = (value) => isNumber(value) && (!look.log || value > 0);
  chart.series.forEach((one, place) => {
    if (look.hidden.has(place)) return;
    const colour = one.reference ? look.theme.ink : colourOf(look.colours, place, look.theme), overlap = overlaps[place];
    const kept = one.points.map((_, k) => k).filter((k) => fits(one.points[k][1]) && isNumber(one.points[k][0]) && !(chart.x_log && one.points[k][0] <= 0));
    const points = kept.map((k) => one.points[k]);
    const banded = points.filter((point) => fits(point[2]) && fits(point[3]));
    if (lines && banded.length > 1)
      bands.push({
        type: "scatter", mode: "lines", fill: "toself", fillcolor: tinted(colour, 0.15), line: { width: 0 }, hoverinfo: "skip", showlegend: false,
        x: [...banded.map((point) => point[0]), ...banded.map((point) => point[0]).reverse()],
        y: [...banded.map((point) => point[3]), ...banded.map((point) => point[2]).reverse()],
      });
    const many = points.length > 60;
    marks.push({
      type: "scatter", mode: !lines ? "markers" : many || one.reference ? "lines" : "lines+markers", name: asText(one.name), meta: { place },
      x: points.map((point) => point[0]), y: points.map((point) => point[1]),
      text: kept.map((k) => wordsOf(chart, one, k)), hoverinfo: "text", cliponaxis: false,
      line: { color: colour, width: one.reference ? 1.5 : widthOf(overlap), dash: one.reference ? referenceDash(chart, place) : dashOf(overlap) },
      marker: { color: colour, symbol: markOf(look.colours, place), size: points.length > 300 ? 4.5 : many ? 5.5 : overlap.below ? 9 : 7, opacity: lines ? 1 : 0.8 },
      ...(lines && points.length <= 12 ? { error_y: whiskers(points.map((point) => [point[0], point[1], fits(point[2]) ? point[2] : null, point[3]]), colour) } : {}),
    });
  });
  if (chart.diagonal && marks.length) marks.push(diagonal(marks, look));
  return [...bands, ...marks];
}

function diagonal(traces, look) {
  const all = (axis) => traces.flatMap((trace) => trace[axis]), x = all("x"), y = all("y");
  const least = (values) => values.reduce((a, b) => Math.min(a, b), Infinity), most = (values) => values.reduce((a, b) => Math.max(a, b), -Infinity);
  const low = Math.max(least(x), least(y)), high = Math.min(most(x), most(y));
  const at = low < high ? Array.from({ length: 41 }, (_, k) => (look.log && low > 0 ? low * Math.pow(high / low, k / 40) : low + ((high - low) * k) / 40)) : [];
  return { type: "scatter", mode: "lines", x: at, y: at, hoverinfo: "skip", name: "equal", line: { color: look.theme.quiet, width: 1.2, dash: "5px,4px" } };
}

function barNames(chart) { return [...new Set(chart.series.flatMap((one) => one.points.map((point) => String(point[0]))))]; }

// Bars lie down: names stay readable on a phone.
function barTraces(chart, look) {
  const rows = new Map(barNames(chart).map((name, row) => [name, row]));
  return chart.series.flatMap((one, place) => {
    if (look.hidden.has(place)) return [];
    const kept = one.points.map((_, k) => k).filter((k) => isNumber(one.points[k][1]));
    const points = kept.map((k) => one.points[k]);
    return [{
      type: "bar", orientation: "h", name: asText(one.name), meta: { place }, x: points.map((point) => point[1]), y: points.map((point) => rows.get(String(point[0]))),
      text: kept.map((k) => wordsOf(chart, one, k)), textposition: "none", hoverinfo: "text",
      marker: { color: colourOf(look.colours, place, look.theme) }, error_x: whiskers(points, look.theme.ink),
    }];
  });
}

function laneNames(chart) { return [...new Set(chart.series.flatMap((one) => one.points.map((point) => String(point[2]))))]; }

function timelineTraces(chart, look) {
  const rows = new Map(laneNames(chart).map((name, row) => [name, row]));
  return chart.series.flatMap((one, place) => {
    if (look.hidden.has(place) || !one.points.length) return [];
    const points = one.points, moments = points.every((point) => point[0] === point[1]), colour = colourOf(look.colours, place, look.theme);
    const common = { name: asText(one.name), meta: { place }, y: points.map((point) => rows.get(String(point[2]))), text: points.map((_, k) => wordsOf(chart, one, k)), hoverinfo: "text" };
    if (moments) return [{ ...common, type: "scatter", mode: "markers", x: points.map((point) => point[0]), marker: { color: colour, symbol: "line-ns-open", size: 13, line: { width: 2, color: colour } } }];
    return [{ ...common, type: "bar", orientation: "h", textposition: "none", width: 0.72, base: points.map((point) => point[0]), x: points.map((point) => point[1] - point[0]), marker: { color: colour } }];
  });
}

function tracesOf(chart, look) {
  if (chart.kind === "timeline") return timelineTraces(chart, look);
  return chart.kind === "bars" ? barTraces(chart, look) : planeTraces(chart, look);
}

function heightOf(chart, width) {
  if (chart.kind === "timeline") { const lanes = laneNames(chart).length; return 60 + lanes * (lanes > 20 ? 15 : 21); }
  if (chart.kind === "bars") return 70 + barNames(chart).length * (10 + chart.series.length * (chart.series.length > 3 ? 11 : chart.series.length > 1 ? 14 : 20));
  return Math.round(Math.min(380, Math.max(250, width * 0.62)));
}

function namesOnAxis(names, width, every) {
  const shown = names.map((_, row) => row).filter((row) => row % every === 0);
  const most = Math.max(8, Math.floor((width * 0.34) / 6.4));
  return { tickmode: "array", tickvals: shown, ticktext: shown.map((row) => asText(shortened(names[row], most))), range: [names.length - 0.5, -0.5], showgrid: false, fixedrange: true };
}

function layoutOf(chart, look) {
  const theme = look.theme, lying = chart.kind === "bars" || chart.kind === "timeline";
  const axis = { gridcolor: theme.line, linecolor: theme.line, zerolinecolor: theme.line, automargin: true, fixedrange: look.still, ticks: "", minorloglabels: "complete" };
  const values = { ...axis, type: look.log ? "log" : "linear", tickformat: chart.percent ? "~%" : "", zeroline: chart.kind === "bars", exponentformat: "e" };
  if (isNumber(chart.y_top)) values.autorangeoptions = { clipmax: chart.y_top };
  const places = chart.series.flatMap((one) => one.points.map((point) => point[0]));
  const whole = chart.kind === "line" && !chart.x_log && places.length > 0 && places.every(Number.isInteger);
  const span = whole ? places.reduce((a, b) => Math.max(a, b)) - places.reduce((a, b) => Math.min(a, b)) : 0;
  const title = (text) => ({ text: asText(shortened(text, Math.floor(look.width / 6.5))), font: { size: 12 }, standoff: 8 });
  const layout = {
    width: look.width, height: look.height, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: FONT, size: 11.5, color: theme.quiet },
    showlegend: false, hovermode: "closest", dragmode: look.still ? false : "zoom", barmode: chart.kind === "timeline" ? "overlay" : "group", bargap: 0.25,
    margin: { l: 8, r: 14, t: 26, b: 8 }, hoverlabel: { align: "left", bgcolor: theme.ink, bordercolor: theme.ink, font: { family: FONT, size: 12, color: theme.paper } },
    title: { text: "", x: 0, xref: "container", xanchor: "left", y: 1, yref: "container", yanchor: "top", pad: { t: 4 }, font: { size: 12, color: theme.quiet } },
    xaxis: { ...axis, type: chart.x_log ? "log" : "linear", zeroline: false, title: title(chart.x_label), ...(whole ? { tickformat: ",d", ...(span < 9 ? { dtick: 1 } : {}) } : {}) },
    yaxis: values, shapes: [], separators: ".,",
  };
  if (lying) {
    const names = chart.kind === "bars" ? barNames(chart) : laneNames(chart);
    layout.yaxis = { ...axis, zeroline: false, ...namesOnAxis(names, look.width, chart.kind === "timeline" && names.length > 24 ? 2 : 1) };
    layout.xaxis = chart.kind === "bars" ? values : { ...axis, zeroline: false, rangemode: "tozero", title: title(chart.x_label) };
  }
  const told = chart.title.toLowerCase() === chart.y_label.toLowerCase(); // the heading says it already
  const above = chart.kind === "bars" && chart.x_label ? `${chart.y_label}, by ${chart.x_label}` : told ? "" : chart.y_label;
  layout.title.text = asText(shortened(above, Math.floor(look.width / 6.3)));
  if (!above) layout.margin.t = 8;
  if (isNumber(chart.level)) {
    const [along, across] = chart.kind === "bars" ? ["y", "x"] : ["x", "y"];
    layout.shapes.push({ type: "line", [along + "ref"]: "paper", [along + "0"]: 0, [along + "1"]: 1, [across + "0"]: chart.level, [across + "1"]: chart.level, line: { color: theme.quiet, width: 1.2, dash: "dash" } });
  }
  return layout;
}

// The same chart as a picture to keep: light, with its title, both axis titles and a legend.
function pictureOf(chart, look) {
  const light = { ...look, theme: LIGHT, width: 760, still: true };
  light.height = heightOf(chart, light.width) + 70 + 20 * Math.ceil(chart.series.length / 4);
  const layout = layoutOf(chart, light), data = tracesOf(chart, light);
  layout.paper_bgcolor = layout.plot_bgcolor = "#ffffff";
  layout.margin = { l: 60, r: 24, t: 48, b: 60 };
  layout.title = { text: asText(shortened(chart.title, 90)), x: 0.5, xanchor: "center", font: { size: 15, color: LIGHT.ink } };
  if (chart.kind === "bars") layout.xaxis.title = { text: asText(chart.y_label) };
  else if (chart.y_label) layout.yaxis.title = { text: asText(shortened(chart.y_label, 60)) };
  layout.showlegend = data.filter((trace) => trace.showlegend !== false).length > 1;
  layout.legend = { orientation: "h", x: 0, y: -0.22, yanchor: "top" };
  return { data, layout };
}
