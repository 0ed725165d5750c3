// The page: a text goes to an engine, and comes back translated, sentence by sentence.
//
// The engine is an object with postMessage and onmessage: a Worker with the runtime of the file (file.js), or a server
// (server.js); worker.js has its messages. Texts of people and of models become textContent, never HTML.
const page = {}; // the elements, by id
for (const element of document.querySelectorAll("[id]")) page[element.id] = element;

const WITHOUT_SPACES = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
const RIGHT_TO_LEFT = ["Arab", "Hebr", "Syrc", "Thaa", "Nkoo", "Adlm", "Rohg", "Mand", "Samr"];
let engine = null; // until it is created
let models = [];
let directions = []; // {index: in this list, model: its index, direction: {source, target}}
let chosen = null; // one of them
let requests = 0; // numbers the requests; a newer one ends an older one
let current = {}; // the request of the whole text: {id, text, isDone}
let sentences = []; // of it: {source, start, text, isDone, isChosen by the person, attention, doubts, words, element}
let separators = [""]; // the text before, between and behind them
let opened = null; // {sentence, id}: the sentence whose alternatives are shown, and the request of them
let timer = 0;

function make(name, properties, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// ---- Opening ----

/** Shows the page. createEngine: makes its engine of what the page knows of its models. */
async function open(createEngine, about = JSON.parse(page.about.textContent)) {
  models = about.models;
  directions = models.flatMap((each, model) => each.directions.map((direction) => ({ model, direction })));
  directions.forEach((each, index) => Object.assign(each, { index }));
  const labels = [];
  for (const { index, model, direction } of directions) {
    const names = models[model].languages ? "Any language"
      : `${languageOf(direction.source).name} → ${languageOf(direction.target).name}`;
    labels.push(models.length > 1 ? `${names} · ${models[model].title}` : names);
    const number = labels.filter((label) => label === labels[index]).length; // of models with one name and direction
    page.direction.add(new Option(number > 1 ? `${labels[index]} (${number})` : labels[index], index));
  }
  page.choice.hidden = directions.length < 2;
  page.workspace.hidden = false;
  choose(directions[0]);
  engine = await createEngine(about);
  engine.onmessage = ({ data }) => RECEIVED[data.kind](data);
  translate();
}

function fail(message) {
  Object.assign(page.notice, { textContent: message, className: "failed", hidden: false });
  page.workspace.hidden = true;
}

// ---- Languages ----

/** A language's name in English, its code in HTML and how it is written; of an unknown one the code alone. */
function languageOf(code) {
  const lang = code.replaceAll("_", "-");
  try {
    const { language, script } = new Intl.Locale(lang).maximize();
    const name = new Intl.DisplayNames(["en"], { type: "language" }).of(lang);
    const dir = RIGHT_TO_LEFT.includes(script) ? "rtl" : script ? "ltr" : "auto";
    return { name, lang, dir, written: `${language}-${script}` };
  } catch {
    return { name: code || "Text", lang, dir: "auto" };
  }
}

function choose(direction) {
  chosen = direction;
  page.direction.value = chosen.index;
  for (const side of ["source", "target"]) {
    const { name, lang, dir } = languageOf(chosen.direction[side]);
    page[`${side}-name`].textContent = name;
    for (const element of document.querySelectorAll(`.${side}`)) Object.assign(element, { lang, dir });
  }
  const [source, target] = ["source", "target"].map((side) => languageOf(chosen.direction[side]).name);
  document.title = page.title.textContent = `Translate ${source} to ${target}`;
  page.swap.hidden = !opposite();
  page.verdict.textContent = models[chosen.model].verdict;
  page.card.replaceChildren(...markdown(models[chosen.model].card));
  page.direction.dispatchEvent(new Event("chosen"));
  sentences = [];
  translate();
}

/** The opposite of the chosen direction, of the same model if that has it. */
function opposite() {
  const { source, target } = chosen.direction;
  if (models[chosen.model].languages) return { ...chosen, direction: { source: target, target: source } };
  const all = directions.filter(({ direction }) => direction.source === target && direction.target === source);
  return all.find(({ model }) => model === chosen.model) ?? all[0];
}

// ---- Translating ----

function send(wishes) {
  requests += 1;
  engine?.postMessage({ kind: "translate", id: requests, model: chosen.model, direction: chosen.direction, ...wishes });
  return requests;
}

function translate() {
  clearTimeout(timer);
  light(null);
  page.alternatives.close();
  current = { text: page.source.value, isDone: false };
  current.id = send({ text: current.text, alternatives: 0, attention: true });
}

const RECEIVED = {
  opened({ simd }) {
    page.notice.hidden = simd !== false;
    page.notice.textContent = "Translating takes longer in this browser: it has no WebAssembly with SIMD.";
  },
  failed({ id, message }) {
    if (id === undefined) fail(message);
    else if (id === current.id) showFailure(message);
    else if (id === opened?.id) showAlternatives([], message);
  },
  split({ id, sources, separators: around }) {
    if (id !== current.id) return;
    const known = new Map(sentences.filter((each) => each.isDone).map((each) => [each.source, each]));
    let end = 0;
    separators = around;
    sentences = sources.map((source) => {
      const start = current.text.indexOf(source, end);
      if (start >= 0) end = start + source.length;
      const kept = known.get(source) ?? { text: "", isDone: false, attention: null, doubts: [] };
      return { ...kept, source, start, element: make("span") }; // kept with the alternative that was chosen
    });
    sentences.forEach(fill);
    page.spoken.replaceChildren();
    const parts = sentences.flatMap((each, index) => [each.element, separators[index + 1]]);
    page.translation.replaceChildren(separators[0], ...parts);
    showProgress();
  },
  partial({ id, index, text }) {
    if (id === current.id && !sentences[index].isDone) sentences[index].element.textContent = text;
  },
  translated({ id, index, text, attention, alternatives, doubts = [] }) {
    if (id === opened?.id) showAlternatives(alternatives.map((each) => each.text), "No other translation was found.");
    if (id !== current.id || sentences[index].isDone) return;
    Object.assign(sentences[index], { text, attention, doubts, isDone: true });
    fill(sentences[index]);
    say(text, page.translation.lang);
    showProgress();
  },
  done({ id }) {
    if (id !== current.id) return;
    current.isDone = true;
    showProgress();
    if (opened) askForAlternatives();
  },
};

function showProgress() {
  const finished = sentences.filter((each) => each.isDone).length;
  page.copy.hidden = !finished;
  page.progress.textContent = !current.isDone ? `Translated ${finished} of ${sentences.length} sentences …`
    : finished ? "Choose a sentence to see other translations of it." : "";
  if (current.isDone && sentences.some((each) => each.doubts.length)) page.progress.append(" Check those underlined.");
  page.progress.classList.remove("failed");
}

function showFailure(message) {
  page.progress.textContent = message;
  page.progress.classList.add("failed");
  say(message);
}

/** Puts a sentence's text into its element, with an element for each word where attention is known. */
function fill(sentence) {
  const { element, text, attention, isDone, doubts } = sentence;
  sentence.words = attention ? wordsOf(text, attention.target) : [];
  element.replaceChildren(...withSpans(text, sentence.words));
  element.className = isDone ? doubts.length ? "doubted" : "" : "unfinished";
  element.title = doubtText(doubts);
  if (!isDone) return;
  element.tabIndex = 0;
  element.setAttribute("role", "button");
}

const doubtText = (doubts) => (doubts.length ? `To be checked: ${doubts.join("; ")}.` : "");
const wholeTranslation = () => page.translation.textContent;

/** Lets a screen reader say a text: a sentence when it is finished, not each of its tokens. */
const say = (text, lang = "en") => page.spoken.append(make("p", { lang }, text));

// ---- Attention ----

/** The words of a text that subwords make up: [{start, end, subwords: indices of them}].
 *
 *  In scripts without spaces each subword stands for itself. A subword that is not in the text as it is (</s>, a tag, a
 *  byte, a normalised character) is left out.
 */
function wordsOf(text, subwords) {
  const words = [];
  const lower = text.toLowerCase();
  let end = 0;
  for (const [index, subword] of subwords.entries()) {
    const bare = subword.replaceAll("▁", "").toLowerCase();
    const start = bare ? lower.indexOf(bare, end) : -1;
    if (start < 0 || start > end + 16) continue; // further away it is another word
    if (start > end || !words.length || WITHOUT_SPACES.test(bare)) words.push({ start, subwords: [] });
    words.at(-1).subwords.push(index);
    end = words.at(-1).end = start + bare.length;
  }
  return words;
}

/** A text as nodes, each of its words in a span. */
function withSpans(text, words) {
  const ends = [0, ...words.map((word) => word.end)];
  const span = ({ start, end }) => make("span", { className: "word" }, text.slice(start, end));
  return [...words.flatMap((word, i) => [text.slice(ends[i], word.start), span(word)]), text.slice(ends.at(-1))];
}

/** Tints a sentence and its source and, for one of its words, the source words that it attends to.
 *
 *  The attention of a word to a source word is the sum over their subwords (weights: T x S), shown relative to the
 *  largest. Returns the source word that has it.
 */
function light(sentence, index = -1) {
  for (const element of page.translation.querySelectorAll(".lit")) element.classList.remove("lit");
  page.mirror.textContent = `${page.source.value}\u200b`; // an empty last line has its height, too
  if (!sentence || sentence.start < 0 || page.source.value !== current.text) return "";
  const { source, start, attention, element } = sentence;
  const word = sentence.words[index];
  const sourceWords = word ? wordsOf(source, attention.source) : [];
  const tinted = make("span", { className: "sentence" }, ...withSpans(source, sourceWords));
  const behind = current.text.slice(start + source.length);
  page.mirror.replaceChildren(current.text.slice(0, start), tinted, `${behind}\u200b`);
  element.classList.add("lit");
  if (!sourceWords.length) return "";
  element.children[index].classList.add("lit");
  const masses = sourceWords.map(({ subwords }) => word.subwords.reduce((total, t) =>
    subwords.reduce((sum, s) => sum + attention.weights[t * attention.source.length + s], total), 0));
  const largest = Math.max(...masses);
  masses.forEach((mass, i) => tinted.children[i].style.setProperty("--mass", mass / largest));
  return tinted.children[masses.indexOf(largest)].textContent;
}

// ---- Alternatives ----

function openAlternatives(sentence) {
  opened = { sentence, id: 0 };
  page.asked.textContent = sentence.source;
  page.doubts.textContent = doubtText(sentence.doubts);
  showAlternatives([], "Looking …");
  page.alternatives.showModal();
  page.alternatives.dispatchEvent(new Event("opened"));
  if (current.isDone) askForAlternatives();
}

function askForAlternatives() {
  opened.id = send({ text: opened.sentence.source, alternatives: 4, attention: false, whole: true });
}

/** Shows a sentence's translation and others to choose from, or a line where there are none. */
function showAlternatives(texts, otherwise) {
  const { sentence } = opened;
  const shown = [...new Set([sentence.text, ...texts])];
  page.others.replaceChildren(...shown.map((text) => make("button", { onclick: () => replaceOpened(text) }, text)));
  page.others.firstChild.setAttribute("aria-current", "true");
  page.looking.textContent = shown.length > 1 ? "" : otherwise;
}

function replaceOpened(text) {
  const { sentence } = opened;
  const ofOtherWords = { attention: null, doubts: [] };
  if (text !== sentence.text) Object.assign(sentence, { text, isChosen: true, ...ofOtherWords });
  fill(sentence);
  showProgress();
  page.alternatives.close();
}

// ---- The model card ----

/** The elements of the Markdown of a model card: headings, paragraphs, lists, tables, code; links as text. */
function markdown(text) {
  const inline = (line) => line.replace(/\[([^\]]*)\]\(([^)]*)\)/g, "$1 ($2)").split(/(`[^`]+`)/)
    .map((part) => (/^`./.test(part) ? make("code", {}, part.slice(1, -1)) : part.replaceAll("**", "")));
  const row = (line, cell) => make("tr", {}, ...line.replace(/^\||\|\s*$/g, "").split("|")
    .map((each) => make(cell, {}, ...inline(each.trim()))));
  const table = ([head, , ...rows]) => make("table", {},
    make("thead", { hidden: !/[^|\s]/.test(head) }, row(head, "th")),
    make("tbody", {}, ...rows.map((line) => row(line, "td"))));
  const body = text.replace(/^---\n[^]*?\n---\n/, ""); // what the Hub reads
  return body.split(/(^```[^]*?^```)|\n{2,}|(^#+ .*$)/m).filter((part) => part?.trim()).map((part) => {
    const block = part.trim();
    const [, level, heading] = /^(#+) (.*)$/.exec(block) ?? [];
    if (level) return make(level.length > 1 ? "h3" : "h2", {}, ...inline(heading));
    if (block.startsWith("```")) return make("pre", {}, block.replace(/^```.*\n|\n?```$/g, ""));
    if (block.startsWith("|")) return table(block.split("\n"));
    if (!/^[-*] /.test(block)) return make("p", {}, ...inline(block));
    return make("ul", {}, ...block.slice(2).split(/\n[-*] /).map((item) => make("li", {}, ...inline(item))));
  });
}

// ---- What a person does ----

const sentenceOf = (target) => sentences.find(({ element, isDone }) => isDone && element.contains(target));
const lightAt = ({ target }) => {
  const sentence = sentenceOf(target);
  light(sentence, sentence && [...sentence.element.children].indexOf(target));
};

page.source.oninput = () => {
  clearTimeout(timer);
  timer = setTimeout(translate, engine?.typingPause ?? 250); // milliseconds without a key
  light(null);
};
page.direction.onchange = () => choose(directions[page.direction.value]);
page.swap.onclick = () => {
  page.source.value = wholeTranslation();
  choose(opposite());
};
page.copy.onclick = async () => {
  try {
    await navigator.clipboard.writeText(wholeTranslation());
  } catch { // on http, or where it is not allowed
    getSelection().selectAllChildren(page.translation);
    document.execCommand("copy");
  }
  say("Copied");
  page.copy.textContent = "Copied";
  setTimeout(() => Object.assign(page.copy, { textContent: "Copy" }), 1500);
};
page.translation.onpointerover = lightAt;
page.translation.onpointerleave = ({ pointerType }) => pointerType === "mouse" && light(null);
document.addEventListener("focusin", ({ target }) => page.alternatives.contains(target) || light(sentenceOf(target)));
page.translation.onclick = (event) => {
  if (sentenceOf(event.target) && getSelection().isCollapsed) openAlternatives(sentenceOf(event.target));
  lightAt(event);
};
page.translation.onkeydown = (event) => {
  const { key, target } = event;
  const forward = getComputedStyle(page.translation).direction === "rtl" ? "ArrowLeft" : "ArrowRight";
  if (key === "Enter" || key === " ") openAlternatives(sentenceOf(target));
  else if (key === "ArrowLeft" || key === "ArrowRight") {
    const index = [...target.children].findIndex((word) => word.matches(".lit")) + (key === forward ? 1 : -1);
    const attended = light(sentenceOf(target), index);
    if (attended) say(`${target.children[index].textContent}: ${attended}`);
  } else return;
  event.preventDefault();
};
page.close.onclick = () => page.alternatives.close();
page.alternatives.onclose = () => { opened = null; };
