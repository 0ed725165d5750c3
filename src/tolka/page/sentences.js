// A text into sentences that the model can translate, and what stands between their translations. Intl.Segmenter finds
// sentences by Unicode's rules (UAX 29); the rest is what a reader knows beyond these (tolka/translation/splitting.py).

import { normalizeSource } from "./characters.js";

const CLOSING = "[\"'”’»“‘)\\]）」』】》〉]";
const SMALL = "(?!\\p{Script=Georgian})\\p{Ll}"; // a letter that is no capital, in a script that has them
const UNSPACED = ["Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer"].map((name) => `\\p{Script=${name}}`).join("");
const LONGEST_END = 20; // characters of a part that decide where its sentence ends, blanks included
// Stops that Unicode's rules do not know (of Khmer, Tibetan, Ethiopic and Greek, a bar for a danda, an Armenian colon),
// a sentence in brackets, an ellipsis, and a speaker's dash.
const MORE_STOPS = new RegExp(
  `[។៕༎\\u037e]+${CLOSING}*\\s*|།\\s+།\\s*|፡፡\\s*|(?<=[\\p{Script=Devanagari}\\p{Script=Bengali}\\p{Script=Gurmukhi}` +
    `\\p{Script=Oriya}]\\s?)\\|\\s+|(?<=\\p{Script=Armenian}):\\s+|^[(（][^()（）]*(?<=[.!?。！？])[)）]\\s*` +
    `|…${CLOSING}*\\s+(?=\\p{Lu})|[.!?…]${CLOSING}*\\s+(?=[—–-]\\s?\\p{Lu})|(?<=\\p{Script=Georgian})[.!?]\\s+`,
  "gu",
);
const CLOSING_FIRST = new RegExp(`^(?:${CLOSING}+(?=\\s|$)|[）」』】》〉]+)\\s*`, "u"); // which the part before should have
const LIST_NUMBER_LAST = /(?<=[.!?…]\s)\d{1,3}[.)]\s+$/u; // which the part after should have
// The end of a part, \0 and the beginning of the next, where both are one sentence: after a quoted sentence that with
// who says it, a number that counts something, a single letter's stop, and no blank as in an address.
const GOES_ON = new RegExp(
  `\\d\\.\\s+\\0${SMALL}|\\0[—–-]\\s?${SMALL}|["”»“’]\\s+\\0${SMALL}|["”»“’]\\0(?![${UNSPACED}])\\p{L}` +
    "|[\"”’」』]\\0(?:\\p{Script=Han}{1,4}?[说說问問喊叫答]|と(?:言|い|思|叫|答|聞|問|呼|話|書|述|、)|って|など)" +
    `|[.…]\\s*\\0${SMALL}|[!?]\\0[\\p{Ll}\\d]|(?:^|[\\s(.])(?:\\p{Lu}|${SMALL})\\.\\s*\\0\\S`,
  "u",
);
const SENTENCE_END = /[.!?…।॥۔؟።]["'”’)\]]*(\s+)|[。！？；។៕။][”’）」』]*(\s*)/gu;
const CLAUSE_END = /[,;:](\s+)|[，、：](\s*)/gu;

/** The segments of a text, by Intl.Segmenter. */
function segmentsOf(text, language, granularity) {
  const [known] = Intl.getCanonicalLocales(/^[a-z]{2,3}$/.test(language) ? language : "en");
  return Array.from(new Intl.Segmenter(known, { granularity }).segment(text), ({ segment }) => segment);
}

/** The sentences that Intl.Segmenter finds, split at more stops; what is on the wrong side of a split is moved. */
function partsOf(text, language) {
  const parts = segmentsOf(text, language, "sentence").flatMap((part) => {
    const ends = Array.from(part.matchAll(MORE_STOPS), (match) => match.index + match[0].length);
    return [...ends, part.length].map((end, n) => part.slice(ends[n - 1] ?? 0, end)).filter(Boolean);
  });
  for (let n = 1; n < parts.length; n++) {
    const closing = CLOSING_FIRST.exec(parts[n])?.[0] ?? "";
    parts[n - 1] += closing;
    parts[n] = parts[n].slice(closing.length);
    const number = (parts[n] && LIST_NUMBER_LAST.exec(parts[n - 1])?.[0]) ?? "";
    parts[n - 1] = parts[n - 1].slice(0, parts[n - 1].length - number.length);
    parts[n] = number + parts[n];
    if (!parts[n]) [parts[n], parts[n - 1]] = [parts[n - 1], ""];
  }
  return parts.filter(Boolean);
}

/** The sentences of a text, each with the blanks after it. abbreviations: pattern of those of the language, or null. */
export function splitSentences(text, language, abbreviations) {
  const abbreviated = abbreviations ? new RegExp(abbreviations, "iu") : /(?!)/;
  const sentences = [];
  let pending = ""; // parts without a letter, or whose sentence goes on
  partsOf(text, language).forEach((part, n, parts) => {
    pending += part;
    const between = `${pending.slice(-LONGEST_END)}\0${(parts[n + 1] ?? "").slice(0, LONGEST_END)}`;
    if (!/\p{L}/u.test(pending) || (parts[n + 1] && (GOES_ON.test(between) || abbreviated.test(between)))) return;
    sentences.push(pending);
    pending = "";
  });
  if (pending) sentences.push((sentences.pop() ?? "") + pending);
  return sentences;
}

/** The best place to cut a text, as [end of the left part, start of the right part, at a mark?]; null for none. */
function bestCut(text) {
  const middle = text.length / 2;
  const nearest = (cuts) => cuts.reduce((a, b) => (Math.abs(b[0] - middle) < Math.abs(a[0] - middle) ? b : a));
  for (const [pattern, atMark] of [[SENTENCE_END, true], [CLAUSE_END, true], [/(\s+)/gu, false]]) {
    const cuts = Array.from(text.matchAll(pattern), (match) => {
      const start = match.index + match[0].length;
      return [start - (match[1] ?? match[2]).length, start, atMark];
    }).filter(([end, start]) => end > 0 && start < text.length);
    if (cuts.length) return nearest(cuts);
  }
  let end = 0; // between two characters as a reader counts them, a letter with its accents for one
  const cuts = segmentsOf(text, "en", "grapheme").slice(0, -1).map(({ length }) => [(end += length), end, false]);
  return cuts.length ? nearest(cuts) : null;
}

/** A source's blank between two sentences as the target language has it. blank: that language's, null if unknown. */
function separatorBetween(between, atMark, blank) {
  if (blank === null) return between;
  if (!blank) return between === " " ? "" : between; // a line feed or several blanks are layout, and stay
  return between || (atMark ? " " : ""); // a full-width mark has no blank after it
}

/** Splits texts into parts that the model can translate. */
export class Splitter {
  /** about: `about_splitter` in tolka/formats/html/tokenizer.py. characters: as in characters.js. */
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
    const sentences = [], separators = [];
    let separator = "";
    text.split(/\r\n?|\n/).forEach((line, n) => {
      separator += (n ? "\n" : "") + /^\s*/.exec(line)[0];
      const content = normalize(line);
      const parts = this.about.split === "sentences" ? splitSentences(content, language, abbreviations) : [content];
      parts.filter(Boolean).forEach((part, place) => {
        if (place) separator = separatorBetween(/\s*$/.exec(parts[place - 1])[0], true, blank);
        for (const [before, segment] of this.cut(normalize(part), direction, blank)) {
          sentences.push(segment);
          separators.push(separator + before);
          separator = "";
        }
      });
    });
    return { sentences, separators: [...separators, separator] };
  }

  /** Cut a sentence near its middle until each part is short enough: [separator before it, part] of each. */
  cut(text, direction, blank) {
    const { split, maxLength } = this.about;
    const isLong = split !== "never" && this.tokenizer.sourceLength(text, direction) > maxLength;
    const cut = isLong ? bestCut(text) : null;
    if (!cut) return [["", text]];
    const [end, start, atMark] = cut;
    const [[, first], ...others] = this.cut(text.slice(start), direction, blank);
    const separator = separatorBetween(text.slice(end, start), atMark, blank);
    return [...this.cut(text.slice(0, end), direction, blank), [separator, first], ...others];
  }
}
