// The form of characters that a model knows: what cleaning made of its training text (tolka/text/characters.py).

// The control characters U+0080 to U+009F are hardly ever meant: the text is Windows-1252 that was read as ISO-8859-1.
// Here is what it has at these, as Node's decoder is wrong; five are no character. U+0085, the next line, is a break.
const WINDOWS_1252 = "€ ‚ƒ„…†‡ˆ‰Š‹Œ Ž  ‘’“”•–—˜™š›œ žŸ";
const CONTROLS = /[\x80-\x84\x86-\x9f]/g;
const BREAKS = /[\t\n\v\f\r\x1c-\x1f\x85\u2028\u2029]/g;
// In scripts without blanks between words a zero width space is between words; elsewhere it is inside of one.
const WITHOUT_BLANKS = "[\\p{Script=Khmer}\\p{Script=Lao}\\p{Script=Myanmar}\\p{Script=Thai}]";
const BETWEEN_WORDS = new RegExp(`(?<=${WITHOUT_BLANKS})\u200b|\u200b(?=${WITHOUT_BLANKS})`, "gu");
// Marks of direction order what is beside right-to-left letters, and only there. JavaScript knows no Bidi_Class: these
// are the blocks of the scripts that are written from right to left.
const DIRECTION = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const RIGHT_TO_LEFT = /(?=\p{L})[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
// Other control characters, soft hyphens, joiners of words, invisible operators, byte order marks.
const UNSEEN = /[\x00-\x08\x0e-\x1b\x7f\xad\u200b\u2060-\u2065\u206a-\u206f\ufeff]/g;
const BLANKS = /[\xa0\u1680\u2000-\u200a\u202f\u205f\u3000]/g;

/** The bytes of a base64 text. */
export const bytesOfBase64 = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));

/** A text without whitespace around it, as Python strips it: of information separators, too, but not of U+FEFF. */
export function strip(text) {
  const space = "[\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]+";
  return text.replace(new RegExp(`^${space}|${space}$`, "g"), "");
}

/** The text that a reader sees: breaks become blanks, and characters that nobody sees vanish. */
function visibleText(text) {
  const meant = (control) => WINDOWS_1252[control.charCodeAt(0) - 0x80].trim();
  text = text.replace(CONTROLS, meant).replace(BREAKS, " ").replace(BETWEEN_WORDS, " ");
  if (!RIGHT_TO_LEFT.test(text)) text = text.replace(DIRECTION, "");
  return text.replace(UNSEEN, "");
}

/** A text in the usual spelling of its language, by one rule: {where, letters} or {where, to}. */
function respelt(text, { where, letters, to }) {
  const write = { NFKC: (match) => match.normalize("NFKC") }[to] ?? to;
  if (!Object.keys(letters).length) return text.replace(new RegExp(where, "gu"), write);
  const one = new RegExp(patternOf(Object.keys(letters)), "gu");
  const around = new RegExp(where.replaceAll("{}", `(?:${one.source})`), "gu");
  return text.replace(around, (match) => match.replace(one, (letter) => letters[letter]));
}

/** A pattern of texts, of several that match the longest; "" for none. */
export function patternOf(texts) {
  const longestFirst = [...texts].sort((one, other) => other.length - one.length);
  return longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&")).join("|");
}

/** A source text in the model's form. about: `about_characters` in tolka/formats/html/model.py. */
export function normalizeSource(text, about, language) {
  if (about.control) text = visibleText(text);
  if (about.blanks) text = text.replace(BLANKS, " ");
  if (about.unicode) text = text.normalize("NFC"); // last, as an invisible character may stand before an accent
  return strip((about.typography[language] ?? []).reduce(respelt, text));
}
