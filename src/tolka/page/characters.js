/** A text without whitespace around it, by Python's rules. */
export function strip(text) {
  return text.replace(/^[\s\x1c-\x1f\x85]+|[\s\x1c-\x1f\x85]+$/g, "");
}
