// The calls: rows at once, contents when they are asked for.
const index = JSON.parse(byId("index").textContent);
const calls = index.rows.map((row, position) => {
  const call = { position, children: [], parent: null };
  index.fields.forEach((field, at) => {
    call[field] = row[at];
  });
  return call;
});
const callOf = new Map(calls.map((call) => [call.entry_id, call]));
for (const call of calls) {
  const parent = call.depth > 0 ? callOf.get(call.parent_id) : undefined;
  if (parent !== undefined && parent !== call) {
    call.parent = parent;
    parent.children.push(call);
  }
}
const ended = (call) => call.started_at + call.duration_seconds;

// Lists and objects of which items are missing on the page.
const missing = new WeakMap();

function contentOf(call) {
  const content = JSON.parse(byId(`c${call.number}`).textContent);
  for (const [path, left, isText] of content.cuts) {
    let holder = content;
    for (const key of path.slice(0, -1)) holder = holder[key];
    const last = path[path.length - 1];
    if (isText) holder[last] = new Cut(holder[last][0], holder[last][1], left);
    else missing.set(holder[last], left);
  }
  return content;
}

function* textsIn(value) {
  if (typeof value === "string") yield value;
  else if (value instanceof Cut) yield* [value.head, value.tail];
  else if (typeof value === "object" && value !== null) for (const item of Object.values(value)) yield* textsIn(item);
}

const SEARCHED = ["arguments", "error", "data", "text", "shown"];

// A predicate for a text that somebody typed; case does not matter.
function searching(typed) {
  const literal = (text) => new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "iu");
  const wanted = literal(typed);
  const asJson = JSON.stringify(typed).slice(1, -1);
  const inJson = literal(asJson.replaceAll("&", "\\u0026").replaceAll("<", "\\u003c").replaceAll(">", "\\u003e"));
  const rowHas = (call) =>
    [call.tool, call.code, call.outcome, call.entry_id, call.call_id, call.session_id].some((text) => wanted.test(text));
  return (call) => {
    if (rowHas(call)) return true;
    if (!inJson.test(byId(`c${call.number}`).textContent)) return false; // fast, and never wrong this way round
    const content = contentOf(call);
    for (const key of SEARCHED) {
      for (const text of textsIn(content[key])) if (wanted.test(text)) return true;
    }
    return false;
  };
}
