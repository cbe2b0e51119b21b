"use strict";
// Requests and what is done with their answers. The first picture never waits for the others.
const REST = ["attacker", "tradeoff", "samplers", "stopwatch", "composition", "paper", "code"];
const QUIET = 150; // milliseconds without a change before the other panels are asked for

function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

for (const section of document.querySelectorAll("main section")) {
  const own = section.querySelectorAll(".own");
  section.append(element("p", "", { class: "message", "aria-live": "off" }), ...own,
                 element("figure"), element("div", "", { class: "words" }));
}

function query(name, more = {}) {
  const width = by(name).querySelector("figure").clientWidth;
  const drawn = between(20 * Math.floor(width / 20), 260, 960);
  return new URLSearchParams({ ...state, width: drawn, ...more });
}

async function ask(name, more) {
  const response = await fetch(`/panel/${name}?${query(name, more)}`);
  return response.json();
}

function complain(sentence) { by("problem").textContent = sentence; }

function show(name, panel) {
  const section = by(name);
  section.querySelector(".message").textContent = panel.title;
  // The figure is SVG of this machine's own server, with every text in it escaped.
  section.querySelector("figure").innerHTML = panel.figure;
  section.querySelector(".words").replaceChildren(
    ...panel.sentences.map((one) => element("p", one)), ...table(panel), ...folded(panel), ...scripts(panel),
    ...(panel.figure ? [downloads(name)] : []));
  section.dataset.state = new URLSearchParams(panel.state).toString();
}

function table(panel) {
  if (panel.heads.length === 0) return [];
  const made = element("table"), head = element("tr");
  head.append(...panel.heads.map((one) => element("th", one, { scope: "col" })));
  made.append(head, ...panel.lines.map((line) => {
    const row = element("tr");
    row.append(...line.map((cell, j) => element("td", cell, { "data-head": panel.heads[j] })));
    return row;
  }));
  const folded = element("details");
  folded.append(element("summary", "The same as a table"), made);
  return [folded];
}

function folded(panel) {
  return panel.folded.map(([title, items]) => {
    const made = element("details"), list = element("ul");
    list.append(...items.map((one) => element("li", one)));
    made.append(element("summary", title), list);
    return made;
  });
}

function scripts(panel) {
  return panel.code.flatMap(([title, text]) => {
    const copy = element("button", "Copy", { type: "button", "aria-label": `Copy ${title}` });
    copy.addEventListener("click", () => toClipboard(text, copy));
    const head = element("h3", title);
    head.append(copy);
    return [head, element("pre", text, { tabindex: "0" })];
  });
}

async function toClipboard(text, button) {
  await navigator.clipboard.writeText(text);
  const before = button.textContent;
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = before; }, 1200);
}

function downloads(name) {
  const line = element("p", "", { class: "downloads" });
  const svg = element("a", "SVG", { href: `/figure/${name}.svg?${query(name)}`, download: `expmech-${name}.svg` });
  const png = element("button", "PNG", { type: "button" });
  png.addEventListener("click", () => savePng(name, svg.href));
  line.append("Save the figure: ", svg, " ", png);
  return line;
}

async function savePng(name, address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = element("canvas");
  [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  const link = element("a", "", { href: URL.createObjectURL(blob), download: `expmech-${name}.png` });
  link.click();
  URL.revokeObjectURL(link.href);
}

function tiles(numbers) {
  const epsilon = Number(numbers.epsilon), odds = Math.exp(epsilon);
  by("tile-privacy").textContent = `epsilon ${numbers.epsilon}`;
  by("tile-privacy-more").textContent = `odds change by a factor of at most ${words(odds)}`;
  const known = numbers.error !== null && asked().errorIsDistance;
  by("tile-accuracy").textContent = known ? `± ${words(numbers.error)} ${asked().errorUnit}` : "see below";
  by("tile-accuracy-more").textContent = known ? "in 95% of releases" : "it depends on the rows";
  const seconds = numbers.seconds;
  by("tile-time").textContent = seconds === null ? "none"
    : seconds < 1 ? `${words(1000 * seconds)} ms` : `${words(seconds)} s`;
  by("tile-time-more").textContent = seconds === null ? "no sampler is recommended"
    : numbers.timing === "data-dependent" ? "may tell about the data" : "tells nothing about the data";
}

// The latest state wins: while one picture is drawn, changes wait and are drawn at once after it.
let busy = false, waiting = null, round = 0, timer = 0;

async function draw(change) {
  round += 1;
  clearTimeout(timer);
  if (busy) { waiting = change; return; }
  busy = true;
  try {
    const panel = await ask("answers", change.error ? { error: change.error } : {});
    if (panel.error) {
      complain(panel.error);
    } else {
      complain("");
      if (waiting === null) Object.assign(state, panel.state);
      show("answers", panel);
      tiles(panel.numbers);
      showValues(change.by);
      showAccuracy(panel.numbers, change.by);
      timer = setTimeout(drawRest, QUIET, round);
    }
  } catch { complain("The server has stopped: start `expmech explore` again."); }
  busy = false;
  if (waiting !== null) { const next = waiting; waiting = null; draw(next); }
}

async function drawRest(mine) {
  forget();
  history.replaceState(null, "", `?${new URLSearchParams(state)}`);
  for (const name of REST) {
    if (mine !== round) return;
    await drawOne(name);
  }
  if (mine === round) document.body.dataset.drawn = new URLSearchParams(state).toString();
}

async function drawOne(name) {
  try {
    const panel = await ask(name);
    if (panel.error) complain(panel.error); else show(name, panel);
  } catch { complain("The server has stopped: start `expmech explore` again."); }
}

function change(name, value, by_) {
  state[name] = value;
  showValues(by_);
  draw({ by: by_ });
}

function number(id, name) {
  by(id).addEventListener("change", (event) => {
    if (event.target.value !== "") change(name, event.target.value, id);
  });
}

by("question").addEventListener("change", (event) => {
  askQuestion(event.target.value);
  showValues();
  draw({});
});
by("method").addEventListener("change", (event) => change("method", event.target.value));
by("epsilon").addEventListener("input", (event) => change(
  "epsilon", three(atPlace(Number(event.target.value), EPSILON.low, EPSILON.high)), "epsilon"));
by("accuracy").addEventListener("input", (event) => {
  if (errors !== null) draw({ error: three(atPlace(Number(event.target.value), errors[0], errors[1])), by: "accuracy" });
});
by("rows").addEventListener("input", (event) => {
  const { low, high } = asked().rows;
  change("rows", String(Math.round(Number(three(atPlace(Number(event.target.value), low, high))))), "rows");
});
by("size").addEventListener("input", (event) => change("size", event.target.value, "size"));
number("epsilon-number", "epsilon");
number("rows-number", "rows");
number("size-number", "size");
number("lower", "lower");
number("upper", "upper");
by("again").addEventListener("click", () => change("seed", String((Number(state.seed) + 1) % 10000)));
by("other").addEventListener("click", () => change("data", String((Number(state.data) + 1) % 10000)));
by("link").addEventListener("click", (event) => toClipboard(
  `${location.origin}/?${new URLSearchParams(state)}`, event.target));
for (const [name, panel] of Object.entries(OWN)) {
  by(name).addEventListener("input", async (event) => {
    state[name] = event.target.value;
    event.target.nextElementSibling.textContent = state[name];
    await single(panel);
  });
}

// A panel's own control moves that panel alone; the latest value wins here too.
const singles = {};
async function single(name) {
  const one = singles[name] ??= { busy: false, again: false };
  if (one.busy) { one.again = true; return; }
  one.busy = true;
  if (name === "paper") forget();
  do { one.again = false; await drawOne(name); } while (one.again);
  one.busy = false;
  history.replaceState(null, "", `?${new URLSearchParams(state)}`);
}

// An enumeration takes a second: it is asked for, and goes when the state it is of goes.
by("enumerate").addEventListener("click", () => drawOne("enumerated"));
function forget() {
  const section = by("enumerated");
  if (!section.dataset.state) return;
  delete section.dataset.state;
  for (const one of [".message", "figure", ".words"]) section.querySelector(one).replaceChildren();
}

by("controls").addEventListener("submit", (event) => event.preventDefault());
let wide = window.innerWidth;
window.addEventListener("resize", () => {
  if (Math.abs(window.innerWidth - wide) > 10) { wide = window.innerWidth; draw({}); }
});
showQuestion();
showValues();
draw({});
