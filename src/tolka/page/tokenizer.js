// Text to token ids and back, as SentencePiece does it (Kudo and Richardson 2018), and what tolka adds to it: tags of
// languages, and vocabularies whose ids are not those of the SentencePiece model.

import { bytesOfBase64, patternOf, strip } from "./characters.js";

export const EOS = 2, UNK = 3; // ids of </s> and <unk>
const BLANK = "\u2581"; // ▁, SentencePiece's mark of a word's beginning
const NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, BYTE = 6; // types of pieces
const UNKNOWN_PENALTY = 10; // an unknown character's log-probability below that of the least likely piece
const utf8Encoder = new TextEncoder();
const utf8Decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** The text of bytes, without those that make no character: the decoder writes U+FFFD for these. */
function textOfBytes(bytes) {
  const parts = String.fromCharCode(...bytes).split("\xef\xbf\xbd"); // U+FFFD that is meant
  const decode = (part) => utf8Decoder.decode(Uint8Array.from(part, (byte) => byte.charCodeAt(0)));
  return parts.map((part) => decode(part).replaceAll("\ufffd", "")).join("\ufffd");
}

/**
 * Makes of a text what pieces are cut from: characters replaced by rules, no blanks to spare, and ▁ for each blank.
 *
 * The rules (precompiled_charsmap) are a trie of UTF-8 bytes as a double array (Yata's darts-clone), and replacements,
 * each ended by a NUL byte. A unit of the array has 32 bits: bits 0-7 and 31 are its label, bit 8 says that a key ends
 * there, bits 10-30 are the offset of its children, times 256 if bit 9 is set.
 */
class Normalizer {
  /** about: normalizer_spec. symbols: pattern of what no rule changes. */
  constructor({ charsmap, addBlank, removeExtraBlanks }, symbols) {
    Object.assign(this, { addBlank, removeExtraBlanks, symbols: new RegExp(symbols, "uy") });
    const blob = bytesOfBase64(charsmap);
    const size = charsmap && new DataView(blob.buffer).getUint32(0, true); // bytes of the trie
    this.units = new Uint32Array(blob.buffer.slice(4, 4 + size));
    this.replacements = blob.subarray(4 + size);
  }

  normalize(text) {
    const { addBlank, removeExtraBlanks } = this;
    let result = "";
    for (let at = 0; at < text.length; ) {
      const [part, length] = this.next(text, at);
      at += length;
      result += removeExtraBlanks && (!result || result.endsWith(" ")) ? part.replace(/^ +/, "") : part;
    }
    if (!text || (removeExtraBlanks && !result)) return "";
    result = (addBlank ? ` ${result}` : result).replaceAll(" ", BLANK);
    return removeExtraBlanks ? result.replace(/\u2581+$/, "") : result; // a ▁ of the text itself as well
  }

  /** What stands for the text at a place, and the length of that: a symbol, the longest rule's, or one character. */
  next(text, start) {
    this.symbols.lastIndex = start;
    const [symbol] = this.symbols.exec(text) ?? [];
    const first = symbol ?? String.fromCodePoint(text.codePointAt(start));
    const children = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    let found = [first, first.length];
    let node = children(this.units[0]);
    for (let end = start; !symbol && end < text.length; ) {
      const character = String.fromCodePoint(text.codePointAt(end));
      end += character.length;
      for (const byte of utf8Encoder.encode(character)) {
        const unit = this.units[node ^ byte];
        if ((unit & 0x800000ff) !== byte) return found;
        node ^= byte ^ children(unit);
        if (unit & 256) found = [this.replacement(this.units[node] & 0x7fffffff), end - start];
      }
    }
    return found;
  }

  replacement(begin) {
    return utf8Decoder.decode(this.replacements.subarray(begin, this.replacements.indexOf(0, begin)));
  }
}

/** One SentencePiece model. about: its pieces, their scores and types, and its settings. */
class SentencePiece {
  constructor(about) {
    Object.assign(this, about, { types: [...about.types].map(Number), scores: new Float32Array(about.scores) });
    const named = this.pieces.map((piece, id) => [piece, id]);
    this.ids = new Map(named);
    this.unknown = this.types.indexOf(UNKNOWN);
    // What text is cut into; no text is spelt with the others.
    this.spelling = new Map(named.filter(([, id]) => [NORMAL, USER_DEFINED].includes(this.types[id])));
    this.symbols = new Set(this.pieces.filter((_, id) => this.types[id] === USER_DEFINED)); // each is always one piece
    const symbols = patternOf(this.symbols) || "(?!)";
    // A word model has whole words and no merges of them, a char model characters.
    this.parts = this.type === "word" ? /\u2581?[^\u2581]+|\u2581/g : new RegExp(`${symbols}|.`, "gsu");
    this.normalizer = new Normalizer(about.normalizer, symbols);
    this.longest = this.pieces.reduce((longest, piece) => Math.max(longest, piece.length), 1);
    const scores = this.scores.filter((_, id) => this.types[id] === NORMAL);
    this.lowest = scores.reduce((one, other) => Math.min(one, other), Infinity);
  }

  /** The pieces of a text as [piece, id]; of an unknown character one for each of its bytes, if the model has those. */
  encode(text) {
    const result = [];
    const normalized = this.normalizer.normalize(text);
    for (const [piece, id] of this.type === "unigram" ? this.likeliest(normalized) : this.merged(normalized)) {
      const last = result.at(-1);
      if (id === this.unknown && this.byteFallback) {
        for (const byte of utf8Encoder.encode(piece)) {
          const name = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
          result.push([name, this.ids.get(name)]);
        }
      } else if (id === this.unknown && last?.[1] === this.unknown) {
        last[0] += piece; // a run of unknown pieces is one
      } else {
        result.push([piece, id]);
      }
    }
    return result;
  }

  /**
   * Byte-pair encoding (Sennrich et al. 2016): of all neighbours that make a piece the best are merged, one by one; of
   * equally good ones the leftmost.
   */
  merged(text) {
    const parts = text.match(this.parts) ?? [];
    const scoreOf = (n) => {
      if (n + 1 >= parts.length || this.symbols.has(parts[n]) || this.symbols.has(parts[n + 1])) return -Infinity;
      return this.scores[this.spelling.get(parts[n] + parts[n + 1])] ?? -Infinity;
    };
    const scores = parts.map((_, n) => scoreOf(n)); // of each part with the next
    while (parts.length) {
      let best = 0;
      for (let n = 1; n < scores.length; n++) if (scores[n] > scores[best]) best = n;
      if (scores[best] === -Infinity) break;
      parts.splice(best, 2, parts[best] + parts[best + 1]);
      scores.splice(best, 1);
      scores[best] = scoreOf(best);
      if (best > 0) scores[best - 1] = scoreOf(best - 1);
    }
    return parts.map((part) => [part, this.spelling.get(part) ?? this.unknown]);
  }

  /**
   * The segmentation of the highest probability in a unigram language model (Kudo 2018), by Viterbi's algorithm:
   * best(end) = max over pieces that end there of best(start) + log p(piece). Sums are rounded to 32 bits as in the
   * library, so that ties are decided alike.
   */
  likeliest(text) {
    const best = new Map([[0, { score: 0 }]]); // end -> {score, start, id} of the best segmentation of text[:end]
    const improve = (start, end, id, score) => {
      const sum = Math.fround(best.get(start).score + score);
      if (!best.has(end) || sum > best.get(end).score) best.set(end, { score: sum, start, id });
    };
    for (let start = 0, size; start < text.length; start += size) {
      size = text.codePointAt(start) > 0xffff ? 2 : 1;
      const longest = Math.min(this.longest, text.length - start);
      let isKnown = false;
      for (let length = size; length <= longest; length++) {
        const piece = text.slice(start, start + length);
        const id = this.spelling.get(piece);
        if (id === undefined) continue;
        isKnown ||= length === size;
        const ofSymbol = Math.fround(0.1 * (utf8Encoder.encode(piece).length - 1)); // no logarithm is above 0
        improve(start, start + length, id, this.symbols.has(piece) ? ofSymbol : this.scores[id]);
      }
      if (!isKnown) improve(start, start + size, this.unknown, this.lowest - UNKNOWN_PENALTY);
    }
    const result = [];
    for (let end = text.length; end > 0; end = best.get(end).start) {
      const { start, id } = best.get(end);
      result.push([text.slice(start, end), id]);
    }
    return result.reverse();
  }

  /** The text of pieces; bytes that make no character are left out. */
  decode(pieces) {
    const { addBlank, removeExtraBlanks } = this.normalizer;
    let text = "";
    let bytes = [];
    let isFirst = addBlank || removeExtraBlanks; // whether a ▁ that begins the next piece is not of the text
    for (const piece of [...pieces, ""]) {
      const id = this.ids.get(piece) ?? this.unknown;
      if (piece && this.types[id] === BYTE) {
        bytes.push(parseInt(piece.slice(3, -1), 16));
        continue;
      }
      text += textOfBytes(bytes);
      bytes = [];
      if (text) isFirst = false;
      if (this.types[id] === CONTROL) continue;
      if (id === this.unknown) {
        text += piece === this.pieces[id] ? this.unknownSurface : piece;
        continue;
      }
      const isRemoved = isFirst && piece.startsWith(BLANK);
      if (isRemoved) isFirst = removeExtraBlanks;
      text += (isRemoved ? piece.slice(1) : piece).replaceAll(BLANK, " ");
    }
    return text;
  }
}

/** One side of a tokenizer: text to ids and back. vocabulary: if the ids are not those of the SentencePiece model. */
class Side {
  constructor(model, vocabulary) {
    Object.assign(this, { model, names: vocabulary?.subwords ?? model.pieces });
    this.never = new Set(vocabulary?.neverText); // ids: no text becomes one of these, and they become no text
    const ids = this.names.map((name, id) => [name, id]).filter(([, id]) => !this.never.has(id));
    this.ids = vocabulary ? new Map(ids) : null;
  }

  encode(text) {
    if (!this.ids) return this.model.encode(text).map(([, id]) => id);
    const tag = /^>>.*?<</s.exec(text)?.[0] ?? ""; // a language's tag (`>>deu<<`) at the beginning is one subword
    const start = this.ids.has(tag) ? [this.ids.get(tag)] : [];
    const pieces = this.model.encode(start.length ? text.slice(tag.length) : text);
    return [...start, ...pieces.map(([piece]) => this.ids.get(piece) ?? UNK)];
  }

  /** The text of ids, as one line. */
  decode(ids) {
    const text = this.model.decode(ids.filter((id) => !this.never.has(id)).map((id) => this.names[id]));
    const line = text.replace(/^\u2581/, "").replace(/[\n\r\0\u2581]/g, " ");
    return this.ids ? strip(line) : line;
  }
}

/** What a translator needs of a tokenizer. about: `about_tokenizer` in tolka/formats/html/model.py. */
export class Tokenizer {
  constructor(about) {
    const { vocabularies, directions, withoutText } = about; // withoutText: target ids that no translation has
    Object.assign(this, { directions, withoutText });
    const models = about.models.map((model) => new SentencePiece(model));
    this.source = new Side(models[0], vocabularies[0]);
    this.target = new Side(models.at(-1), vocabularies.at(-1));
  }

  /** The ids of the tags of a direction, as {source, target, typed}; typed: those that are left out of a source. */
  tags({ source, target }) {
    return this.directions[`${source}-${target}`];
  }

  /** The ids of a source text: tags x_1 .. x_n </s>. */
  encodeSource(text, direction) {
    const { source, typed } = this.tags(direction);
    const ids = this.source.encode(text);
    return [...source, ...(typed.includes(ids[0]) ? ids.slice(1) : ids), EOS];
  }

  decodeTarget(ids) {
    return this.target.decode(ids);
  }
}
