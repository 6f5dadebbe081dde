// The page's own code. Corpus text reaches the page through textContent alone, never as markup.
"use strict";

// First Okabe and Ito's colours, which people with any colour vision can tell apart; grey is for all other labels.
const COLOURS = [
  "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c6d31", "#000000",
  "#7b3294", "#a6d854", "#b2182b", "#1b3a6b", "#f4a6b7", "#006d2c", "#fdd835",
];
const GREY = "#b4b4b4";
const METHODS = ["tsne", "pca"];
const [MOST_NATS, CONTEXT, EXAMPLES] = [12, 12, 3];

const data = JSON.parse(document.getElementById("data").textContent);
const state = {
  language: data.language, word: 0, layer: data.usage_layer, method: "tsne",
  colouring: Object.keys(data.agreements)[0] ?? "usage", kept: null, isTyped: false,
};
// What takes long to compute, by word; a page that is served gets it when the word is shown first.
const [parts, asked] = [data.parts ?? [], new Set()];
const at = (id) => document.getElementById(id);
const say = (name) => TEXTS[state.language][name] ?? name;
const nameOfColouring = (name) => TEXTS[state.language][name] ?? name.slice(name.indexOf(":") + 1);
// Offsets count characters, but strings of JavaScript count an emoji or a rare Han character twice.
const characters = data.lines.map(() => null);
const lineCharacters = (line) => (characters[line] ??= Array.from(data.lines[line][0]));

function add(parent, tag, text, attributes = {}) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  Object.assign(element, attributes);
  parent.append(element);
  return element;
}

function addChoices(id, values, label, chosen, choose) {
  at(id).replaceChildren();
  for (const value of values) {
    const button = add(at(id), "button", label(value), {type: "button", onclick: () => choose(value)});
    button.setAttribute("aria-pressed", String(value === chosen));
    button.dataset.value = String(value);
  }
}

function wordOf(point) {
  return data.words.findIndex(([, , , end]) => point < end);
}

const colourOfLabel = (label) => COLOURS[rankOf(label)] ?? GREY;
const colourOf = (point) => colourOfLabel(data.colourings[state.colouring].points[point]);
const numUsages = ([, , start, end]) => new Set(data.colourings.usage.points.slice(start, end)).size;
const firstPoint = () => data.words[state.word][2];
const pointsShown = () => data.points.map((_, point) => point).slice(...data.words[state.word].slice(2));
const placesShown = () => parts[state.word]?.maps[state.layer][state.method] ?? [];

// The map. Bokeh draws it; one source of data is filled anew for each word, layer and method.
const source = new Bokeh.ColumnDataSource({data: {x: [], y: [], colour: []}});
const figure = Bokeh.Plotting.figure({
  tools: "pan,wheel_zoom,box_zoom,reset,tap,hover", active_scroll: "wheel_zoom", sizing_mode: "stretch_both",
  x_range: new Bokeh.Range1d({start: -1100, end: 1100}), y_range: new Bokeh.Range1d({start: -1100, end: 1100}),
  toolbar_location: "right", outline_line_color: "#ddd",
});
figure.toolbar.logo = null;
figure.axis.visible = false;
figure.grid.visible = false;
const glyphs = figure.scatter({field: "x"}, {field: "y"}, {
  source, size: 12, fill_color: {field: "colour"}, fill_alpha: 0.8, line_color: "white", line_width: 0.5,
  selection_line_color: "black", selection_line_width: 2.5, selection_fill_alpha: 1,
});
glyphs.nonselection_glyph = null;
for (const tool of figure.toolbar.tools) {
  if (tool.type === "HoverTool") tool.tooltips = null;
  tool.visible = !["HoverTool", "TapTool"].includes(tool.type);
}
source.selected.properties.indices.change.connect(() => {
  const [index] = source.selected.indices;
  if (index !== undefined && state.kept !== firstPoint() + index) keep(firstPoint() + index);
});
source.inspect.connect(() => {
  const [index] = source.inspected.indices;
  if (index !== undefined) showDetails(firstPoint() + index);
  else showChosen();
});

function drawMap() {
  const [, count, start, end] = data.words[state.word];
  const places = placesShown();
  const points = places.map((_, index) => start + index);
  source.data = {
    x: places.map(([x]) => x), y: places.map(([, y]) => y), colour: points.map(colourOf),
  };
  source.selected.indices = state.kept === null ? [] : [state.kept - start];
  const note = parts[state.word] ? "" : say("computing");
  const agreements = Object.entries(data.agreements).map(([name, values]) => [name, ...values[state.word] ?? []]);
  const told = agreements.filter(([, value]) => value !== undefined).map(
    ([name, value, number]) => say("agreement")(nameOfColouring(name), value.toFixed(2), number),
  );
  at("message").textContent = [say("shown")(end - start, count), note, ...told].filter(Boolean).join(" · ");
  const isLabel = state.colouring.startsWith("label:");
  const layer = [
    isLabel ? say("labelNote") : "", say("layerNote")(state.layer), state.layer === data.usage_layer ? say("usageLayer") : "",
  ];
  const gap = state.language === "zh" ? "" : " ";
  at("explained").textContent = [...layer, say(`${state.method}Note`)].filter(Boolean).join(gap);
  drawLegend();
}

// The number of a label's colour: its own or, if there are more labels than colours, its rank among those of the word.
function rankOf(label) {
  const {labels, points} = data.colourings[state.colouring];
  if (state.colouring !== "usage" && labels.length <= COLOURS.length) return label;
  const ofWord = new Set(pointsShown().map((point) => points[point]).filter((other) => other !== null));
  return [...ofWord].sort((one, other) => one - other).indexOf(label);
}

// The labels of points, each with its points; those without a colour of their own are one entry, at the end.
function labelledPoints(chosen) {
  const {points, labels} = data.colourings[state.colouring];
  const found = new Map();
  for (const point of chosen) {
    const label = points[point];
    const entry = label === null ? "unlabelled" : (rankOf(label) < COLOURS.length ? label : "others");
    if (!found.has(entry)) found.set(entry, []);
    found.get(entry).push(point);
  }
  // Labels stand by frequency, but years and other numbers in their own order.
  const areNumbers = !labels.some((label) => label === "" || Number.isNaN(Number(label)));
  const order = (entry) => (typeof entry !== "number" ? Infinity : areNumbers ? Number(labels[entry]) : entry);
  return [...found].sort(([one], [other]) => order(one) - order(other));
}

function addLabel(parent, entry, count) {
  const {labels, labels_zh: chinese} = data.colourings[state.colouring];
  const shown = state.language === "zh" && chinese?.length ? chinese : labels;
  add(parent, "i").style.background = colourOfLabel(entry);
  const number = state.colouring === "usage" ? `${rankOf(entry) + 1} ` : "";
  parent.append(`${number}${typeof entry === "number" ? shown[entry] : say(entry)} `);
  add(parent, "small", String(count));
}

function drawLegend() {
  const entries = labelledPoints(pointsShown());
  at("legend").replaceChildren();
  if (state.colouring === "usage" && entries.length > 1) add(at("legend"), "li", say("usageNote"));
  for (const [entry, points] of entries) addLabel(add(at("legend"), "li"), entry, points.length);
}

// Lines of each label, those in the middle of its points, while no point is chosen.
function showExamples() {
  at("details").hidden = true;
  at("examples").hidden = false;
  at("examples").replaceChildren();
  const places = placesShown();
  if (!places.length) return;
  const placeOf = (point) => places[point - firstPoint()];
  for (const [entry, points] of labelledPoints(pointsShown())) {
    const heading = add(at("examples"), "h2");
    addLabel(heading, entry, points.length);
    const middle = [0, 1].map((axis) => points.reduce((sum, point) => sum + placeOf(point)[axis], 0) / points.length);
    const distance = (point) => Math.hypot(placeOf(point)[0] - middle[0], placeOf(point)[1] - middle[1]);
    const list = add(at("examples"), "ol");
    const nearest = [...points].sort((one, other) => distance(one) - distance(other));
    for (const point of nearest.slice(0, EXAMPLES)) addLine(list, point);
  }
}

// Lists of words and lines.
function drawWords() {
  addChoices("words", data.words.keys(), (number) => data.words[number][0], state.word, chooseWord);
  for (const button of at("words").children) {
    const count = numUsages(data.words[button.dataset.value]);
    add(button, "small", ` ${count}`);
    button.title = say("usages")(count);
  }
}

function addLine(list, point, note = "") {
  const [line, start, end] = data.points[point];
  const choose = () => { chooseWord(wordOf(point)); keep(point); };
  addExcerpt(list, lineCharacters(line), start, end, note, choose);
}

function addExcerpt(list, text, start, end, note, choose) {
  const button = add(add(list, "li"), "button", undefined, {type: "button", className: "line", onclick: choose});
  if (note) { add(button, "small", note); button.append(" "); }
  button.append((start > CONTEXT ? "…" : "") + unspaced(text.slice(Math.max(0, start - CONTEXT), start).join("")));
  add(button, "mark", text.slice(start, end).join(""));
  button.append(unspaced(text.slice(end, end + 3 * CONTEXT).join("")));
}

// The line of a point. Segmented text is shown without its spaces, except between words in Latin letters.
const unspaced = (text) => (data.segmented ? text.replace(/(?<![!-~]) | (?![!-~])/g, "") : text);
const heat = (nats) => `rgba(214, 69, 36, ${(0.85 * Math.min(nats, MOST_NATS)) / MOST_NATS})`;

function showSentence(text, tokens, isMarked, choose) {
  at("details").hidden = false;
  at("examples").hidden = true;
  at("sentence").replaceChildren();
  let last = 0;
  const isLatin = (place) => /[!-~]/.test(text[place] ?? "");
  tokens.forEach(([from, to, forward, backward, isUnknown], position) => {
    const gap = text.slice(last, from).join("");
    if (!data.segmented || gap !== " " || (isLatin(last - 1) && isLatin(from))) at("sentence").append(gap);
    const token = add(at("sentence"), isMarked(from, position) ? "mark" : "span", text.slice(from, to).join(""));
    if (isUnknown) token.classList.add("unknown");
    if (forward !== null) token.style.backgroundColor = heat((forward + backward) / 2);
    const told = [forward === null ? "" : say("nats")(forward, backward), isUnknown ? say("unknown") : ""];
    token.onmouseenter = () => { at("surprisal").textContent = told.filter(Boolean).join(", "); };
    if (choose) {
      token.classList.add("asked");
      token.onclick = () => choose(position);
    }
    last = to;
  });
  at("sentence").append(text.slice(last).join(""));
  at("surprisal").textContent = say(data.has_softmax ? "moveOver" : "noSoftmax");
}

function showSubstitutes(substitutes) {
  at("substitutes").replaceChildren();
  for (const [word, probability] of substitutes ?? []) {
    const item = add(at("substitutes"), "span", `${word} `);
    add(item, "small", `${(100 * probability).toPrecision(2)}%`);
  }
}

function showDetails(point) {
  const [line, start] = data.points[point];
  const [, name, number] = data.lines[line];
  const part = parts[wordOf(point)];
  showSentence(lineCharacters(line), part?.tokens[point - firstPoint()] ?? [], (from) => from === start);
  at("source").textContent = `${name}:${number + 1}`;
  showSubstitutes(part?.substitutes?.[point - firstPoint()]);
  at("neighbours").replaceChildren();
  for (const [other, cosine] of data.neighbours[state.layer][point]) {
    addLine(at("neighbours"), other, (cosine / 1000).toFixed(3));
  }
}

// A sentence that was typed, if the page is served.
async function ask(question) {
  document.body.classList.add("waiting");
  try {
    const options = {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(question)};
    const answer = await fetch("/sentence", options);
    if (!answer.ok) throw new Error(answer.statusText);
    return await answer.json();
  } catch (error) {
    at("hint").textContent = `${say("failed")} (${error.message})`;
    return null;
  } finally {
    document.body.classList.remove("waiting");
  }
}

async function loadPart(word) {
  if (parts[word] || asked.has(word)) return;
  asked.add(word);
  parts[word] = await ask({word});
  asked.delete(word);
  if (parts[word] && word === state.word) draw();
}

async function askSentence() {
  const answer = await ask({text: at("typed").value});
  if (answer) showTyped(answer, -1, {substitutes: [], neighbours: []});
}

async function askToken(sentence, position) {
  const answer = await ask({text: sentence.text, token: position, layer: state.layer});
  if (answer) showTyped(sentence, position, answer);
}

function showTyped(sentence, chosen, {substitutes, neighbours}) {
  Object.assign(state, {kept: null, isTyped: true});
  at("hint").textContent = say("hint");
  const text = Array.from(sentence.text);
  showSentence(text, sentence.tokens, (_, position) => position === chosen, (position) => askToken(sentence, position));
  at("source").textContent = say("own");
  showSubstitutes(substitutes);
  at("neighbours").replaceChildren();
  for (const [cosine, line, start, end, name, number] of neighbours) {
    addExcerpt(at("neighbours"), Array.from(line), start, end, cosine.toFixed(3), () => {
      at("hint").textContent = `${name}:${number + 1}`;
    });
  }
}

// What is shown beside the map: a point, a sentence that was typed, which stays until a point is chosen, or examples.
function showChosen() {
  if (state.kept !== null) showDetails(state.kept);
  else if (!state.isTyped) showExamples();
}

function keep(point) {
  Object.assign(state, {kept: point, isTyped: false});
  source.selected.indices = [point - firstPoint()];
  showChosen();
  writeAddress();
}

function chooseWord(number) {
  if (number === state.word) return;
  Object.assign(state, {word: number, kept: null, isTyped: false});
  draw();
}

function draw() {
  const layerName = (layer) => (layer === 0 ? say("tokenLayer") : String(layer));
  addChoices("layers", data.layers, layerName, state.layer, (value) => { state.layer = value; draw(); });
  addChoices("methods", METHODS, say, state.method, (value) => { state.method = value; draw(); });
  addChoices("colourings", Object.keys(data.colourings), nameOfColouring, state.colouring, (value) => {
    state.colouring = value;
    draw();
  });
  drawWords();
  drawMap();
  loadPart(state.word);
  showChosen();
  writeAddress();
}

function chooseLanguage(language) {
  state.language = language;
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]")) element.textContent = say(element.dataset.text);
  at("language").textContent = say("other");
  at("typed").placeholder = say("type");
  for (const tool of figure.toolbar.tools) tool.description = say(tool.type);
  at("made-with").textContent = say("madeWith")(data.index, data.model);
  at("scale").hidden = !data.has_softmax;
  draw();
}

// The word whose usages agree best with the first labels; without labels the first one, whose usages are clearest.
function clearestWord() {
  const agreements = (Object.values(data.agreements)[0] ?? [[0]]).map((ofWord) => ofWord?.[0] ?? -1);
  return agreements.indexOf(Math.max(...agreements));
}

// The address says what is shown, so that it can be kept and sent: #zh, or #lang=zh&word=WORD&layer=2&map=pca.
function openAddress() {
  const asked = new URLSearchParams(location.hash.slice(1));
  const choose = (name, values) => values.map(String).indexOf(asked.get(name));
  const word = choose("word", data.words.map(([spelled]) => spelled));
  state.word = word < 0 ? clearestWord() : word;
  state.layer = data.layers[choose("layer", data.layers)] ?? state.layer;
  state.method = METHODS[choose("map", METHODS)] ?? state.method;
  state.colouring = Object.keys(data.colourings)[choose("colour", Object.keys(data.colourings))] ?? state.colouring;
  const [, , start, end] = data.words[state.word];
  const point = start + Number(asked.get("occurrence") ?? NaN);
  if (point >= start && point < end) state.kept = point;
  const language = Object.keys(TEXTS).find((name) => asked.has(name) || asked.get("lang") === name);
  chooseLanguage(language ?? state.language);
}

function writeAddress() {
  const asked = {lang: state.language, word: data.words[state.word][0], layer: state.layer, map: state.method,
    colour: state.colouring, ...(state.kept === null ? {} : {occurrence: state.kept - firstPoint()})};
  history.replaceState(null, "", `#${new URLSearchParams(asked)}`);
}

at("live").hidden = !data.live;
at("live").onsubmit = (event) => { event.preventDefault(); askSentence(); };
at("language").onclick = () => chooseLanguage(state.language === "en" ? "zh" : "en");
openAddress();
const shown = Bokeh.Plotting.show(figure, "#map").then(() => true);
