// Chains of many steps: a strip with the colour of each, a search of their words, and folds over what
// stands between the steps that have the most to show. Without scripts every step is shown.
"use strict";

const MANY_STEPS = 60;
const STRONGEST = 20;
const ENDS = 4;

// A row above `list` to find steps by, or nothing where there are few. `strengths` gives a number for
// each step: how much it has to show, or null where it was not measured.
function overview(list, strengths) {
  const all = [...list.children];
  if (all.length <= MANY_STEPS) return "";
  const element = (tag, css, text) => {
    const made = document.createElement(tag);
    if (css) made.className = css;
    if (text) made.textContent = text;
    return made;
  };
  const strip = element("canvas", "strip");
  const find = element("input");
  const whole = element("button", "", "Show all steps");
  const said = element("span", "quiet");
  const measured = () => strengths().filter((s) => s !== null).length;
  strip.setAttribute("role", "img");
  strip.setAttribute("aria-label", `The colours of ${all.length} steps, from the first to the last`);
  strip.title = "Every step by its colour, with a tick if it was measured; a click shows the step";
  Object.assign(find, { type: "search", placeholder: "words of a step" });
  find.setAttribute("aria-label", "find steps by their words");
  whole.type = "button";

  function show(shown) {
    for (const fold of list.querySelectorAll(":scope > .fold")) fold.remove();
    for (let k = 0; k < all.length; k++) {
      all[k].hidden = !shown.has(k);
      if (shown.has(k)) continue;
      const first = k;
      while (k + 1 < all.length && !shown.has(k + 1)) all[++k].hidden = true;
      const last = k;
      const fold = element("li", "fold");
      const open = element("button", "", first === last ? `step ${first + 1}` : `steps ${first + 1} to ${last + 1}`);
      open.type = "button";
      open.addEventListener("click", () => {
        for (let i = first; i <= last; i++) all[i].hidden = false;
        fold.remove();
      });
      fold.append(open);
      all[first].before(fold);
    }
  }

  // the strongest of the measured steps, each with the one before it, and both ends
  function chosen() {
    const by = strengths().map((s, k) => [s, k]).filter(([s]) => s !== null);
    by.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
    const shown = new Set(by.slice(0, STRONGEST).flatMap(([, k]) => (k ? [k - 1, k] : [k])));
    for (let k = 0; k < ENDS; k++) shown.add(k).add(all.length - 1 - k);
    return shown;
  }

  function say() {
    const words = find.value.trim().toLowerCase();
    if (!words) {
      show(chosen());
      const most = Math.max(...strengths().map((s) => s ?? 0), 0) > 0 ? "those with the most to show" : "all of these are 0; some of them";
      said.textContent = `${all.length} steps, ${measured()} measured: ${most}, and both ends`;
      return;
    }
    const found = new Set([...all.keys()].filter((k) => all[k].textContent.toLowerCase().includes(words)));
    show(found);
    said.textContent = `${found.size} of ${all.length} steps`;
  }

  function paint() {
    const [width, height] = [strip.clientWidth, strip.clientHeight];
    if (!width) return;
    const sharp = window.devicePixelRatio || 1;
    [strip.width, strip.height] = [width * sharp, height * sharp];
    const drawn = strip.getContext("2d");
    const each = strip.width / all.length;
    const ink = getComputedStyle(strip).color;
    const measured = strengths();
    all.forEach((li, k) => {
      const at = [k * each, 0, Math.max(each, 1)];
      drawn.fillStyle = getComputedStyle(li.querySelector("details, .plain") ?? li).backgroundColor;
      drawn.fillRect(...at, strip.height);
      // a tick says that the step was measured, whatever its colour
      drawn.fillStyle = ink;
      if (measured[k] !== null) drawn.fillRect(...at, 3 * sharp);
    });
  }

  strip.addEventListener("click", (event) => {
    const at = Math.floor((event.offsetX / strip.clientWidth) * all.length);
    const step = all[Math.max(0, Math.min(all.length - 1, at))];
    if (step.hidden) show(new Set([...all.keys()].filter((k) => !all[k].hidden || Math.abs(k - at) < ENDS)));
    step.scrollIntoView({ block: "center" });
    step.classList.add("found");
    setTimeout(() => step.classList.remove("found"), 2000);
  });
  find.addEventListener("input", say);
  whole.addEventListener("click", () => {
    show(new Set(all.keys()));
    said.textContent = `all ${all.length} steps`;
  });
  list.addEventListener("marked", () => { say(); paint(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
  new ResizeObserver(paint).observe(strip);
  say();
  const row = element("div", "overview");
  row.append(strip, find, whole, said);
  return row;
}

// How much a step has to show, by the level of its mark; null where it was not tested.
const LEVELS = { "level-all": 2, "level-some": 1, "level-none": 0 };

function levelOf(step) {
  const level = [...step.firstElementChild.classList].find((name) => name in LEVELS);
  return level ? LEVELS[level] : null;
}

// Rows above all chains of many marked steps within `root`.
function overviews(root) {
  for (const list of root.querySelectorAll(".steps")) {
    const steps = [...list.children];
    list.before(overview(list, () => steps.map(levelOf)));
  }
}
