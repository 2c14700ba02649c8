// One call, opened.
const detail = byId("detail");
let opened = null;

function outcomeNode(call) {
  if (call.outcome === "ok" && call.exit_code !== 0) return badge(`exit ${call.exit_code}`, "cancelled");
  return badge(call.outcome === "error" ? plain(call.code || "error") : plain(call.outcome), kindOf(call));
}

const kindOf = (call) => (["ok", "error", "cancelled", "suspended"].includes(call.outcome) ? call.outcome : "error");

function openCall(call, takesFocus) {
  opened = call;
  document.body.classList.add("opened");
  detail.hidden = false;
  detail.scrollTop = 0;
  let content;
  try {
    content = contentOf(call);
    detail.replaceChildren(headNode(call), ...bodyNodes(call, content));
  } catch (problem) { // whatever one call holds, the others stay readable
    detail.replaceChildren(headNode(call), el("p", { class: "failure" }, `This call cannot be shown: ${problem}`));
  }
  if (takesFocus) byId("detail-title").focus();
}

function closeCall() {
  if (opened === null) return;
  opened = null;
  detail.hidden = true;
  document.body.classList.remove("opened");
  detail.replaceChildren();
}

function headNode(call) {
  const step = (by, label, text) => el("button", { type: "button", "aria-label": label, onclick: () => moveOpened(by) }, text);
  return el(
    "div",
    { class: "detail-head" },
    el("h2", { id: "detail-title", tabindex: "-1" }, visible(call.tool), " ", outcomeNode(call)),
    el(
      "span",
      {},
      step(-1, "Previous call", "\u2191"),
      step(1, "Next call", "\u2193"),
      el("button", { type: "button", "aria-label": "Close (Escape)", onclick: leaveDetail }, "\u00d7"),
    ),
  );
}

function bodyNodes(call, content) {
  const nodes = [factsNode(call)];
  if (call.is_dropped) {
    const why = "Arguments and result of this call were dropped to keep the ledger within its size.";
    return [...nodes, el("p", { class: "failure" }, why)];
  }
  if (isObject(content.error)) nodes.push(errorNode(content.error, call));
  nodes.push(section("Arguments", valueNode(content.arguments, call)));
  const results = [...resultNodes(content, call), ...content.images.map((image) => imageNode(image, call))];
  if (results.length > 0) nodes.push(section("Result", ...results));
  return [...nodes, ...readNodes(call, content)];
}

const section = (title, ...nodes) => el("section", {}, el("h3", {}, title), ...nodes);

function errorNode(error, call) {
  const lines = ["message", "hint"].filter((key) => isText(error[key]) && lengthOf(error[key]) > 0);
  return el("div", { class: "failure" }, ...lines.map((key) => el("div", { class: key }, cellText(error[key], call))));
}

function factsNode(call) {
  const link = (other) =>
    el("button", { type: "button", class: "link", onclick: () => goTo(other) }, visible(other.tool), ` ${other.entry_id.slice(0, 8)}`);
  const links = call.children.slice(0, 50).map(link);
  const more = call.children.length - links.length;
  if (more > 0) links.push(`and ${count(more)} more`);
  const facts = [
    ["began", `${clock(call.started_at, true)}, took ${seconds(call.duration_seconds)}`],
    ["entry", call.entry_id],
    ["session", call.session_id],
    ["call id", call.call_id],
    ["risk", call.risk || "unclassified"],
    ["trace", call.traceparent],
    ["recorded", bytes(call.size_bytes)],
    ["made within", call.parent === null ? call.parent_id : link(call.parent)],
    ["made", links.length > 0 ? el("span", {}, ...links) : ""],
  ];
  const list = el("dl", { class: "facts-list" });
  for (const [name, value] of facts) {
    if (value === "") continue;
    list.append(el("dt", {}, name), el("dd", {}, typeof value === "string" ? visible(value) : value));
  }
  return list;
}

// What the model read beside the whole text; one of them where they are the same.
function readNodes(call, content) {
  if (!content.has_result) return [section("Text", el("p", { class: "faint" }, "It ended without a result."))];
  const { text, shown } = content;
  const whole = `${some(content.text_chars, "character")}`;
  if (content.text_chars === 0 && shown === null) return [section("Text", el("p", { class: "faint" }, "No text."))];
  if (call.outcome === "cancelled" || call.outcome === "suspended") {
    return [section(`Output until it was ${call.outcome}, which no model read: ${whole}`, pre(text, call))];
  }
  if (shown === null) return [section(`The model read all of it: ${whole}`, pre(text, call))];
  const how = content.shown_kept ? "The model read" : "A model reads, within the default window";
  return [
    el(
      "div",
      { class: "beside" },
      section(`${how}: ${some(content.shown_chars, "character")}`, withNotes(pre(shown, call))),
      section(`The whole: ${whole}`, pre(text, call)),
    ),
  ];
}

// Marks the window's own lines about what it left out.
function withNotes(block) {
  for (const text of [...block.childNodes]) markNote(text);
  return block;
}

function markNote(text) {
  const found = text instanceof Text ? /^\[lines? \d+(?:\u2013\d+)? omitted \(.*\]$/m.exec(text.data) : null;
  if (found !== null && text.data.length > found[0].length) {
    const rest = text.splitText(found.index);
    rest.splitText(found[0].length);
    rest.replaceWith(el("mark", {}, found[0]));
  }
}
