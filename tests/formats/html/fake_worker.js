// An engine for tests of the page: it knows the protocol, takes its time, and turns words around.
let newest = 0;
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
const answers = {
  ar: "منزلي صغير ولكنه جميل جدا في الربيع", ko: "우리 집은 작지만 봄에는 아주 아름답습니다", ja: "私の家は小さいですが春はとてもきれいです",
};

onmessage = async ({ data }) => {
  if (data.kind === "open") {
    postMessage({ kind: "opened", simd: true });
    return;
  }
  const { id, text, direction, alternatives, whole } = data;
  newest = id;
  const parts = whole ? [text] : text.split(/(?<=[.!?。؟])(\s+)/);
  const sources = parts.filter((each, i) => i % 2 === 0 && each.trim());
  const between = parts.filter((each, i) => i % 2 === 1);
  const separators = sources.length ? ["", ...between.slice(0, sources.length - 1), ""] : [text];
  postMessage({ kind: "split", id, sources, separators });
  for (const [index, source] of sources.entries()) {
    const sourceWords = source.split(/\s+/);
    const words = (answers[direction.target] ?? source.toUpperCase()).split(" ");
    const target = words.map((word, i) => (i ? `▁${word}` : word));
    for (let end = 1; end <= words.length; end += 1) {
      if (newest !== id) return;
      postMessage({ kind: "partial", id, index, text: words.slice(0, end).join(" ") });
      await pause(15);
    }
    const subwords = [...sourceWords.flatMap((word) => [`▁${word.slice(0, 2)}`, word.slice(2)]).filter(Boolean), "</s>"];
    const weights = new Float32Array(target.length * subwords.length);
    target.forEach((_, t) => subwords.forEach((_, s) => {
      weights[t * subwords.length + s] = Math.exp(-Math.abs((t + 0.5) / target.length - (s + 0.5) / subwords.length) * 12);
    }));
    const others = [...Array(alternatives).keys()].map((n) => ({ text: `${words.slice(n).join(" ")} ${n}`, score: -n }));
    const attention = data.attention ? { source: subwords, target, weights } : null;
    postMessage({ kind: "translated", id, index, text: words.join(" "), alternatives: others, attention });
  }
  postMessage({ kind: "done", id });
};
