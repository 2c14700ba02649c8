// Text as it is: what would be invisible, or change how its neighbours look, is shown by its number.

// Terminal sequences; runs of one control, format or direction character; lone surrogates; CR that ends no line; heaps
// of combining marks, of which no script needs more than a few.
const HIDDEN = new RegExp(
  "\\p{M}{9,}|\\x1b\\[[0-?]*[ -/]*[@-~]|\\x1b[\\]PX^_][^\\x07\\x1b\\n]{0,500}(?:\\x07|\\x1b\\\\)?|\\r(?!\\n)|" +
    "([\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb\\ud800-\\udfff\\u{e0000}-\\u{e007f}])\\1*",
  "gu",
);
const CONTROL = /[^\x20-\x7e]/gu;

function escaped(character) {
  const code = character.codePointAt(0);
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

function spelled(match, repeated) {
  if (/^\p{M}/u.test(match)) return `[${some([...match].length, "combining mark")}]`;
  if (repeated === undefined) return match.replace(CONTROL, escaped);
  const times = match.length / repeated.length;
  return times === 1 ? escaped(repeated) : `${escaped(repeated)}\u00d7${times}`;
}

function visible(text) {
  const parts = document.createDocumentFragment();
  let at = 0;
  for (const found of text.matchAll(HIDDEN)) {
    if (found.index > at) parts.append(text.slice(at, found.index));
    parts.append(el("span", { class: "hidden-character" }, spelled(found[0], found[1])));
    at = found.index + found[0].length;
  }
  if (at < text.length) parts.append(text.slice(at));
  return parts;
}

const plain = (text) => text.replace(HIDDEN, spelled);

// A text of which the page holds the start and the end.
class Cut {
  constructor(head, tail, left) {
    Object.assign(this, { head, tail, left });
  }
}

const isText = (value) => typeof value === "string" || value instanceof Cut;
const lengthOf = (value) => (value instanceof Cut ? value.head.length + value.left + value.tail.length : value.length);

function leftOut(number, what, call) {
  return el(
    "span",
    { class: "left-out" },
    `[${some(number, what)} not on this page; `,
    el("code", {}, plain(`${index.command} ${call.entry_id}`)),
    " shows all]",
  );
}

function pre(value, call, properties) {
  const block = el("pre", { tabindex: "0", ...properties });
  if (!(value instanceof Cut)) {
    block.append(visible(value));
    return block;
  }
  const note = el("div", {}, leftOut(value.left, "character", call));
  block.append(visible(value.head), note, visible(value.tail));
  return block;
}
