"use strict";
// Elements, numbers as text, and files to download. Whatever came from a scenario enters by textContent alone.

const SVG = "http://www.w3.org/2000/svg";

function put(parent, name, className, text) {
  const node = document.createElement(name);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function putSvg(parent, name, attributes) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  parent.appendChild(node);
  return node;
}

function putButton(parent, text, title, act) {
  const button = put(parent, "button", "", text);
  button.type = "button";
  button.title = title;
  button.addEventListener("click", act);
  return button;
}

function shortened(text, most) {
  return text.length > most ? text.slice(0, Math.max(1, most - 1)) + "…" : text;
}

function digits(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e7) return size < 1e4 ? String(value) : value.toLocaleString("en-US");
  if (size >= 1e7 || size < 1e-4) return value.toExponential(2).replace("e+", "e");
  if (size >= 1000) return value.toLocaleString("en-US", { maximumFractionDigits: 0 });
  return String(Number(value.toPrecision(4)));
}

// A name for a file: letters, digits and hyphens of the text.
function fileName(text, suffix) {
  return (text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) || "flmarket") + suffix;
}

function saveFile(name, content, type) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  document.body.appendChild(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}
