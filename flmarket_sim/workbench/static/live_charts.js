// The figures of a run while it goes on: the same charts as on its report page, from the rounds so far.

const MOST = 2000; // points of a line
const KINDS = [
  { id: "accuracy", title: "Accuracy", y: "test accuracy", percent: true, lines: [["accuracy", "accuracy"]] },
  { id: "error-by-round", title: "Error by round", y: "error bound", log: true, lines: [["error_bound", ""]] },
  { id: "money", title: "Money by round", y: "money", lines: [["spent", "spent"], ["budget", "budget"]] },
  { id: "privacy", title: "Privacy sold by round", y: "sum of privacy losses", lines: [["privacy_sold", ""]] },
];

export class LiveCharts {
  constructor(parent, colours) {
    this.parent = parent;
    this.colours = colours;
    this.series = new Map(); // "chart|buyer|column" -> points
    this.figures = new Map();
    this.buyers = [];
  }

  // `guess` is the accuracy of the constant guess, where it is known.
  add(rounds, guess) {
    this.guess = guess;
    for (const row of rounds) {
      if (!this.buyers.includes(row.buyer)) this.buyers.push(row.buyer);
      for (const kind of KINDS) for (const [column] of kind.lines) {
        const value = row[column];
        if (value === null || value === undefined || (column === "error_bound" && !row.valid)) continue;
        const key = `${kind.id}|${row.buyer}|${column}`;
        if (!this.series.has(key)) this.series.set(key, []);
        this.series.get(key).push([row.round + 1, value]);
      }
    }
    for (const [key, points] of this.series) if (points.length > 2 * MOST) this.series.set(key, points.filter((_, k) => k % 2 === 0 || k === points.length - 1));
    for (const kind of KINDS) this.draw(kind);
  }

  draw(kind) {
    const series = [];
    for (const [column, word] of kind.lines) for (const buyer of this.buyers) {
      const points = this.series.get(`${kind.id}|${buyer}|${column}`);
      if (points) series.push({ name: this.buyers.length > 1 ? (word ? `${buyer}: ${word}` : buyer) : word || kind.title.toLowerCase(), points, labels: [] });
    }
    if (!series.length) return;
    const ends = series.flatMap((one) => [one.points[0][0], one.points[one.points.length - 1][0]]);
    if (kind.id === "accuracy" && this.guess) series.push({ name: "constant guess", points: [[Math.min(...ends), this.guess], [Math.max(...ends), this.guess]], labels: [] });
    const chart = { id: kind.id, title: kind.title, kind: "line", x_label: "round", y_label: kind.y, series, note: "", x_log: false, y_log: Boolean(kind.log), percent: Boolean(kind.percent), diagonal: false };
    const figure = this.figures.get(kind.id);
    if (figure) updateFigure(figure, chart);
    else { const made = figureOf(chart, this.colours); this.figures.set(kind.id, made); this.parent.appendChild(made); }
  }
}
