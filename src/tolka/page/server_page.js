// What only a server's page has, joined behind the script of all pages and the engine: a token, a glossary, corrections
// and files.

const about = JSON.parse(page.about.textContent);
const { abilities } = about;
const server = new ServerEngine(about, askForToken);
server.token = recall("sessionStorage", "tolka token");

/** What the browser keeps; "" where it keeps nothing, as in a private window. */
function recall(storage, key) {
  try {
    return window[storage].getItem(key) ?? "";
  } catch {
    return "";
  }
}

function remember(storage, key, value) {
  try {
    window[storage].setItem(key, value);
  } catch {
    // it holds until the page is closed
  }
}

// ---- Models of many languages: a list of them for each side, and one entry in the list of directions ----

/** The direction chosen last, or one into the person's first language from the second, then English and Spanish. */
function firstDirection({ title, languages }) {
  const last = recall("localStorage", `tolka languages ${title}`).split(" ");
  const known = new Map(languages.map((code) => [languageOf(code).written, code]));
  const wished = [...navigator.languages, "en", "es"].map((code) => known.get(languageOf(code).written));
  const [target, source] = new Set([...last, ...wished, ...languages].filter((code) => languages.includes(code)));
  return { source, target };
}

/** Options by their names; where two languages have one name, with their codes. */
function optionsOf(languages) {
  const names = languages.map((code) => languageOf(code).name);
  const options = names.map((name, i) =>
    new Option(names.indexOf(name) === names.lastIndexOf(name) ? name : `${name}, ${languages[i]}`, languages[i]));
  return options.sort((a, b) => a.text.localeCompare(b.text, "en"));
}

for (const each of about.models) if (each.languages) each.directions = [firstDirection(each)];
page.choice.append(page.from, page.swap, page.into);
page.direction.addEventListener("chosen", () => {
  const { languages, title } = models[chosen.model];
  page.from.hidden = page.into.hidden = !languages;
  if (!languages) return;
  page.choice.hidden = false;
  page.direction.hidden = directions.length < 2;
  for (const [list, code] of [[page.from, chosen.direction.source], [page.into, chosen.direction.target]]) {
    if (list.languages !== languages) list.replaceChildren(...optionsOf(languages));
    Object.assign(list, { languages, value: code });
  }
  directions[chosen.index] = chosen; // for when it is chosen again
  remember("localStorage", `tolka languages ${title}`, `${page.into.value} ${page.from.value}`);
});
page.from.onchange = page.into.onchange = () => {
  const direction = { source: page.from.value, target: page.into.value };
  choose(direction.source === direction.target ? opposite() : { ...chosen, direction });
};

// ---- The token ----

let asking = null; // for all requests that wait for it

function askForToken(refused) {
  if (server.token !== refused) return server.token; // another request has had it since
  page.wrong.textContent = refused && "The server did not take this token.";
  asking ??= new Promise((resolve, reject) => {
    page.access.returnValue = page.token.value = "";
    page.access.showModal();
    page.access.onclose = () => {
      asking = null;
      const isGiven = page.access.returnValue === "given";
      if (isGiven) remember("sessionStorage", "tolka token", page.token.value);
      if (isGiven) resolve(page.token.value);
      else reject(new ServerError("This server needs a token."));
    };
  });
  return asking;
}

page.unlock.onsubmit = (event) => {
  event.preventDefault();
  page.access.close("given");
};

// ---- The glossary ----

const keyOfGlossary = () => `tolka glossary ${chosen.direction.source}-${chosen.direction.target}`;
let waiting = 0; // the timer of terms that are being typed

function readTerms() {
  const { glossary, faulty } = parseTerms(page.terms.value);
  const lacking = faulty.length ? ` Not understood: line ${faulty.join(", ")}.` : "";
  page.counted.textContent = `Terms: ${Object.keys(glossary).length}.${lacking}`;
  page.counted.className = lacking && "failed";
  server.glossary = glossary;
}

page.direction.addEventListener("chosen", () => {
  page.terms.value = recall("localStorage", keyOfGlossary());
  readTerms();
});
page.terms.oninput = () => {
  remember("localStorage", keyOfGlossary(), page.terms.value);
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    readTerms();
    sentences = sentences.filter((each) => each.isChosen);
    translate();
  }, 800); // milliseconds without a key
};

// ---- Corrections ----

page.alternatives.append(page.correction);
page.kept.hidden = !abilities.suggestions;
page.alternatives.addEventListener("opened", () => { page.own.value = opened.sentence.text; });
page.correction.onsubmit = async (event) => {
  event.preventDefault();
  const { source: q, text: translation } = opened.sentence;
  const s = page.own.value.trim();
  if (!s) return;
  replaceOpened(s);
  if (!abilities.suggestions || s === translation) return;
  try {
    await server.ask("POST", "suggest", { fields: { q, s, ...chosen.direction, translation }, failed: showFailure });
    page.progress.textContent = "The server has kept your translation. Thank you.";
    page.progress.classList.remove("failed");
    say(page.progress.textContent);
  } catch ({ message }) {
    showFailure(`The server has not kept your translation: ${message}`);
  }
};

// ---- Files ----

let queue = Promise.resolve(); // one file after the other

/** Adds a file to the list, from which a button removes it, here and on the server. */
function addFile(file) {
  const state = make("span", { className: "soft", textContent: "Waiting" });
  const bar = make("progress", { value: 0, ariaLabel: file.name });
  const button = make("button", { textContent: "Cancel", ariaLabel: `Cancel ${file.name}` });
  const item = make("li", {}, make("bdi", { dir: "ltr" }, file.name), bar, state, button);
  const { model, direction } = chosen;
  const leaving = new AbortController();
  const { signal } = leaving;
  page.documents.append(item);
  button.onclick = () => {
    leaving.abort(new Error("removed"));
    item.remove();
    page.choose.focus();
  };
  const show = (message, share = bar.value) => {
    state.textContent = message;
    bar.value = share;
  };
  const end = (message, link = "", ...results) => {
    show(message);
    say(`${file.name}: ${message}`);
    bar.replaceWith(link);
    item.append(...results);
    Object.assign(button, { textContent: "Remove", ariaLabel: `Remove ${file.name}` });
  };
  queue = queue.then(async () => {
    try {
      signal.throwIfAborted();
      end(...summaryOf(...await translateFile(file, { ...direction, model: models[model].title }, signal, show)));
    } catch ({ message }) {
      if (signal.aborted) return;
      state.className = "failed";
      end(`Failed: ${message}`);
    }
  });
}

/** The report of a file's translation, and its address. show: receives how far it is. */
async function translateFile(file, fields, signal, show) {
  show("Sending");
  if (file.size > abilities.file_bytes) throw new Error(`it has more than ${abilities.file_bytes / 1e6} MB`);
  await file.slice(0, 1).arrayBuffer(); // an error where it is a folder, or gone
  const form = new FormData();
  for (const [name, value] of Object.entries({ file, ...fields })) form.append(name, value);
  const { id } = await server.ask("POST", "v1/documents", { form, signal, failed: show });
  const path = `v1/documents/${id}`;
  const remove = () => fetch(path, { method: "DELETE", keepalive: true }).catch(() => {}); // or it ends after an hour
  signal.addEventListener("abort", remove);
  addEventListener("pagehide", remove);
  for (;;) {
    const { state, share, error, report } = await server.ask("GET", path, { signal, failed: show });
    if (error) throw new Error(error);
    if (report) return [report, path];
    show(state === "waiting" ? "Waiting" : `Translating, ${Math.floor(100 * share)} %`, share);
    await pause(0.5, signal);
  }
}

/** What became of a document: a line, and elements to download it and to check it. */
function summaryOf({ translated, left_alone: leftAlone, check }, path) {
  const left = Object.entries(leftAlone).map(([reason, number]) => `${number} ${reason}`).join(", ");
  const row = ({ where, why, source, translation }) => make("li", {},
    make("strong", {}, `${where}: ${inWords(why).join("; ")}`),
    make("p", { dir: "auto" }, source), make("p", { dir: "auto" }, translation));
  const link = make("a", { href: `${path}/file`, download: "", textContent: "Download" });
  const summary = make("summary", {}, `To be checked: ${check.length}`);
  const list = make("details", {}, summary, make("ul", {}, ...check.map(row)));
  const message = `Texts translated: ${translated}.${left && ` Left as they are: ${left}.`}`;
  return [message, link, ...(check.length ? [list] : [])];
}

page.choose.onclick = () => page.file.click();
page.file.accept = abilities.endings.join(",");
page.file.onchange = () => {
  [...page.file.files].forEach(addFile);
  page.file.value = ""; // the same one may come again
};
document.ondragover = (event) => {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  page.files.className = "over";
};
document.ondragleave = ({ relatedTarget }) => { if (!relatedTarget) page.files.className = ""; };
document.ondrop = (event) => {
  page.files.className = "";
  if (!event.dataTransfer.files.length) return;
  event.preventDefault();
  [...event.dataTransfer.files].forEach(addFile);
};

open(() => server, about).then(() => {
  page.notice.hidden = true;
  if (abilities.token && !server.token) askForToken("").then((token) => { server.token = token; }, () => {});
});
