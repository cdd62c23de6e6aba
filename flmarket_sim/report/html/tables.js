"use strict";
// Tables that sort by a click on a heading, filter by text, and can be saved as CSV. Their first column stays in view.

const FIRST_ROWS = 100; // drawn at once; the rest on demand

function isInterval(cell) { return cell !== null && typeof cell === "object"; }

function cellNumber(cell) {
  if (isInterval(cell)) return cell.mean;
  return typeof cell === "number" ? cell : null;
}

function cellText(cell) {
  if (cell === null || cell === undefined) return "";
  if (isInterval(cell)) {
    if (cell.mean === null) return "";
    return cell.low === null ? digits(cell.mean) : `${digits(cell.mean)} [${digits(cell.low)}, ${digits(cell.high)}]`;
  }
  return typeof cell === "number" ? digits(cell) : String(cell);
}

function compareCells(one, other) {
  const a = cellNumber(one), b = cellNumber(other);
  if (a !== null && b !== null) return a - b;
  if (a !== null) return -1; // numbers before words
  if (b !== null) return 1;
  return cellText(one).localeCompare(cellText(other), "en", { numeric: true });
}

// Every row of the table. An interval has three columns; a text that a spreadsheet would read as a formula begins with an apostrophe.
function csvOf(table) {
  const intervals = table.columns.map((_, k) => table.rows.some((row) => isInterval(row[k])));
  const spread = (cells, parts) => cells.flatMap((cell, k) => (intervals[k] ? parts(cell) : [cell]));
  const quoted = (cell) => {
    if (cell === null || cell === undefined) return "";
    const text = typeof cell === "string" && /^[=+\-@\t\r]/.test(cell) ? "'" + cell : String(cell);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const heads = spread(table.columns, (name) => [name, `${name} low`, `${name} high`]);
  const rows = table.rows.map((row) => spread(row, (cell) => (isInterval(cell) ? [cell.mean, cell.low, cell.high] : [cell, "", ""])));
  return [heads, ...rows].map((cells) => cells.map(quoted).join(",") + "\r\n").join("");
}

function makeTable(parent, table) {
  const node = put(parent, "section", "tabled");
  node.id = "table-" + table.id;
  const head = put(node, "div", "tabled-head");
  if (table.title) put(head, "h3", "", table.title);
  const tools = put(head, "div", "table-tools");
  const filter = table.rows.length > 5 ? put(tools, "input") : null;
  putButton(tools, "CSV", "save this table as CSV", () => saveFile(fileName(table.title || table.id, ".csv"), csvOf(table), "text/csv")).className = "save-csv";
  if (table.note) put(node, "p", "note", table.note);
  const grid = put(put(node, "div", "scroll"), "table");
  const heading = put(put(grid, "thead"), "tr"), body = put(grid, "tbody");
  const numeric = table.columns.map((_, k) => table.rows.some((row) => cellNumber(row[k]) !== null));
  const texts = table.rows.map((row) => row.map(cellText).join("\u0001").toLowerCase());
  let sorted = null, falling = false, most = FIRST_ROWS;

  const more = put(node, "button", "more");
  more.type = "button";
  more.addEventListener("click", () => { most = Infinity; fill(); });

  function fill() {
    const words = filter ? filter.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    let rows = table.rows.filter((_, k) => words.every((word) => texts[k].includes(word)));
    if (sorted !== null) {
      rows = [...rows].sort((a, b) => {
        const empty = (cellText(a[sorted]) === "") - (cellText(b[sorted]) === "");
        return empty || compareCells(a[sorted], b[sorted]) * (falling ? -1 : 1);
      });
    }
    body.replaceChildren();
    for (const row of rows.slice(0, most)) {
      const line = put(body, "tr");
      row.forEach((cell, k) => {
        const box = put(line, "td", numeric[k] ? "number" : "");
        if (isInterval(cell) && cell.mean !== null && cell.low !== null) {
          put(box, "span", "", digits(cell.mean) + " ");
          put(box, "span", "interval", `[${digits(cell.low)}, ${digits(cell.high)}]`);
        } else box.textContent = cellText(cell);
      });
    }
    if (!rows.length) {
      const box = put(put(body, "tr"), "td", "note", "no row matches");
      box.colSpan = table.columns.length;
    }
    more.hidden = rows.length <= most;
    more.textContent = `show all ${rows.length} rows`;
  }

  const buttons = table.columns.map((name, k) => {
    const box = put(heading, "th", numeric[k] ? "number" : "");
    box.scope = "col";
    const button = put(box, "button", "", name);
    button.type = "button";
    button.addEventListener("click", () => {
      falling = sorted === k ? !falling : numeric[k];
      sorted = k;
      buttons.forEach((other, place) => {
        other.parentNode.setAttribute("aria-sort", place !== k ? "none" : falling ? "descending" : "ascending");
        other.textContent = table.columns[place] + (place !== k ? "" : falling ? " ↓" : " ↑");
      });
      fill();
    });
    return button;
  });
  if (filter) {
    filter.type = "search";
    filter.placeholder = "filter rows";
    filter.setAttribute("aria-label", `filter the rows of ${table.title || "the table"}`);
    filter.addEventListener("input", fill);
  }
  fill();
  return node;
}
