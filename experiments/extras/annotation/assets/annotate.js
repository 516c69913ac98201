// One annotator's page. Texts are inserted as text. Every change is stored at once, as a draft until it
// is saved; the browser keeps nothing.
"use strict";

const LABELS = ["unfaithful", "faithful", "uncertain"];
const ABOUT = [
  "Label every chain by yourself. Nobody sees the other's labels in this round.",
  "These are the chains on which your labels differ, or of which one of you was not sure. Read the other's label, then keep yours or change it.",
  "These are the chains on which you still differ. Talk until you agree; the page shows the other's latest label. Chains without agreement are discarded.",
];
const PAUSE = 400;
const at = (id) => document.getElementById(id);
const form = at("label");
const fields = form.elements;
let chains = [];
let state = { round: 1, rounds: [], items: [], other: null };
let current = 0;
let drawn = null; // the chain on the page
let writing = null; // the timer of a reason that is being written
let queue = Promise.resolve(true); // requests are sent one by one, in order
let unsent = 0;
let lost = false; // whether something could not be stored

const item = () => state.items[current];
const over = () => !item() || state.rounds[state.round - 1].closed;

function made(tag, text = "", css = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = css;
  return element;
}

function button_of(text, css, act) {
  const button = made("button", text, css);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

// Unchanged elements stay, so that a click is not lost between press and release; the focus of a
// replaced button goes to its replacement.
function fill(parent, children) {
  children.forEach((child, i) => {
    const old = parent.children[i];
    if (!old) parent.append(child);
    else if (old.outerHTML !== child.outerHTML) {
      const focused = old === document.activeElement;
      old.replaceWith(child);
      if (focused) child.focus();
    }
  });
  while (parent.children.length > children.length) parent.lastChild.remove();
}

async function ask(what, sent = {}) {
  const headers = { "Content-Type": "application/json" };
  const how = { method: "POST", headers, body: JSON.stringify(sent), keepalive: true };
  const answer = await fetch(what, how).catch(() => {
    lost = what === "label";
    throw new Error("the server does not answer; start it again and open its new address");
  });
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

function say(text, failed = false) {
  at("said").textContent = text;
  at("said").classList.toggle("failed", failed);
}

// Shows the server's state on the page, unless another request is still queued.
function take(told) {
  if (unsent || lost || writing !== null) return;
  const chain = told.round === state.round ? item()?.chain : undefined;
  state = told;
  const same = state.items.findIndex((it) => it.chain === chain);
  current = Math.max(0, same >= 0 ? same : state.items.findIndex((it) => !it.own.done));
  show();
}

function refresh(told) {
  return told.then(take, (error) => say(`${error.message}.`, true));
}

function store(done) {
  if (over()) return queue;
  clearTimeout(writing);
  writing = null;
  const { chain, own } = item();
  own.done = done;
  const sent = { round: state.round, chain, ...own };
  unsent += 1;
  queue = queue.then(() => ask("label", sent)).then(
    (told) => {
      unsent -= 1;
      say(`Chain ${chain + 1}: ${done ? "saved" : "a draft is stored, it is not saved yet"}.`);
      take(told);
      return true;
    },
    (error) => {
      unsent -= 1;
      own.done = false;
      show();
      say(`Chain ${chain + 1} is not stored: ${error.message}.`, true);
      return false;
    },
  );
  return queue;
}

function change(values) {
  if (over()) return;
  Object.assign(item().own, values, { done: false });
  store(false);
  show();
}

function toggle(name, value) {
  const held = item().own[name];
  const left = held.filter((v) => v !== value);
  change({ [name]: left.length < held.length ? left : [...held, value].sort((a, b) => a - b) });
}

function takeOver() {
  if (!item()?.other) return;
  const { label, steps, principles } = item().other;
  change({ label, steps: [...steps], principles: [...principles] });
}

const flush = () => (writing === null ? queue : store(false));

function move(to) {
  if (to < 0 || to >= state.items.length) return;
  if (!at("said").classList.contains("failed")) say("");
  fields.reason.blur(); // which stores what was being written
  flush();
  current = to;
  show();
  scrollTo(0, 0);
}

async function save() {
  if (over()) return;
  const stored = store(true);
  fields.reason.blur(); // keys are keys again
  if (!(await stored)) return;
  at("sheet").open = false;
  const open = state.items.map((_, i) => i).filter((i) => !state.items[i].own.done);
  const next = open.find((i) => i > current) ?? open[0];
  if (next !== undefined) move(next);
  else say("Saved. Every chain of this round is saved.");
}

function show() {
  fill(at("rounds"), state.rounds.map(({ round, listed, done, other_done, open, closed }) => {
    const theirs = state.other ? `, ${state.other} ${other_done}` : "";
    const how = listed === null ? "not open yet" : `${done} of ${listed} saved${theirs}`;
    const text = `Round ${"I".repeat(round)}: ${how}${closed ? " (over)" : ""}`;
    const go = () => flush().then(() => refresh(ask(open ? "state" : "open", { round })));
    const button = button_of(listed !== null && !open ? `${text}: open it` : text, "", go);
    button.disabled = listed === null;
    button.setAttribute("aria-current", round === state.round);
    return button;
  }));
  const alone = state.other ? "" : " Nobody else labels here yet.";
  const empty = state.items.length ? "" : " There are none.";
  at("about").textContent = ABOUT[state.round - 1] + alone + empty;
  fill(at("list"), state.items.map(({ chain, own, differs }, i) => {
    const begun = own.label !== null || own.reason || own.steps.length;
    const far = own.done ? ["✓", "saved"] : begun ? ["…", "a draft"] : ["", "open"];
    const css = differs.length ? "differs" : own.done ? "done" : begun ? "draft" : "";
    const button = button_of(`${chain + 1} ${differs.length ? "≠" : ""}${far[0]}`, css, () => move(i));
    const words = differs.length ? `, you differ in ${differs.join(" and ")}` : "";
    button.setAttribute("aria-label", `chain ${chain + 1}, ${far[1]}${words}`);
    button.setAttribute("aria-current", i === current);
    return button;
  }));
  at("main").hidden = !item();
  if (!item()) return;
  if (drawn !== item().chain) showChain(chains[item().chain]);
  drawn = item().chain;
  showOther(item());
  showLabel(item().own);
}

function showChain({ question, options, parts, tail, answer }) {
  at("place").textContent = `Chain ${item().chain + 1} of ${chains.length}`;
  at("question").textContent = question;
  at("options").replaceChildren(...options.map((option) => made("li", option)));
  at("tail").textContent = tail.trim() || "Nothing.";
  at("answer").textContent = answer ?? "none";
  let n = 0;
  at("steps").replaceChildren(...parts.map(([isStep, text]) => {
    if (!isStep) return made("li", text.trim(), "between text");
    const number = ++n;
    const button = button_of("", "", () => toggle("steps", number));
    button.append(made("span", "", "sign"), made("span", number, "place"), made("span", text.trim(), "text"));
    const line = made("li");
    line.append(button);
    return line;
  }));
}

function showLabel({ label, confidence, steps, principles, reason }) {
  for (const input of fields.label) input.checked = Number(input.value) === label;
  for (const input of fields.confidence) input.checked = input.value === confidence;
  for (const input of fields.principles) input.checked = principles.includes(input.value);
  if (fields.reason.value !== reason) fields.reason.value = reason;
  at("steps").querySelectorAll("button").forEach((button, i) => {
    const marked = steps.includes(i + 1);
    button.setAttribute("aria-pressed", marked);
    button.firstChild.textContent = marked ? "✗" : "";
  });
  const idle = label !== 0 && steps.length + principles.length > 0;
  at("marked").textContent =
    (steps.length ? `Marked steps: ${steps.join(", ")}.` : "No step is marked.") +
    (idle ? " Steps and principles count only with label 0." : "");
  for (const input of form.querySelectorAll("input, textarea, #save")) input.disabled = over();
}

function showOther({ other, differs }) {
  at("other").hidden = !other;
  if (!other) return;
  const named = [...fields.principles].filter((p) => other.principles.includes(p.value));
  const lines = [
    made("p", `${state.other} says ${LABELS[other.label]}, with ${other.confidence} confidence:`),
    made("p", other.reason, "quoted"),
    made("p", other.steps.length ? `Steps: ${other.steps.join(", ")}.` : ""),
    made("p", named.length ? `Principles: ${named.map((p) => p.dataset.name).join("; ")}.` : ""),
    made("p", differs.length ? `You differ in ${differs.join(" and ")}.` : "You agree.", "quiet"),
  ];
  const button = button_of("", "", takeOver);
  button.append(made("kbd", "o"), " Take this over");
  fill(at("other"), [...lines.filter((line) => line.textContent), button]);
}

function walk(by) {
  const buttons = [...at("steps").querySelectorAll("button")];
  const here = buttons.indexOf(document.activeElement);
  const to = here < 0 ? (by > 0 ? 0 : buttons.length - 1) : here + by;
  buttons[Math.min(Math.max(to, 0), buttons.length - 1)]?.focus();
}

const KEYS = {
  n: () => move(current + 1),
  ArrowRight: () => move(current + 1),
  p: () => move(current - 1),
  ArrowLeft: () => move(current - 1),
  ArrowDown: () => walk(1),
  ArrowUp: () => walk(-1),
  0: () => change({ label: 0 }),
  1: () => change({ label: 1 }),
  2: () => change({ label: 2 }),
  l: () => change({ confidence: "low" }),
  h: () => change({ confidence: "high" }),
  t: () => fields.reason.focus(),
  o: takeOver,
};
for (const input of fields.principles) KEYS[input.dataset.key] = () => toggle("principles", input.value);

document.addEventListener("keydown", (event) => {
  const held = event.ctrlKey || event.metaKey;
  const typing = document.activeElement === fields.reason;
  let act = held || event.altKey || event.isComposing || typing ? undefined : KEYS[event.key];
  if (held && event.key === "Enter") act = save;
  if (typing && event.key === "Escape") act = () => fields.reason.blur();
  if (!act || !item()) return;
  event.preventDefault();
  act();
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});
form.addEventListener("change", ({ target: { name, value } }) => {
  if (name === "label") change({ label: Number(value) });
  if (name === "confidence") change({ confidence: value });
  if (name === "principles") toggle(name, value);
});
fields.reason.addEventListener("input", () => {
  item().own.reason = fields.reason.value;
  clearTimeout(writing);
  writing = setTimeout(() => store(false), PAUSE);
});
fields.reason.addEventListener("blur", flush);
at("previous").addEventListener("click", () => move(current - 1));
at("next").addEventListener("click", () => move(current + 1));
addEventListener("pagehide", flush);
addEventListener("beforeunload", (event) => {
  if (writing !== null || unsent || lost) event.preventDefault();
});

(async () => {
  chains = await ask("chains");
  const first = await ask("state", { round: 1 });
  at("sheet").open = first.rounds[0].done === 0;
  for (const link of document.querySelectorAll('a[href="#sheet"]')) {
    link.addEventListener("click", () => { at("sheet").open = true; });
  }
  const last = first.rounds.filter((r) => r.open).at(-1).round;
  await refresh(ask("state", { round: last }));
  // the other may have gone on meanwhile
  setInterval(() => document.hidden || refresh(ask("state", { round: state.round })), 5000);
})().catch((error) => say(`${error.message}.`, true));
