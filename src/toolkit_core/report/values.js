// Any JSON value, for reading: texts with their own line breaks, objects as pairs, lists as rows.
const VALUE_ROWS = 500;

const isObject = (value) => typeof value === "object" && value !== null && !(value instanceof Cut);
const isScalar = (value) => !isObject(value) && !isText(value);

function valueNode(value, call) {
  if (isText(value)) {
    const isShort = typeof value === "string" && value.length < 100 && !value.includes("\n");
    return isShort ? el("code", { class: "text" }, visible(value)) : pre(value, call);
  }
  if (!isObject(value)) return el("code", { class: "scalar" }, String(value));
  const entries = Object.entries(value);
  const left = missing.get(value) || 0;
  if (entries.length === 0 && left === 0) return el("code", { class: "scalar" }, Array.isArray(value) ? "[]" : "{}");
  const isFlat = Array.isArray(value) && left === 0 && entries.length <= 50 && value.every(isScalar);
  if (isFlat) return el("code", { class: "scalar" }, JSON.stringify(value));
  return pairs(entries, call, left, Array.isArray(value));
}

function pairs(entries, call, left, isList) {
  const list = el("dl", { class: isList ? "pairs items" : "pairs" });
  for (const [key, value] of entries.slice(0, VALUE_ROWS)) {
    const name = isList ? String(Number(key) + 1) : key;
    list.append(el("dt", {}, visible(name)), el("dd", {}, valueNode(value, call)));
  }
  const more = entries.length - VALUE_ROWS;
  if (more > 0) list.append(el("dt", {}), el("dd", {}, moreNode(entries.slice(VALUE_ROWS), call, isList)));
  if (left > 0) list.append(el("dt", {}), el("dd", {}, leftOut(left, "item", call)));
  return list;
}

function moreNode(entries, call, isList) {
  const button = el("button", { type: "button" }, `${some(entries.length, "more item")}`);
  button.addEventListener("click", () => button.replaceWith(pairs(entries, call, 0, isList)));
  return button;
}

// A table of which the first rows are drawn; the rest on demand, as many again each time.
function table(heads, rows, rowNode) {
  const body = el("tbody");
  const made = el("table", {}, el("thead", {}, el("tr", {}, ...heads.map((head) => el("th", { scope: "col" }, head)))), body);
  const holder = el("div", { class: "table" }, made);
  let drawn = 0;
  const draw = () => {
    body.append(...rows.slice(drawn, drawn + VALUE_ROWS).map((row) => rowNode(row)));
    drawn = Math.min(rows.length, drawn + VALUE_ROWS);
    more.hidden = drawn === rows.length;
    more.textContent = `${count(rows.length - drawn)} more rows`;
  };
  const more = el("button", { type: "button", onclick: draw });
  draw();
  holder.append(more);
  return holder;
}
const cells = (values, call) =>
  el("tr", {}, ...values.map((value) => el("td", {}, value instanceof Node ? value : cellText(value, call))));

function cellText(value, call) {
  if (value === null || value === undefined) return "";
  if (value instanceof Cut) return pre(value, call);
  return isText(value) ? visible(value) : String(value);
}
