// A click on a heading sorts its table, and a choice of edit marks steps by that edit. Without scripts
// tables stay as they are, and steps keep their marks.
"use strict";

function comparable(cell) {
  const text = cell.dataset.sort ?? cell.textContent.trim();
  const value = Number(text.replace(/^(-?)inf$/, "$1Infinity"));
  return text === "" || Number.isNaN(value) ? text : value;
}

function compare(left, right) {
  const missing = (value) => value === "" || value === "–";
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

// Steps can be marked by another edit than the default one.
function markBy(steps, word) {
  const meaning = {};
  for (const item of document.querySelectorAll(".legend .swatch")) {
    const level = [...item.classList].find((name) => name.startsWith("level-"));
    meaning[level] = item.parentElement.textContent.replace(item.textContent, "").trim();
  }
  for (const details of steps.querySelectorAll("details")) {
    const mark = details.querySelector(`.marks [data-word="${word}"]`);
    const level = `level-${mark ? mark.dataset.level : "unknown"}`;
    details.className = level;
    details.querySelector(".sign").textContent = mark ? mark.dataset.sign : "·";
    details.querySelector(".meaning").textContent = meaning[level];
    details.firstElementChild.title = `${word}: ${meaning[level]}`;
  }
  steps.dispatchEvent(new Event("marked"));
}

overviews(document);

for (const line of document.querySelectorAll(".marked-by")) {
  const steps = line.parentElement.querySelector(".steps");
  const by = line.querySelector(".by");
  // the edit that steps are marked by is a choice even where it marks none
  const words = new Set([...steps.querySelectorAll("[data-word]")].map((m) => m.dataset.word)).add(by.textContent);
  if (words.size < 2) continue;
  const choice = document.createElement("select");
  choice.setAttribute("aria-label", "the edit that steps are marked by");
  for (const word of words) choice.add(new Option(word, word, false, word === by.textContent));
  by.replaceWith(choice);
  choice.addEventListener("change", () => markBy(steps, choice.value));
}

// The list of sections marks the one that is read.
const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
const seen = new Set();
const watcher = new IntersectionObserver((changes) => {
  for (const { target, isIntersecting } of changes) seen[isIntersecting ? "add" : "delete"](target.id);
  const current = [...links.keys()].find((name) => seen.has(name));
  if (!current) return;
  for (const [name, link] of links) {
    if (name === current) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}, { rootMargin: "-10% 0px -60% 0px" });
for (const section of document.querySelectorAll("main > section")) watcher.observe(section);

let opened = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll("details.printed:not([open])")];
  for (const details of opened) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of opened) details.open = false;
});
