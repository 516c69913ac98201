// The traces of a comparison: filters, measures against measures, two measures, a list, one trace or
// two side by side. Texts from runs are inserted as text; HTML comes only from the report's template,
// which escapes them.
"use strict";
(() => {
const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("overview").textContent);
const N = data.item.length;
const FEWEST = 5;
const names = data.measures.map((m) => m.name);
const turned = data.measures.map((m, i) => oriented(data.values[i], m.higher));
const SHAPES = ["●", "■", "▲", "◆"];
const state = { x: 0, y: Math.min(1, names.length - 1), open: null, beside: null, kept: null, area: null, limit: 100, at: null };
let shown = [];
let isShown = new Uint8Array(N);

function oriented(values, higher) {
  return Float64Array.from(values, (v) => (v === null ? NaN : higher ? v : -v));
}

function make(tag, text, css, ...inside) {
  const element = document.createElement(tag);
  if (text !== undefined && text !== null) element.textContent = text;
  if (css) element.className = css;
  element.append(...inside);
  return element;
}

function heading(text, css, ...inside) {
  const th = make("th", text, css, ...inside);
  th.scope = "col";
  return th;
}

const part = (title, ...inside) => make("div", null, "", make("h4", title), ...inside);

function number(v, digits = 3) {
  if (v === null || v === undefined || Number.isNaN(v)) return "–";
  return Number(v.toPrecision(digits)).toString().replace("-", "−");
}

function signed(v) {
  return (v < 0 ? "−" : "+") + Math.abs(v).toFixed(2);
}

// ---- colours

// The canvas of a plot takes the page's colours as they are now; cells and texts follow by themselves.
let ink, quiet, line, series;
function readColours() {
  const css = getComputedStyle(document.documentElement);
  const read = (name) => css.getPropertyValue(`--${name}`).trim();
  [ink, quiet, line] = ["ink", "quiet", "line"].map(read);
  series = [1, 2, 3, 4, 5, 6, 7].map((k) => read(`plot-${k}`));
}

// The colour of a number from -1 to 1, between the page's colours of the ends and of 0.
const between = (low, zero, high) => (v) =>
  Number.isNaN(v) ? "" : `color-mix(in srgb, var(--${v < 0 ? low : high}) ${Math.round(100 * Math.min(1, Math.abs(v)))}%, var(--${zero}))`;
const colour = between("negative-ground", "card", "positive-ground");
const useColour = between("against-ground", "ignored-ground", "used-ground");

// ---- rank correlation, computed as in the report

const setting = (() => {
  const codes = new Map();
  return Int32Array.from({ length: N }, (_, i) => {
    const key = `${data.model.of[i]} ${data.task.of[i]}`;
    if (!codes.has(key)) codes.set(key, codes.size);
    return codes.get(key);
  });
})();
const together = new Int32Array(N);
const orders = new Map();

// Traces sorted by stratum, then by a measure; cached.
function orderOf(m, strata, kind) {
  const key = `${kind} ${m}`;
  if (!orders.has(key)) {
    const v = turned[m];
    const order = Array.from({ length: N }, (_, i) => i).filter((i) => !Number.isNaN(v[i]));
    orders.set(key, Int32Array.from(order.sort((a, b) => strata[a] - strata[b] || v[a] - v[b])));
  }
  return orders.get(key);
}

// Ranks inside strata of the traces in `both`; ties share their middle rank.
function rank(order, v, strata, both, into) {
  const n = order.length;
  let place = 0;
  let stratum = -1;
  for (let k = 0; k < n; ) {
    const i = order[k];
    if (!both[i]) { k++; continue; }
    if (strata[i] !== stratum) { stratum = strata[i]; place = 0; }
    let end = k;
    let ties = 0;
    for (; end < n && strata[order[end]] === stratum && (!both[order[end]] || v[order[end]] === v[i]); end++)
      ties += both[order[end]];
    for (let j = k; j < end; j++) if (both[order[j]]) into[order[j]] = place + (ties + 1) / 2;
    place += ties;
    k = end;
  }
}

const rankA = new Float64Array(N);
const rankB = new Float64Array(N);
const both = new Uint8Array(N);
const sums = new Float64Array(6 * (1 + Math.max(0, ...setting)));
function correlation(a, b, kind) {
  const strata = kind === "within" ? setting : together;
  const [va, vb] = [turned[a], turned[b]];
  let n = 0;
  both.fill(0);
  for (const i of shown) if (!Number.isNaN(va[i]) && !Number.isNaN(vb[i])) { both[i] = 1; n++; }
  if (n < FEWEST) return { rho: NaN, n };
  rank(orderOf(a, strata, kind), va, strata, both, rankA);
  rank(orderOf(b, strata, kind), vb, strata, both, rankB);
  sums.fill(0);
  for (const i of shown) {
    if (!both[i]) continue;
    const at = 6 * strata[i];
    const [x, y] = [rankA[i], rankB[i]];
    sums[at]++; sums[at + 1] += x; sums[at + 2] += y;
    sums[at + 3] += x * y; sums[at + 4] += x * x; sums[at + 5] += y * y;
  }
  let [above, left, right] = [0, 0, 0];
  for (let at = 0; at < sums.length; at += 6) {
    const k = sums[at];
    if (!k) continue;
    const of_a = sums[at + 4] - sums[at + 1] ** 2 / k;
    const of_b = sums[at + 5] - sums[at + 2] ** 2 / k;
    if (of_a < 1e-9 || of_b < 1e-9) continue;
    // ranks as shares of a stratum
    above += (sums[at + 3] - (sums[at + 1] * sums[at + 2]) / k) / k ** 2;
    left += of_a / k ** 2;
    right += of_b / k ** 2;
  }
  const under = Math.sqrt(left * right);
  return { rho: under > 0 ? above / under : NaN, n };
}

// ---- a table of coloured cells, moved in with the arrow keys

// A row of its own names each group; cells of a row with itself are empty where `self` is false.
function cells({ rows, columns, groups, rowNotes, tall, label, choose, say, numbers, self = true }) {
  const table = make("table", null, `cells${tall ? " tall" : ""}${numbers ? " numbers" : ""}`);
  table.setAttribute("role", "grid");
  table.setAttribute("aria-label", label);
  table.createTHead().insertRow().append(make("th"), ...columns.map((name) => {
    const th = heading(null, "", make("span", name));
    th.title = name;
    return th;
  }));
  const body = table.createTBody();
  const grid = rows.map((name, i) => {
    if (groups && groups[i] !== groups[i - 1]) {
      const th = make("th", groups[i], "group");
      th.colSpan = 1 + columns.length;
      body.insertRow().append(th);
    }
    const tr = body.insertRow();
    const th = make("th", name);
    th.scope = "row";
    th.title = name;
    if (rowNotes) th.append(make("span", ` ${rowNotes[i]}`, "family"));
    tr.append(th);
    return columns.map((_, j) => {
      const td = tr.insertCell();
      td.tabIndex = i + j ? -1 : 0;
      td.dataset.at = `${i} ${j}`;
      if (!self && i === j) td.className = "self";
      return td;
    });
  });
  const place = (event) => event.target.closest?.("td")?.dataset.at?.split(" ").map(Number);
  const told = (event) => { const at = place(event); if (at && say) say(...at); };
  table.addEventListener("mouseover", told);
  table.addEventListener("focusin", (event) => {
    told(event);
    const at = place(event);
    if (!at) return;
    for (const td of table.querySelectorAll('td[tabindex="0"]')) td.tabIndex = -1;
    grid[at[0]][at[1]].tabIndex = 0;
  });
  table.addEventListener("click", (event) => { const at = place(event); if (at && choose) choose(...at); });
  table.addEventListener("keydown", (event) => {
    const at = place(event);
    if (!at) return;
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (step) {
      grid[at[0] + step[0]]?.[at[1] + step[1]]?.focus();
      event.preventDefault();
    } else if ((event.key === "Enter" || event.key === " ") && choose) {
      choose(...at);
      event.preventDefault();
    }
  });
  return { table, grid };
}

// ---- measures against measures

let rho = names.map(() => new Array(names.length));
const heat = cells({
  rows: names,
  columns: names,
  groups: data.measures.map((m) => m.family),
  self: false,
  tall: true,
  numbers: names.length <= 14,
  label: "Rank correlation of measures",
  say: (i, j) => { byId("agreement-said").textContent = inWords(i, j); },
  choose: (i, j) => { if (i === j) return; [state.x, state.y] = [i, j]; state.area = null; choosePair(); },
});
byId("agreement").append(heat.table);

function inWords(i, j) {
  const of = rho[i][j];
  if (i === j) return `${names[i]}: measured on ${of?.n ?? 0} traces`;
  if (!of) return `${names[i]} and ${names[j]}`;
  const value = Number.isNaN(of.rho) ? "inconclusive" : `ρ = ${signed(of.rho)}`;
  return `${names[i]} and ${names[j]}: ${value}, ${of.n} traces`;
}

// Computed in slices, so that the page stays responsive; a later call ends an earlier one.
let drawing = 0;
async function drawAgreement() {
  const mine = ++drawing;
  delete byId("agreement").dataset.of;
  const kind = byId("strata").value;
  const next = names.map(() => new Array(names.length));
  let began = performance.now();
  for (let i = 0; i < names.length; i++) {
    for (let j = 0; j <= i; j++) next[i][j] = next[j][i] = i === j ? { rho: 1, n: measured(i) } : correlation(i, j, kind);
    if (performance.now() - began < 20) continue;
    await new Promise((done) => setTimeout(done));
    if (mine !== drawing) return;
    began = performance.now();
  }
  rho = next;
  paintAgreement();
  drawPairWords();
}

function measured(m) {
  let n = 0;
  for (const i of shown) n += !Number.isNaN(turned[m][i]);
  return n;
}

function paintAgreement() {
  const withNumbers = names.length <= 14;
  byId("agreement").dataset.of = shown.length;
  for (let i = 0; i < names.length; i++) {
    for (let j = 0; j < names.length; j++) {
      const td = heat.grid[i][j];
      if (i === j) { td.setAttribute("aria-label", names[i]); continue; }
      td.style.backgroundColor = colour(rho[i][j].rho);
      td.setAttribute("aria-label", inWords(i, j));
      if (withNumbers) td.textContent = Number.isNaN(rho[i][j].rho) ? "" : signed(rho[i][j].rho);
    }
  }
}

// ---- filters

function fill(select, options, first) {
  select.replaceChildren();
  if (first) select.append(new Option(first, ""));
  for (const [value, text] of options) select.append(new Option(text, value));
  select.disabled = options.length < (first ? 1 : 2);
}

const taskNames = new Map();
for (let i = 0; i < N; i++) {
  const [d, t] = [data.dataset.of[i], data.task.of[i]];
  const [dataset, task] = [data.dataset.names[d], data.task.names[t]];
  taskNames.set(`${d} ${t}`, dataset === task || !task ? dataset || "unknown" : `${dataset} · ${task}`);
}
fill(byId("task"), [...taskNames], "any");
fill(byId("model"), data.model.names.map((name, i) => [i, name || "unknown"]), "any");
fill(byId("outcome"), [["1", "right"], ["0", "wrong"], ["", "unknown"]].map(([v, t]) => [`o${v}`, t]), "any");
fill(byId("label"), data.labels.flatMap((label, i) => [1, 0].map((v) => [`${i} ${v}`, `${label.name} is ${v}`])), "any");
fill(byId("kind"), data.kinds.map((kind, i) => [i, kind.words]), "any traces");

const kindOf = () => data.kinds[byId("kind").value] ?? null;
function gapOf(kind, i) {
  const [up, down] = [data.sides[kind.faithful][i], data.sides[kind.unfaithful][i]];
  return up !== null && down !== null && up > 0.5 && down < 0.5 ? up - down : null;
}

function filtered() {
  const [task, model, outcome, label] = ["task", "model", "outcome", "label"].map((id) => byId(id).value);
  const [labelAt, labelIs] = label ? label.split(" ").map(Number) : [];
  const part = byId("search").value.trim().toLowerCase();
  const kind = kindOf();
  const kept = [];
  for (let i = 0; i < N; i++) {
    if (task && task !== `${data.dataset.of[i]} ${data.task.of[i]}`) continue;
    if (model && Number(model) !== data.model.of[i]) continue;
    if (outcome && outcome !== `o${data.correct[i] ?? ""}`) continue;
    if (label && data.label_values[labelAt][i] !== labelIs) continue;
    if (part && !data.item[i].toLowerCase().includes(part)) continue;
    if (kind && gapOf(kind, i) === null) continue;
    kept.push(i);
  }
  return kept;
}

// Draws the scatter, the list and the count at once, and the heat map after them.
let pending = 0;
function update() {
  shown = filtered();
  isShown.fill(0);
  for (const i of shown) isShown[i] = 1;
  byId("count").textContent = `${shown.length.toLocaleString("en")} of ${N.toLocaleString("en")} traces`;
  state.limit = 100;
  state.area = null;
  drawPair();
  drawList();
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(drawAgreement);
  remember();
}

// ---- two measures

const inPair = () => shown.filter((i) => !Number.isNaN(turned[state.x][i]) && !Number.isNaN(turned[state.y][i]));
function groups() {
  const by = byId("colour").value;
  if (by === "none") return { names: ["traces"], of: () => 0 };
  if (by === "outcome") {
    const words = ["right", "wrong", "outcome unknown"];
    return { names: words, of: (i) => (data.correct[i] === 1 ? 0 : data.correct[i] === 0 ? 1 : 2) };
  }
  if (by === "model" || by === "task") {
    const of = data[by];
    return { names: of.names.map((n) => n || "unknown"), of: (i) => of.of[i] };
  }
  const at = Number(by);
  const label = data.labels[at].name;
  const words = [`${label} is 1`, `${label} is 0`, "no label"];
  return { names: words, of: (i) => (data.label_values[at][i] === 1 ? 0 : data.label_values[at][i] === 0 ? 1 : 2) };
}
const colourOf = (k) => series[Math.min(k, series.length - 1)];
const shapeOf = (k) => SHAPES[k % SHAPES.length];

let plot = null;
let points = [];
const INTEGERS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const axis = (label) => ({ label: label.length > 48 ? `${label.slice(0, 47)}…` : label, stroke: ink, labelSize: 24, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } });
// The width of an axis, by its longest number.
const upright = (label) => ({ ...axis(label), size: (_, numbers) => 22 + 7 * Math.max(4, ...(numbers ?? []).map((text) => text.length)) });
const valueOf = (m, i) => data.values[m][i];

function drawPair() {
  if (!names.length) return;
  const host = byId("plot");
  points = inPair().sort((a, b) => turned[state.x][a] - turned[state.x][b]);
  const group = groups();
  const used = [...new Set(points.map(group.of))].sort((a, b) => a - b);
  byId("key").replaceChildren(...(group.names.length > 1 ? used : []).map((k) => {
    const sign = make("span", shapeOf(k));
    sign.style.color = colourOf(k);
    return make("li", null, "", sign, ` ${group.names[k]}`);
  }));
  plot?.destroy();
  const width = host.clientWidth || 480;
  const column = (m) => points.map((i) => valueOf(m, i));
  const range = (u, low, high) => {
    if (low === null || !Number.isFinite(low)) return [0, 1];
    const room = (high - low || Math.abs(high) || 1) * 0.05;
    return [low - room, high + room];
  };
  plot = new uPlot({
    mode: 2,
    width,
    height: 400,
    legend: { show: false },
    // right and up mean more faithful, as in rho and the heat map
    scales: { x: { time: false, range, dir: direction(state.x) }, y: { range, dir: direction(state.y) } },
    axes: [axis(axisName(state.x)), upright(axisName(state.y))],
    series: [{}, { facets: [{ scale: "x", auto: true }, { scale: "y", auto: true }], paths: () => null, points: { show: false } }],
    cursor: { drag: { x: true, y: true, uni: 8, setScale: false }, points: { show: false }, dataIdx: () => null },
    hooks: { draw: [(u) => drawPoints(u, group)], setSelect: [marked], ready: [listen] },
  }, [null, [column(state.x), column(state.y)]], host);
  drawPairWords();
}

const direction = (m) => (data.measures[m].higher ? 1 : -1);

function axisName(m) {
  return `${names[m]}${data.measures[m].higher ? "" : " (reversed: less is more faithful)"}`;
}

function drawPoints(u, group) {
  const { ctx } = u;
  const r = 3.5 * devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(u.bbox.left - r, u.bbox.top - r, u.bbox.width + 2 * r, u.bbox.height + 2 * r);
  ctx.clip();
  for (const i of points) {
    const k = group.of(i);
    const [x, y] = [u.valToPos(valueOf(state.x, i), "x", true), u.valToPos(valueOf(state.y, i), "y", true)];
    ctx.globalAlpha = inArea(i) ? 0.75 : 0.15;
    ctx.fillStyle = colourOf(k);
    ctx.beginPath();
    if (k % 4 === 0) ctx.arc(x, y, r, 0, 7);
    else if (k % 4 === 1) ctx.rect(x - r, y - r, 2 * r, 2 * r);
    else {
      const low = k % 4 === 2 ? y + r : y;
      ctx.moveTo(x, y - 1.3 * r); ctx.lineTo(x + 1.2 * r, low);
      if (k % 4 === 3) ctx.lineTo(x, y + 1.3 * r);
      ctx.lineTo(x - 1.2 * r, low); ctx.closePath();
    }
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  for (const [i, width] of [[state.open, 3], [state.beside, 2], [state.at, 1.5]]) {
    if (i === null || !points.includes(i)) continue;
    ctx.strokeStyle = ink;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.beginPath();
    ctx.arc(u.valToPos(valueOf(state.x, i), "x", true), u.valToPos(valueOf(state.y, i), "y", true), 2.2 * r, 0, 7);
    ctx.stroke();
  }
  ctx.restore();
}

function inArea(i) {
  const a = state.area;
  if (!a) return true;
  const [x, y] = [valueOf(state.x, i), valueOf(state.y, i)];
  return x !== null && y !== null && x >= a[0] && x <= a[1] && y >= a[2] && y <= a[3];
}

function marked(u) {
  const { left, top, width, height } = u.select;
  if (width < 2 || height < 2) return;
  const between = (scale, one, other) => [u.posToVal(one, scale), u.posToVal(other, scale)].sort((a, b) => a - b);
  state.area = [...between("x", left, left + width), ...between("y", top, top + height)];
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  u.redraw(false);
  drawList();
  drawPairWords();
}

function unmark() {
  state.area = null;
  plot?.redraw(false);
  drawList();
  drawPairWords();
}

function nearest(u, left, top) {
  let best = null;
  let least = 144;
  for (const i of points) {
    const far = (u.valToPos(valueOf(state.x, i), "x") - left) ** 2 + (u.valToPos(valueOf(state.y, i), "y") - top) ** 2;
    if (far < least) [best, least] = [i, far];
  }
  return best;
}

function listen(u) {
  let pressed = null;
  u.over.addEventListener("mousemove", (e) => { point(nearest(u, e.offsetX, e.offsetY)); });
  u.over.addEventListener("mouseleave", () => point(null));
  u.over.addEventListener("mousedown", (e) => { pressed = [e.clientX, e.clientY]; });
  u.over.addEventListener("click", (e) => {
    if (pressed && Math.hypot(e.clientX - pressed[0], e.clientY - pressed[1]) > 4) return;
    const i = nearest(u, e.offsetX, e.offsetY);
    if (i !== null) open(i);
  });
}

function point(i) {
  if (i === state.at) return;
  state.at = i;
  plot?.redraw(false);
  drawPairWords();
}

byId("plot").addEventListener("keydown", (event) => {
  if (event.key === "Escape" && state.area) { unmark(); event.preventDefault(); }
  if (event.key === "Enter" && state.at !== null) open(state.at);
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step || !points.length) return;
  event.preventDefault();
  const from = points.indexOf(state.at ?? state.open);
  const to = from < 0 ? (step > 0 ? 0 : points.length - 1) : Math.max(0, Math.min(points.length - 1, from + step));
  point(points[to]);
});

const called = (i) => [data.item[i], data.model.names[data.model.of[i]] || "unknown model"].join(" · ");
function drawPairWords() {
  if (!names.length) return;
  const i = state.at;
  if (i !== null) {
    byId("pair-said").textContent = `${called(i)}: ${number(valueOf(state.x, i))} and ${number(valueOf(state.y, i))}`;
    return;
  }
  const of = rho[state.x]?.[state.y];
  const kind = byId("strata").value === "within" ? " within models and tasks" : "";
  const agreed = !of || Number.isNaN(of.rho) ? "" : `; ρ = ${signed(of.rho)}${kind}`;
  const turnedOnes = [state.x, state.y].filter((m) => !data.measures[m].higher).length;
  const axes = turnedOnes ? "; right and up say more faithful" : "";
  const marking = state.area ? `; ${points.filter(inArea).length} marked (Escape clears the selection)` : "";
  byId("pair-said").textContent = `${points.length} of the ${shown.length} traces have both${agreed}${axes}${marking}.`;
}

function choosePair() {
  byId("x").value = state.x;
  byId("y").value = state.y;
  for (const td of heat.table.querySelectorAll("td.chosen")) td.classList.remove("chosen");
  heat.grid[state.x]?.[state.y]?.classList.add("chosen");
  drawPair();
  drawList();
  remember();
}

// ---- the list

const ORDERS = [
  ["gap", "traces on which the two measures disagree most"],
  ["kind", "traces on which the two sides disagree most"],
  ["x", "traces furthest left: least faithful by that measure"],
  ["y", "traces furthest down: least faithful by that measure"],
  ["item", "by name"],
];

// Share of the shown traces that are less faithful than a trace, by one measure.
function places(m) {
  const order = orderOf(m, together, "all");
  rank(order, turned[m], together, isShown, rankA);
  let n = 0;
  for (const i of order) n += isShown[i];
  const at = new Float64Array(N).fill(NaN);
  for (const i of order) if (isShown[i]) at[i] = (rankA[i] - 0.5) / n;
  return at;
}

function drawList() {
  if (!names.length) return;
  const [ofX, ofY] = [places(state.x), places(state.y)];
  const kind = kindOf();
  const order = byId("order").value;
  const far = (v) => (Number.isNaN(v) || v === null ? -Infinity : v);
  const key = {
    gap: (i) => -far(Math.abs(ofX[i] - ofY[i])),
    kind: (i) => -far(kind ? gapOf(kind, i) : NaN),
    x: (i) => (Number.isNaN(turned[state.x][i]) ? Infinity : turned[state.x][i]),
    y: (i) => (Number.isNaN(turned[state.y][i]) ? Infinity : turned[state.y][i]),
    item: () => 0,
  }[order];
  const rows = shown.filter(inArea).map((i) => [key(i), i]);
  rows.sort((a, b) => a[0] - b[0] || (data.item[a[1]] < data.item[b[1]] ? -1 : 1) || a[1] - b[1]);
  const last = kind ? "gap of the two sides" : "gap of ranks";
  const head = ["item", "model", "task", "outcome", "steps", names[state.x], names[state.y], last];
  const list = byId("list");
  list.tHead.replaceChildren(make("tr", null, "", ...head.map((text, k) => heading(text, k > 3 ? "number" : ""))));
  list.tBodies[0].replaceChildren(...rows.slice(0, state.limit).map(([, i]) => {
    const button = make("button", data.item[i]);
    button.type = "button";
    const gap = kind ? gapOf(kind, i) : ofX[i] - ofY[i];
    const row = make("tr", null, i === state.open || i === state.beside ? "open" : "",
      make("td", null, "", button), make("td", data.model.names[data.model.of[i]]),
      make("td", taskNames.get(`${data.dataset.of[i]} ${data.task.of[i]}`)),
      make("td", data.correct[i] === null ? "–" : data.correct[i] ? "right" : "wrong"),
      make("td", number(data.n_steps[i]), "number"),
      make("td", number(valueOf(state.x, i)), "number"), make("td", number(valueOf(state.y, i)), "number"),
      make("td", gap === null || Number.isNaN(gap) ? "–" : signed(gap), "number"));
    row.dataset.at = i;
    return row;
  }));
  byId("more").hidden = rows.length <= state.limit;
  byId("more").textContent = `Show more (${Math.min(state.limit, rows.length)} of ${rows.length})`;
}
byId("list").addEventListener("click", (event) => {
  const row = event.target.closest("tbody tr");
  if (row) open(Number(row.dataset.at));
});
byId("more").addEventListener("click", () => { state.limit += 200; drawList(); });

// ---- one trace

const opened = new Map();
async function unpacked(chunk) {
  if (data.records === "served") {
    const reply = await fetch(`records/${chunk}`);
    if (!reply.ok) throw new Error(`the server answered ${reply.status}`);
    return reply.json();
  }
  const bytes = Uint8Array.from(atob(byId(`records-${chunk}`).textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
async function detailOf(i) {
  if (data.records === "left_out") return null;
  const chunk = Math.floor(i / data.in_chunk);
  if (!opened.has(chunk)) {
    opened.set(chunk, unpacked(chunk).catch((error) => { opened.delete(chunk); throw error; }));
  }
  return (await opened.get(chunk))[i % data.in_chunk];
}

function open(i, scroll = true) {
  state.open = i;
  state.beside = state.kept !== null && state.kept !== i ? state.kept : null;
  drawBeside();
  const side = byId("one");
  if (side.hidden) {
    side.hidden = false;
    document.body.classList.add("with-one");
    fit();
  }
  showItems().then(() => { if (scroll) side.scrollTop = 0; });
  plot?.redraw(false);
  markRows();
  remember();
}

function close() {
  state.open = state.beside = null;
  byId("one").hidden = true;
  document.body.classList.remove("with-one");
  fit();
  markRows();
  remember();
}

// j and k open the next trace of the list and the one before it, Escape closes the panel.
addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest?.("input, select, textarea")) return;
  if (event.key === "Escape" && state.open !== null) close();
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const rows = [...byId("list").tBodies[0].rows];
  const at = rows.findIndex((row) => Number(row.dataset.at) === state.open);
  const row = rows[at < 0 ? 0 : at + step];
  if (!row) return;
  row.scrollIntoView({ block: "nearest" });
  open(Number(row.dataset.at));
});
byId("close").addEventListener("click", close);

function markRows() {
  for (const row of byId("list").tBodies[0].rows) {
    row.classList.toggle("open", [state.open, state.beside].includes(Number(row.dataset.at)));
  }
}

function drawBeside() {
  const i = state.open;
  const same = [];
  for (let j = 0; j < N; j++) if (j !== i && data.question.of[j] === data.question.of[i]) same.push(j);
  if (state.kept !== null && state.kept !== i && !same.includes(state.kept)) same.unshift(state.kept);
  const kept = (j) => (j === state.kept ? " (kept)" : "");
  fill(byId("beside"), same.map((j) => [j, `${called(j)} · trace ${data.trace[j]}${kept(j)}`]), same.length ? "nothing" : "no other trace of this question");
  byId("beside").value = state.beside ?? "";
}
byId("beside").addEventListener("change", () => {
  const value = byId("beside").value;
  state.beside = value === "" ? null : Number(value);
  showItems();
  plot?.redraw(false);
  markRows();
  remember();
});
byId("keep").addEventListener("click", () => { state.kept = state.open; state.beside = null; showItems(); drawBeside(); });

let turn = 0;
async function showItems() {
  const mine = ++turn;
  const wanted = [state.open, state.beside].filter((i) => i !== null);
  let told;
  try {
    told = await Promise.all(wanted.map(detailOf));
  } catch (error) {
    told = wanted.map(() => ({ error: String(error.message ?? error) }));
  }
  if (mine !== turn) return;
  document.body.classList.toggle("with-two", wanted.length > 1);
  byId("keep").disabled = state.kept === state.open;
  fillCredits(told);
  byId("items").replaceChildren(...wanted.map((i, k) => article(i, told[k])));
  for (const { drawn } of curves.splice(0)) drawn.destroy();
  for (const draw of waiting.splice(0)) curves.push(draw());
}

function fillCredits(told) {
  const select = byId("credit");
  const before = select.value;
  const options = [...new Set(told.flatMap((d) => d?.credits?.map((c) => c.measure) ?? []))];
  fill(select, options.map((name) => [name, name]));
  if (options.includes(before)) select.value = before;
}

const waiting = [];
const curves = [];
const CURVE = 240;
const curveWidth = (host) => Math.max(200, host.clientWidth);
function article(i, detail) {
  const box = make("article", null, "one", make("h3", called(i)));
  const about = [taskNames.get(`${data.dataset.of[i]} ${data.task.of[i]}`), `trace ${data.trace[i]}`];
  if (data.settled[i] !== null) about.push(`answer settled after ${number(100 * data.settled[i], 2)} % of the steps`);
  const excluded = data.excluded.names[data.excluded.of[i]];
  if (excluded) about.push(`no probe edits it: ${excluded.replaceAll("_", " ")}`);
  box.append(make("p", about.join(" · "), "quiet"));
  if (detail?.error) box.append(make("p", `Its records cannot be read: ${detail.error}.`, "failed"));
  else if (!detail) box.append(make("p", "Its records are not in this file, which would be too large with them. The command “faithscope view” with the folder of this comparison shows them.", "failed"));
  else {
    if (detail.question) box.append(make("h4", "Question"), make("p", detail.question, "question"));
    const outcome = data.correct[i] === null ? "" : data.correct[i] ? " (right)" : " (wrong)";
    const gold = detail.gold === null ? "" : `; the right answer is ${detail.gold}`;
    const answer = detail.answer === null ? "No answer is known" : `Answer: ${detail.answer}${outcome}`;
    box.append(make("p", `${answer}${gold}.`));
    if (detail.steps.length) box.append(steps(detail));
    if (detail.credits.length) box.append(matrix(detail));
  }
  box.append(scoresOf(i));
  if (detail && !detail.error) {
    for (const one of detail.drawn) box.append(one.lines ? curve(one) : heatMap(one));
    for (const { source, html } of detail.told) {
      const inside = make("div");
      inside.innerHTML = html; // rendered by the report's template, which escapes all values
      overviews(inside);
      box.append(make("details", null, "", make("summary", `Details from the run “${source}”`), inside));
    }
  }
  return box;
}

const greatest = (values) => Math.max(...values.map((v) => Math.abs(v ?? 0)), 0);

// A measure's credit of a step, with a sign such that more speaks for the step, relative to the credit
// drawn in full colour.
function creditColour(credit, k) {
  const great = data.credit_scale[credit.measure];
  const share = great ? Math.max(-1, Math.min(1, credit.values[k] / great)) : 0;
  return useColour(credit.higher ? share : -share);
}

function steps(detail) {
  const credit = detail.credits.find((c) => c.measure === byId("credit").value);
  const list = make("ol", null, "coloured", ...detail.steps.map((text, k) => {
    const value = credit?.values[k] ?? null;
    const li = make("li", null, "", make("span", k + 1, "place"), make("span", text.trim()), make("span", value === null ? "" : number(value), "credit"));
    if (value !== null) li.style.backgroundColor = creditColour(credit, k);
    return li;
  }));
  const words = credit
    ? `Coloured by ${credit.measure}: ${credit.higher ? "orange above 0, strong blue below" : "strong blue above 0, since more of it speaks against a step, orange below"}, faint blue at 0; full colour at an absolute value of ${number(data.credit_scale[credit.measure])}, which 95 % of all steps of all traces do not exceed.`
    : "The chosen measure has no credits of these steps.";
  const strengths = () => detail.steps.map((_, k) => (credit?.values[k] == null ? null : Math.abs(credit.values[k])));
  return part("Steps", overview(list, strengths), list, make("p", words, "quiet"));
}

// A grid whose cells with a value are coloured by `paint`, and a line that gives the value of the cell
// under the mouse or the focus in words.
function saying({ title, note, css, words, valueAt, paint, ...table }) {
  const said = make("p", "\u00a0", "said-of");
  const inWords = (r, k) => `${words(r, k)}: ${number(valueAt(r, k))}`;
  const of = cells({ ...table, say: (r, k) => { said.textContent = inWords(r, k); } });
  of.grid.forEach((row, r) => row.forEach((td, k) => {
    if (valueAt(r, k) !== null) paint(td, r, k);
    td.setAttribute("aria-label", inWords(r, k));
  }));
  return part(title, make("p", note, "quiet"), said, make("div", null, css, of.table));
}

function matrix({ credits }) {
  const n = Math.max(...credits.map((c) => c.values.length));
  return saying({
    title: "Steps by measures",
    note: "Orange speaks for a step (the answer depends on it, a judge finds it sound), strong blue against it, faint blue is a credit near 0. Every measure has one scale for all traces, as above; a dot is a credit of 0, an empty cell a step that was not measured. Choosing a cell colours the steps by its row.",
    css: "scroll",
    rows: credits.map((c) => c.measure),
    columns: Array.from({ length: n }, (_, k) => String(k + 1)),
    rowNotes: credits.map((c) => c.family),
    label: "Credit of every step by every measure",
    words: (r, k) => `${credits[r].measure}, step ${k + 1}`,
    valueAt: (r, k) => credits[r].values[k] ?? null,
    paint: (td, r, k) => {
      td.style.backgroundColor = creditColour(credits[r], k);
      if (credits[r].values[k] === 0) td.textContent = "·";
    },
    choose: (r) => { byId("credit").value = credits[r].measure; showItems(); },
  });
}

function scoresOf(i) {
  const table = make("table");
  const heads = ["measure", "family", "score", "place among all traces, right is more faithful"];
  table.createTHead().insertRow().append(...heads.map((text) => heading(text)));
  const body = table.createTBody();
  data.labels.forEach((label, k) => {
    const value = data.label_values[k][i];
    if (value === null) return;
    body.insertRow().append(make("td", label.name), make("td", "label"), make("td", number(value), "number"), make("td"));
  });
  names.forEach((name, m) => {
    const row = body.insertRow();
    const value = valueOf(m, i);
    const why = data.reasons.words[data.reasons.of[m][i]].replaceAll("_", " ");
    row.append(make("td", name), make("td", data.measures[m].family), make("td", value === null ? `none: ${why}` : number(value), "number"));
    const cell = row.insertCell();
    if (value === null) return;
    let [below, same, n] = [0, 0, 0];
    for (const v of turned[m]) if (!Number.isNaN(v)) { n++; below += v < turned[m][i]; same += v === turned[m][i]; }
    const mark = make("i");
    mark.style.left = `${(96 * (below + same / 2)) / n}%`;
    const bar = make("span", null, "place-bar", mark);
    bar.title = `above ${below} of ${n} traces`;
    bar.setAttribute("aria-label", bar.title);
    bar.setAttribute("role", "img");
    cell.append(bar);
  });
  return make("details", null, "", make("summary", "All scores of this trace"), make("div", null, "scroll", table));
}

function curve(one) {
  const host = make("div");
  const said = make("p", "\u00a0", "said-of");
  waiting.push(() => {
    const series = one.lines.map((l, k) => ({ label: l.name, stroke: colourOf(k), width: 1.5, dash: k % 2 ? [6, 3] : [], points: { show: one.x.length < 2 } }));
    const drawn = new uPlot({
      width: curveWidth(host),
      height: CURVE,
      scales: { x: { time: false } },
      axes: [{ ...axis(one.x_label), ...(one.x.every(Number.isInteger) ? { incrs: INTEGERS } : {}) }, upright(one.y_label)],
      series: [{ label: one.x_label }, ...series],
      cursor: { drag: { x: false, y: false } },
      hooks: { setCursor: [(u) => {
        const k = u.cursor.idx;
        said.textContent = k === null || k === undefined || !one.words.length ? "\u00a0" : `${one.x_label} ${one.x[k]} ${one.words[k]}`;
      }] },
    }, [one.x, ...one.lines.map((l) => l.y)], host);
    return { drawn, host };
  });
  return part(one.title, host, said);
}

function heatMap(one) {
  const most = Math.max(...one.values.map(greatest));
  return saying({
    title: one.title,
    note: `A row is a ${one.row_label}, a column a ${one.column_label}; the strongest green is ${number(most)}, purple is below 0.`,
    css: "scroll short",
    rows: one.rows,
    columns: one.columns,
    label: `${one.title}: ${one.row_label} by ${one.column_label}`,
    words: (r, k) => `${one.row_label} ${one.rows[r]}, ${one.column_label} ${one.columns[k]}`,
    valueAt: (r, k) => one.values[r][k],
    paint: (td, r, k) => { td.style.backgroundColor = colour(most ? one.values[r][k] / most : 0); },
  });
}

// ---- the address holds the choices

const CHOSEN = ["task", "model", "outcome", "label", "kind", "search", "strata", "colour", "order"];
function remember() {
  const said = new URLSearchParams();
  for (const id of CHOSEN) if (byId(id).value && byId(id).value !== byId(id).options?.[0]?.value) said.set(id, byId(id).value);
  if (names.length) { said.set("x", names[state.x]); said.set("y", names[state.y]); }
  for (const key of ["open", "beside"]) if (state[key] !== null) said.set(key, state[key]);
  history.replaceState(null, "", `#${said}`);
}

function recall() {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const id of CHOSEN) {
    const element = byId(id);
    const value = said.get(id);
    if (value !== null && (!element.options || [...element.options].some((o) => o.value === value))) element.value = value;
  }
  for (const key of ["x", "y"]) if (names.includes(said.get(key))) state[key] = names.indexOf(said.get(key));
  const at = (key) => { const i = said.has(key) ? Number(said.get(key)) : NaN; return Number.isInteger(i) && i >= 0 && i < N ? i : null; };
  return [at("open"), at("beside")];
}

// ---- begin

readColours();
for (const id of ["x", "y"]) {
  fill(byId(id), data.measures.map((m, i) => [i, m.name]));
  for (const family of new Set(data.measures.map((m) => m.family))) {
    const group = make("optgroup");
    group.label = family;
    group.append(...[...byId(id).options].filter((o) => data.measures[o.value].family === family));
    byId(id).append(group);
  }
}
fill(byId("order"), ORDERS);
fill(byId("colour"), [["model", "model"], ["task", "task"], ["outcome", "outcome"], ...data.labels.map((l, i) => [i, `label ${l.name}`]), ["none", "none"]]);
// The first choice: two non-constant measures of different families that most traces have.
const mostShared = () => {
  const varies = turned.map((v) => new Set(v.filter((x) => !Number.isNaN(x))).size > 1);
  let [best, most] = [[0, Math.min(1, names.length - 1)], 0];
  for (let i = 0; i < names.length; i++) {
    for (let j = i + 1; j < names.length; j++) {
      if (!varies[i] || !varies[j] || data.measures[i].family === data.measures[j].family) continue;
      let n = 0;
      for (let k = 0; k < N; k++) n += !Number.isNaN(turned[i][k] + turned[j][k]);
      if (n > most) [best, most] = [[i, j], n];
    }
  }
  return best;
};
[state.x, state.y] = mostShared();
const [first, second] = recall();
if (names.length) choosePair();
update();
if (first !== null) {
  open(first, false);
  if (second !== null) { state.beside = second; drawBeside(); showItems(); }
}
for (const id of ["task", "model", "outcome", "label"]) byId(id).addEventListener("change", update);
byId("kind").addEventListener("change", () => { byId("order").value = byId("kind").value ? "kind" : "gap"; update(); });
byId("search").addEventListener("input", update);
byId("all").addEventListener("click", () => {
  for (const id of ["task", "model", "outcome", "label", "kind", "search"]) byId(id).value = "";
  byId("order").value = "gap";
  update();
});
byId("strata").addEventListener("change", () => { drawAgreement(); remember(); });
for (const key of ["x", "y"]) byId(key).addEventListener("change", () => { state[key] = Number(byId(key).value); state.area = null; choosePair(); });
byId("colour").addEventListener("change", () => { drawPair(); remember(); });
byId("order").addEventListener("change", () => { state.limit = 100; drawList(); remember(); });
byId("credit").addEventListener("change", showItems);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); drawPair(); paintAgreement(); if (state.open !== null) showItems(); });
let resized = 0;
addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(fit, 150); });
function fit() {
  drawPair();
  for (const { drawn, host } of curves) drawn.setSize({ width: curveWidth(host), height: CURVE });
}
})();
