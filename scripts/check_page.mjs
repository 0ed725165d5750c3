// Checks an exported page, or that of mt-serve, in real browsers, as a person uses it, and writes screenshots.
//
//   npm install puppeteer-core axe-core        (in any folder; run this from there)
//   node .../scripts/check_page.mjs translator.html FOLDER ["A first sentence. A second one."]
//   node .../scripts/check_page.mjs http://127.0.0.1:5000/ FOLDER ["A first sentence. A second one."]
//
// In Chromium and Firefox (/usr/bin/chromium and /usr/bin/firefox-esr, or CHROMIUM and FIREFOX), from file:// and
// without a network: the time to the first translation, alternatives, attention and copying by keyboard, what a screen
// reader is told, that nothing can be requested. In Chromium also axe-core and screenshots in three widths, light and
// dark; and of a server's page the time from the last key to the translation, a busy and an absent server, documents, a
// glossary and a correction. Exits with 1 if a check fails.
import { createServer } from "node:http";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath, pathToFileURL } from "node:url";

const require = createRequire(resolve("package.json"));
const puppeteer = require("puppeteer-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const [file, folder, text = "A small house. It is old."] = process.argv.slice(2);
const isServed = /^https?:/.test(file);
const address = isServed ? file : pathToFileURL(resolve(file)).href;
const FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"];
const BROWSERS = {
  chromium: { executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS },
  firefox: { executablePath: process.env.FIREFOX ?? "/usr/bin/firefox-esr", browser: "firefox" },
};
const readme = fileURLToPath(new URL("../README.md", import.meta.url));
let failures = 0;

function check(name, isRight, found = "") {
  if (!isRight) failures += 1;
  console.log(`${isRight ? "ok    " : "FAILED"} ${name}${found === "" ? "" : `: ${found}`}`);
}

const textOf = (tab, selector) => tab.$eval(selector, (element) => element.textContent);
const paste = (tab, added) => tab.evaluate((inserted) => {
  document.querySelector("#source").focus();
  document.execCommand("insertText", false, inserted);
}, added);
const isDone = (tab) => tab.waitForFunction(
  () => document.querySelector("#progress").textContent.startsWith("Choose") && !document.querySelector("#copy").hidden,
  { timeout: 120_000 },
);

async function openPage(browser, name, url = address) {
  const tab = await browser.newPage();
  tab.requests = [];
  tab.on("request", (request) => tab.requests.push(request.url()));
  tab.on("pageerror", ({ message }) => { // Firefox looks for an icon, which the policy forbids
    if (!message.includes("favicon.ico")) check(`${name}: no error`, false, message);
  });
  tab.on("console", (message) => check(`${name}: nothing on the console`, false, message.text()));
  await tab.goto(url);
  return tab;
}

async function useIt(browser, name) {
  const startedAt = performance.now();
  const tab = await openPage(browser, name);
  await paste(tab, text);
  await isDone(tab);
  const seconds = (performance.now() - startedAt) / 1000;
  console.log(`       ${name}: ${seconds.toFixed(2)} s from opening: ${await textOf(tab, "#translation")}`);
  const outside = tab.requests.filter((url) => !/^(file|blob|data):/.test(url) && !(isServed && url.startsWith(address)));
  check(`${name}: no request elsewhere`, outside.length === 0, outside.join(" "));

  // A screen reader hears each sentence once.
  const sentences = await tab.$$eval("#translation [role=button]", (all) => all.map((each) => each.textContent));
  const heard = await tab.$$eval("#spoken p", (all) => all.map((each) => each.textContent));
  check(`${name}: each sentence is said once`, heard.join("|") === sentences.join("|"), heard.length);

  // By keyboard: the words of the first sentence, then its alternatives, of which one is chosen.
  await tab.focus("#translation [role=button]");
  await tab.keyboard.press("ArrowRight");
  const masses = await tab.$$eval("#mirror .word", (all) => all.map((each) => Number(each.style.getPropertyValue("--mass"))));
  check(`${name}: attention`, masses.length === 0 || Math.max(...masses) === 1, masses.map((each) => each.toFixed(2)));
  await tab.keyboard.press("Enter");
  await tab.waitForFunction(() => !document.querySelector("#looking").textContent.startsWith("Looking"));
  const others = await tab.$$eval("#others button", (all) => all.map((each) => each.textContent));
  check(`${name}: alternatives`, others.length > 1 && others[0] === sentences[0], others.join(" | "));
  await tab.focus("#others button:last-child");
  await tab.keyboard.press("Enter");
  const replaced = await textOf(tab, "#translation [role=button]");
  check(`${name}: the chosen one is there`, replaced === others[others.length - 1], replaced);
  const focused = await tab.evaluate(() => document.activeElement.textContent);
  check(`${name}: the focus is back`, focused === replaced);

  // It stays when another sentence is added.
  await paste(tab, " More.");
  await wait(500); // until it is sent
  await isDone(tab);
  check(`${name}: and stays`, await textOf(tab, "#translation [role=button]") === replaced);
  check(`${name}: with the new one`, (await tab.$$("#translation [role=button]")).length === sentences.length + 1);
  await tab.close();
}

/** A server counts what reaches it: of a file opened from it, and of what a script in the page tries to request. */
async function countRequests(browser, name) {
  const paths = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    response.setHeader("Content-Type", "text/html");
    response.end(request.url === "/page" ? readFileSync(file) : "");
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const host = `http://127.0.0.1:${server.address().port}`;
  const tab = await browser.newPage();
  await tab.goto(isServed ? address : `${host}/page`);
  await paste(tab, text);
  await isDone(tab);
  await tab.evaluate(async (url) => {
    const add = (name, properties) => document.body.appendChild(Object.assign(document.createElement(name), properties));
    const worker = new Blob([`fetch("${url}/worker").finally(() => postMessage(0))`]);
    const attempts = [
      () => add("img", { src: `${url}/image` }),
      () => add("script", { src: `${url}/script` }),
      () => add("iframe", { src: `${url}/frame` }),
      () => add("link", { rel: "stylesheet", href: `${url}/style` }),
      () => navigator.sendBeacon(`${url}/beacon`),
      () => fetch(`${url}/fetch`),
      () => new Promise((done) => {
        Object.assign(new Worker(URL.createObjectURL(worker)), { onmessage: done, onerror: done });
      }),
      () => add("form", { action: `${url}/form` }).submit(),
    ];
    for (const attempt of attempts) {
      try {
        await attempt();
      } catch {
        // refused
      }
    }
  }, host);
  await wait(500);
  const expected = isServed ? "" : "/page";
  check(`${name}: a server is asked for the page alone`, paths.join(" ") === expected, paths.join(" "));
  await tab.close();
  server.close();
}

async function applyAxe(tab, name) {
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() => globalThis.axe.run());
  const found = violations.map((each) => `${each.impact} ${each.id} (${each.nodes[0].target})`).join(", ");
  check(`axe ${name}`, violations.length === 0, found);
}

/** The time from the last key to the translation of a sentence that the server has not had. */
async function measure(tab) {
  const times = [];
  for (let number = 1; number <= 11; number += 1) {
    await tab.$eval("#source", (element) => { element.value = ""; });
    await paste(tab, `There are ${number} new houses in the village`);
    await wait(1000);
    times.push(await tab.evaluate(() => new Promise((done) => {
      const startedAt = performance.now();
      const translated = new MutationObserver(() => {
        if (!document.querySelector("#spoken p")) return; // until it is said, and the older one no longer
        translated.disconnect();
        done(performance.now() - startedAt);
      });
      document.querySelector("#spoken").replaceChildren();
      translated.observe(document.querySelector("#spoken"), { childList: true });
      document.execCommand("insertText", false, ".");
    })));
  }
  return times.sort((a, b) => a - b)[5].toFixed(0);
}

/** What only a server's page has. */
async function useServer(browser, name) {
  const tab = await browser.newPage();
  await tab.goto(address);
  console.log(`       ${name}: ${await measure(tab)} ms from the last key to the translation (median of 11)`);

  const faults = [{ status: 503, headers: { "Retry-After": "1" }, body: '{"error": "too much to do"}' }, null];
  await tab.setRequestInterception(true);
  tab.on("request", (request) => {
    const fault = request.url().endsWith("/v1/translate") ? faults.shift() : undefined;
    if (fault) request.respond(fault);
    else if (fault === null) request.abort("connectionrefused");
    else request.continue();
  });
  await paste(tab, ` ${text}`);
  for (const words of ["too much to do", "cannot be reached"]) {
    await tab.waitForFunction((said) => document.querySelector("#progress").textContent.includes(said), {}, words);
    check(`${name}: ${words} is said`, (await textOf(tab, "#spoken")).includes(words));
    await applyAxe(tab, words);
  }
  await isDone(tab);
  check(`${name}: and the text is translated then`, (await tab.$$("#translation [role=button]")).length > 2);

  await tab.click("#tools > details summary");
  await tab.type("#terms", `${text.split(" ")[1]} = Zebra`);
  await tab.waitForFunction(() => document.querySelector("#translation").textContent.includes("Zebra"), { timeout: 9000 });
  await isDone(tab);
  await tab.click("#translation [role=button]");
  await tab.$eval("#own", (element) => { element.value = "Mine."; });
  await tab.click("#correction button");
  const first = await textOf(tab, "#translation [role=button]");
  check(`${name}: a glossary is used, and a correction takes its place`, first === "Mine.", first);

  await (await tab.$("#file")).uploadFile(fileURLToPath(import.meta.url), readme);
  await tab.waitForSelector("#documents a", { timeout: 120_000 });
  const states = await tab.$$eval("#documents > li > span", (all) => all.map((each) => each.textContent));
  check(`${name}: a document is translated, a script is not`, /^Failed/.test(states[0]) && /^Texts translated/.test(states[1]), states);
  const length = await tab.$eval("#documents a", async (link) => (await (await fetch(link.href)).text()).length);
  check(`${name}: and can be downloaded`, length > 1000, length);
  await applyAxe(tab, "documents");
  await tab.evaluate(() => localStorage.clear());
  await tab.close();
}

async function lookAtIt(browser) {
  mkdirSync(folder, { recursive: true });
  for (const scheme of ["light", "dark"]) {
    for (const width of [390, 900, 1400]) {
      const tab = await openPage(browser, `${width} ${scheme}`);
      await tab.setViewport({ width, height: width < 500 ? 844 : 800 });
      await tab.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await paste(tab, text);
      await isDone(tab);
      await tab.hover("#translation [role=button] .word:nth-child(2), #translation [role=button]");
      const shots = [["translated", async () => {}], ["card", async () => {
        for (const each of await tab.$$("summary")) await each.click();
      }], ["alternatives", async () => {
        await tab.click("#translation [role=button]");
        await tab.waitForFunction(() => !document.querySelector("#looking").textContent.startsWith("Looking"));
      }]];
      for (const [what, act] of shots) {
        await act();
        await tab.screenshot({ path: `${folder}/${what}-${width}-${scheme}.png`, fullPage: what === "card" });
        await applyAxe(tab, `${what} ${width} ${scheme}`);
      }
      const excess = await tab.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      check(`width ${width} ${scheme}: no horizontal scrolling`, excess <= 0, excess);
      await tab.close();
    }
  }
}

for (const [name, options] of Object.entries(BROWSERS)) {
  const browser = await puppeteer.launch({ headless: true, ...options });
  console.log(await browser.version());
  await useIt(browser, name);
  await countRequests(browser, name);
  if (isServed) await useServer(browser, name);
  if (name === "chromium") await lookAtIt(browser);
  await browser.close();
}
console.log(failures ? `${failures} checks failed` : "all checks passed");
process.exit(failures ? 1 : 0);
