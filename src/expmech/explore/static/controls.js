"use strict";
// The state of the page and its controls. Every value is text, as in the address.
const facts = JSON.parse(document.getElementById("facts").textContent);
const state = facts.state;
const by = (id) => document.getElementById(id);

const OWN = { prior: "attacker", releases: "composition", failure: "composition",
              people: "paper", weight: "paper", pace: "paper" };
const EPSILON = { low: 0.01, high: 100 };
const STEPS = 400;

const three = (number) => String(Number(number.toPrecision(3)));
const between = (number, low, high) => Math.min(Math.max(number, low), high);
// A place on a slider of STEPS steps, and the number there on a logarithmic scale.
const atPlace = (place, low, high) => low * (high / low) ** (place / STEPS);
const placeOf = (number, low, high) => Math.round(
  STEPS * Math.log(between(number, Math.min(low, high), Math.max(low, high)) / low)
  / Math.log(high / low));

function asked() { return facts.questions[state.question]; }

function options(select, entries, chosen) {
  select.replaceChildren(...entries.map(([value, words]) => new Option(words, value, false, value === chosen)));
}

function span(id, setting) {
  const field = by(`${id}-number`);
  field.min = setting.low;
  field.max = setting.high;
  for (const one of [field, by(id)]) one.disabled = setting.low === setting.high;
}

// Set what depends on the question: its words, its methods and how far its sliders go.
function showQuestion() {
  const one = asked();
  options(by("question"), Object.entries(facts.questions).map(([name, q]) => [name, q.label]), state.question);
  by("story").textContent = one.story;
  options(by("method"), Object.entries(one.methods), state.method);
  by("method-row").hidden = Object.keys(one.methods).length === 1;
  span("rows", one.rows);
  span("size", one.size);
  by("size").min = one.size.low;
  by("size").max = one.size.high;
  by("size-label").textContent = sentence(one.sizeLabel).slice(0, -1);
  by("size-number").setAttribute("aria-label", `${one.sizeLabel} as a number`);
  by("bounds").disabled = one.fixedBounds;
  by("bounds").hidden = one.fixedBounds;
}

// Show every value, but not in the control that is being moved.
function showValues(except) {
  const put = (id, value) => { if (id !== except) by(id).value = value; };
  put("epsilon", placeOf(Number(state.epsilon), EPSILON.low, EPSILON.high));
  put("epsilon-number", state.epsilon);
  by("epsilon").setAttribute("aria-valuetext", `epsilon = ${state.epsilon}`);
  const rows = asked().rows;
  if (rows.low < rows.high) put("rows", placeOf(Number(state.rows), rows.low, rows.high));
  put("rows-number", state.rows);
  by("rows").setAttribute("aria-valuetext", `${state.rows} rows`);
  put("size", state.size);
  put("size-number", state.size);
  put("lower", state.lower);
  put("upper", state.upper);
  for (const name of Object.keys(OWN)) {
    put(name, state[name]);
    by(name).nextElementSibling.textContent = state[name];
  }
}

function askQuestion(name) {
  const one = facts.questions[name];
  Object.assign(state, {
    question: name, method: Object.keys(one.methods)[0],
    rows: String(one.rows.start), size: String(one.size.start),
    lower: String(one.bounds[0]), upper: String(one.bounds[1]),
  });
  showQuestion();
}

// The accuracy slider: rough on the left. Its ends are the errors at the ends of epsilon.
let errors = null;
function showAccuracy(numbers, except) {
  errors = numbers.errors;
  const slider = by("accuracy");
  slider.disabled = errors === null;
  by("accuracy-reason").textContent = errors === null
    ? "No public number bounds the error of this answer: it depends on the rows. The picture shows it."
    : sentence(asked().errorSentence.replace("{}", asked().errorUnit ? "so many" : "so much"));
  by("accuracy-value").textContent = errors === null ? "" : `${words(numbers.error)} ${asked().errorUnit}`.trim();
  if (errors !== null && except !== "accuracy") slider.value = placeOf(numbers.error, errors[0], errors[1]);
  slider.setAttribute("aria-valuetext", by("accuracy-value").textContent);
}

function sentence(text) { return `${text[0].toUpperCase()}${text.slice(1)}.`; }

function words(number) {
  if (number >= 1000) return Math.round(number).toLocaleString("en");
  return number >= 0.001 ? three(number) : number.toExponential(1);
}
