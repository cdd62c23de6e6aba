// The tables of a scenario as plain objects: reading, setting and removing a value at a dotted place.

export function valueAt(tables, path) {
  let place = tables;
  for (const key of path.split(".")) {
    if (place === null || typeof place !== "object") return undefined;
    place = place[key];
  }
  return place;
}

// A text in the place of a plug-in's table is its name; it becomes a table when an option is set.
export function assign(tables, path, value) {
  const keys = path.split("."), last = keys.pop();
  let place = tables;
  for (const key of keys) {
    if (typeof place[key] === "string") place[key] = { name: place[key] };
    if (place[key] === null || typeof place[key] !== "object") place[key] = {};
    place = place[key];
  }
  place[last] = value;
}

export function remove(tables, path) {
  const keys = path.split("."), last = keys.pop();
  const way = [tables];
  for (const key of keys) {
    const next = way[way.length - 1][key];
    if (next === null || typeof next !== "object") return;
    way.push(next);
  }
  delete way[way.length - 1][last];
  for (let k = keys.length; k > 0 && !Object.keys(way[k]).length; k--) delete way[k - 1][keys[k - 1]];
}

export function nameAt(tables, path) {
  const value = valueAt(tables, path);
  return typeof value === "string" ? value : value && value.name;
}
