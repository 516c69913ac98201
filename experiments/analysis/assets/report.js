// Tables sort on a click on their heading; without scripts they are plain tables.
"use strict";

function comparable(cell) {
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const value = Number(text.replace(/^(-?)inf$/, "$1Infinity"));
  return text === "" || Number.isNaN(value) ? text : value;
}

function compare(left, right) {
  const missing = (value) => value === "" || value === "nan";
  if (missing(left) || missing(right)) return missing(left) - missing(right);
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), "en", { numeric: true });
}

function sortBy(table, heading, place) {
  const falling = heading.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falling ? "descending" : "ascending");
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row) => [comparable(row.cells[place]), row]);
  keyed.sort((a, b) => compare(a[0], b[0]) * (falling ? -1 : 1));
  body.append(...keyed.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => sortBy(table, heading, place));
  });
}

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.printed:not([open])")];
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});
