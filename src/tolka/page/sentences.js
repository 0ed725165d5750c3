// A text into sentences that the model can translate, and what stands between their translations. Intl.Segmenter finds
// sentences by Unicode's rules (UAX 29); the rest is what a reader knows beyond these (tolka/translation/splitting.py).

import { normalizeSource } from "./characters.js";

const CLOSING = "[\"'”’»“‘)\\]）」』】》〉]";
const SMALL = "(?!\\p{Script=Georgian})\\p{Ll}"; // a letter that is no capital, in a script that has them
const UNSPACED = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer"].map((name) => `\\p{Script=${name}}`).join("");
const LONGEST_END = 20; // characters of a part that decide where its sentence ends, blanks included
// \0 is a sentence's end. More ends: stops that Unicode's rules do not know (of Khmer, Tibetan, Ethiopic and Greek, a
// bar for a danda, an Armenian colon), an ellipsis, and a speaker's dash.
const MORE_STOPS = new RegExp(
  `[។៕༎\\u037e]+${CLOSING}*\\s*|།\\s+།\\s*|፡፡\\s*|(?<=[\\p{Script=Devanagari}\\p{Script=Bengali}\\p{Script=Gurmukhi}` +
    `\\p{Script=Oriya}]\\s?)\\|\\s+|(?<=\\p{Script=Armenian}):\\s+|…${CLOSING}*\\s+(?=\\p{Lu})|` +
    `[.!?…]${CLOSING}*\\s+(?=[—–-]\\s?\\p{Lu})`,
  "gu",
);
const CLOSING_FIRST = new RegExp(`\\0((?:${CLOSING}+(?=[\\s\\0]|$)|[）」』】》〉]+)\\s*)`, "gu"); // of the part before
const LIST_NUMBER_LAST = /(?<=[.!?…]\s)(\d{1,3}[.)]\s+)\0/gu; // of the part after
// No end: after a quoted sentence that with who says it, no blank as in an address, and a single letter's stop.
const GOES_ON = new RegExp(
  `["”»“’]\\s+\\0${SMALL}|["”»“’]\\0(?![${UNSPACED}])\\p{L}|[!?]\\0[\\p{Ll}\\d]` +
    `|(?:^|[\\s(.])[\\p{Lu}\\p{Ll}]\\.\\s*\\0\\S` +
    "|[\"”’」』]\\0(?:\\p{Script=Han}{1,4}?[说說问問喊叫答]|と(?:言|い|思|叫|答|聞|問|呼|話|書|述|、)|って|など)",
  "u",
);
// Where a sentence that is too long is cut, the best places first, and whether there is a mark: after a sentence's end,
// after a clause's end, at a blank, before a character that is no accent or part of an emoji.
const CUTS = [
  [/(?<=[.!?…।॥۔؟።]["'”’)\]]*)\s+|(?<=[。！？；។៕][”’）」』]*)\s*(?![”’）」』])/gu, true],
  [/(?<=[,;:])\s+|(?<=[，、：])\s*/gu, true],
  [/\s+/gu, false],
  [/(?<!\u200d)(?![\p{M}\u200d\p{Emoji_Modifier}])/gu, false],
];

/** The sentences of a text, each with the blanks after it. abbreviations: pattern of those of the language, or null. */
export function splitSentences(text, language, abbreviations) {
  const segmenter = new Intl.Segmenter(/^[a-z]{2,3}$/.test(language) ? language : "en", { granularity: "sentence" });
  const marked = Array.from(segmenter.segment(text), ({ segment }) => segment.replace(MORE_STOPS, "$&\0")).join("\0");
  const moved = marked.replace(/\0+/g, "\0").replace(CLOSING_FIRST, "$1\0").replace(LIST_NUMBER_LAST, "\0$1");
  const parts = moved.split("\0");
  const abbreviated = abbreviations ? new RegExp(abbreviations, "iu") : /(?!)/;
  const sentences = [];
  let pending = ""; // parts without a letter, or whose sentence goes on
  for (const [n, part] of parts.entries()) {
    pending += part;
    const between = `${pending.slice(-LONGEST_END)}\0${(parts[n + 1] ?? "").slice(0, LONGEST_END)}`;
    if (!/\p{L}/u.test(pending) || (parts[n + 1] && (GOES_ON.test(between) || abbreviated.test(between)))) continue;
    sentences.push(pending);
    pending = "";
  }
  if (pending) sentences.push((sentences.pop() ?? "") + pending);
  return sentences;
}

/** The best place to cut a text, nearest to its middle: {end of the left part, start of the right one, atMark}. */
function bestCut(text) {
  const distance = ({ end }) => Math.abs(end - text.length / 2);
  for (const [pattern, atMark] of CUTS) {
    const cuts = Array.from(text.matchAll(pattern), ({ 0: blank, index }) => {
      return { end: index, start: index + blank.length, atMark };
    }).filter(({ end, start }) => end > 0 && start < text.length);
    if (cuts.length) return cuts.reduce((one, other) => (distance(other) < distance(one) ? other : one));
  }
  return null;
}

/** A source's blank between two sentences as the target language has it. blank: that language's, null if unknown. */
function separatorBetween(between, atMark, blank) {
  if (blank === null) return between;
  if (!blank) return between === " " ? "" : between; // a line feed or several blanks are layout, and stay
  return between || (atMark ? " " : ""); // a full-width mark has no blank after it
}

/** Splits texts into parts that the model can translate. */
export class Splitter {
  /** about: `about_splitter` in tolka/formats/html/model.py. characters: as in characters.js. */
  constructor(about, characters, tokenizer) {
    Object.assign(this, { about, characters, tokenizer });
  }

  /**
   * Split a text, line by line: {sentences, separators}. The separators are before, between and behind the translations
   * of the sentences, which have at most maxLength subwords each, unless one is a single character.
   */
  split(text, direction) {
    const { language, abbreviations, blank } = this.about.directions[`${direction.source}-${direction.target}`];
    const normalize = (part) => normalizeSource(part, this.characters, direction.source);
    const sentences = [], separators = [""];
    for (const [n, line] of text.split(/\r\n?|\n/).entries()) {
      let separator = (n ? "\n" : "") + /^\s*/.exec(line)[0];
      const content = normalize(line);
      const parts = this.about.split === "sentences" ? splitSentences(content, language, abbreviations) : [content];
      for (const part of parts.filter(Boolean)) {
        for (const { before, segment } of this.cut(normalize(part), direction, blank)) {
          sentences.push(segment);
          separators.push(separators.pop() + separator + before, "");
          separator = "";
        }
        separator = separatorBetween(/\s*$/.exec(part)[0], true, blank);
      }
      if (!content) separators.push(separators.pop() + separator);
    }
    return { sentences, separators };
  }

  /** Cut a sentence near its middle until each part is short enough: {separator before it, part} of each. */
  cut(text, direction, blank) {
    const { split, maxLength } = this.about;
    const { source: tags } = this.tokenizer.tags(direction);
    const length = this.tokenizer.encodeSource(text, direction).length - tags.length - 1; // without </s>
    const cut = split !== "never" && length > maxLength ? bestCut(text) : null;
    if (!cut) return [{ before: "", segment: text }];
    const left = this.cut(text.slice(0, cut.end), direction, blank);
    const right = this.cut(text.slice(cut.start), direction, blank);
    right[0].before = separatorBetween(text.slice(cut.end, cut.start), cut.atMark, blank);
    return [...left, ...right];
  }
}
