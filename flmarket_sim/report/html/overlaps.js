"use strict";
// Which series of a chart lie on top of each other, so that a drawing can tell them apart.

const CLOSE = 0.01; // of the height of the chart
const OFTEN = 0.25; // of the points that two series have in common

function samePoints(one, other) {
  return one.points.length > 0 && JSON.stringify(one.points) === JSON.stringify(other.points);
}

function liesOn(one, other, height) {
  const at = new Map(other.points.map((point) => [point[0], point[1]]));
  const common = one.points.filter((point) => typeof at.get(point[0]) === "number" && typeof point[1] === "number");
  const close = common.filter((point) => Math.abs(point[1] - at.get(point[0])) <= CLOSE * height);
  return common.length > 0 && close.length >= OFTEN * common.length;
}

// For each series: `same`, the place of an earlier series with the same points, or null; `above`, on how many earlier series it lies; and
// `below`, on whether a later one lies on it.
function overlapsOf(chart) {
  const values = chart.series.flatMap((one) => one.points.map((point) => point[1])).filter((value) => typeof value === "number");
  let low = Infinity, high = -Infinity;
  for (const value of values) { if (value < low) low = value; if (value > high) high = value; }
  const found = chart.series.map(() => ({ same: null, above: 0, below: false }));
  if (chart.kind === "timeline") return found;
  chart.series.forEach((one, place) => {
    for (let earlier = 0; earlier < place; earlier++) {
      const other = chart.series[earlier];
      if (found[place].same === null && samePoints(one, other)) found[place].same = earlier;
      if (chart.kind === "line" && liesOn(one, other, high - low)) {
        found[place].above = Math.max(found[place].above, found[earlier].above + 1);
        found[earlier].below = true;
      }
    }
  });
  return found;
}
