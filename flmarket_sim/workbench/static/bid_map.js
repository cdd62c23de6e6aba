// The bids of a small market as points: the chosen owner's can be dragged, or moved with the arrow keys.

const WIDTH = 640, HEIGHT = 380, LEFT = 58, RIGHT = 16, TOP = 14, BOTTOM = 44;

export class BidMap {
  // `moved({asks, privacy_budget})` is called with factors of the owner's truth, `chose(i)` with another owner.
  constructor(parent, moved, chose) {
    this.moved = moved;
    this.chose = chose;
    this.svg = putSvg(parent, "svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: "bids", role: "group", "aria-label": "bids of all owners" });
    this.drag = null;
    this.svg.addEventListener("pointermove", (event) => { if (this.drag !== null) this.follow(event); });
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) this.svg.addEventListener(end, () => { this.drag = null; this.svg.classList.remove("dragging"); });
  }

  draw(market, setting) {
    this.market = market;
    this.setting = setting;
    const prices = market.owners.map((one) => one.value / one.data_size), budgets = market.owners.map((one) => one.privacy_budget);
    if (this.drag === null || !this.top) { this.most = Math.max(...budgets) * 1.08; this.top = Math.max(...prices) * 1.9; }
    const node = this.svg;
    const focused = document.activeElement && document.activeElement.classList.contains("mine") && node.contains(document.activeElement);
    node.replaceChildren();
    this.axes(node);
    const largest = Math.max(...market.owners.map((one) => one.data_size));
    market.owners.forEach((one, i) => {
      if (i === setting.owner) return;
      const sells = market.report.privacy_loss[i] > 0;
      const dot = putSvg(node, "circle", { cx: this.x(one.privacy_budget), cy: this.y(prices[i]), r: radius(one.data_size, largest), class: sells ? "bid sells" : "bid", tabindex: 0, role: "button", "aria-label": `choose owner ${i}` });
      putSvg(dot, "title", {}).textContent = `owner ${i}, ${one.family}: ${digits(one.data_size)} records, ${sells ? "sells" : "sells nothing"}`;
      dot.addEventListener("click", () => this.chose(i));
      dot.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); this.chose(i); } });
    });
    const her = market.owners[setting.owner], price = prices[setting.owner];
    const x = this.x(her.privacy_budget * setting.privacy_budget), y = this.y(Math.min(this.top, price * setting.asks));
    putSvg(node, "line", { x1: this.x(her.privacy_budget), y1: this.y(price), x2: x, y2: y, class: "pull" });
    const honest = putSvg(node, "circle", { cx: this.x(her.privacy_budget), cy: this.y(price), r: 6, class: "honest" });
    putSvg(honest, "title", {}).textContent = "her truth";
    const sells = market.report.privacy_loss[setting.owner] > 0;
    const mine = putSvg(node, "circle", { cx: x, cy: y, r: Math.max(11, radius(her.data_size * setting.data_size, largest)), class: sells ? "mine sells" : "mine", tabindex: 0, role: "slider", "aria-label": `bid of owner ${setting.owner}: drag it, or use the arrow keys`, "aria-valuenow": setting.asks.toFixed(2), "aria-valuetext": `asks ${digits(setting.asks)} times her truth, offers ${digits(setting.privacy_budget)} of her privacy budget` });
    mine.addEventListener("pointerdown", (event) => { event.preventDefault(); this.drag = event.pointerId; this.svg.setPointerCapture(event.pointerId); this.svg.classList.add("dragging"); });
    mine.addEventListener("keydown", (event) => this.key(event));
    if (focused) mine.focus();
  }

  axes(node) {
    for (const value of roundNumbers(this.top)) {
      const y = this.y(value);
      putSvg(node, "line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "grid" });
      putSvg(node, "text", { x: LEFT - 8, y: y + 4, class: "tick end" }).textContent = digits(value);
    }
    for (const value of roundNumbers(this.most)) putSvg(node, "text", { x: this.x(value), y: HEIGHT - BOTTOM + 18, class: "tick mid" }).textContent = digits(value);
    putSvg(node, "text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 6, class: "axis mid" }).textContent = "privacy budget offered";
    putSvg(node, "text", { x: 14, y: (HEIGHT - BOTTOM) / 2, class: "axis mid", transform: `rotate(-90 14 ${(HEIGHT - BOTTOM) / 2})` }).textContent = "money asked for a record";
  }

  x(budget) { return LEFT + (budget / this.most) * (WIDTH - LEFT - RIGHT); }
  y(price) { return HEIGHT - BOTTOM - (price / this.top) * (HEIGHT - BOTTOM - TOP); }

  follow(event) {
    const box = this.svg.getBoundingClientRect(), her = this.market.owners[this.setting.owner];
    const x = ((event.clientX - box.left) / box.width) * WIDTH, y = ((event.clientY - box.top) / box.height) * HEIGHT;
    const budget = ((x - LEFT) / (WIDTH - LEFT - RIGHT)) * this.most, price = ((HEIGHT - BOTTOM - y) / (HEIGHT - BOTTOM - TOP)) * this.top;
    this.moved({ asks: within(price / (her.value / her.data_size), 0.05, 5), privacy_budget: within(budget / her.privacy_budget, 0.05, 1) });
  }

  key(event) {
    const steps = { ArrowUp: [1.05, 1], ArrowDown: [1 / 1.05, 1], ArrowRight: [1, 1.05], ArrowLeft: [1, 1 / 1.05] }[event.key];
    if (!steps) return;
    event.preventDefault();
    this.moved({ asks: within(this.setting.asks * steps[0], 0.05, 5), privacy_budget: within(this.setting.privacy_budget * steps[1], 0.05, 1) });
  }
}

function within(value, least, most) { return Math.min(most, Math.max(least, value)); }
function radius(size, largest) { return 4 + 11 * Math.sqrt(size / largest); }

function roundNumbers(most) {
  const power = 10 ** Math.floor(Math.log10(most / 4)), step = [1, 2, 5, 10].map((times) => times * power).find((one) => one >= most / 5);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, k) => Number((k * step).toPrecision(6)));
}
