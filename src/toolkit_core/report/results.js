// Results as people read them; which form, the shape of the data says.
const DIFF_LINES = 4000;

function resultNodes(content, call) {
  const { data } = content;
  if (!isObject(data) || Array.isArray(data)) return plainResult(content, call);
  const used = new Set();
  const take = (key) => {
    used.add(key);
    return data[key];
  };
  const has = (key, fits) => key in data && fits(data[key]);
  const isRows = (value) => Array.isArray(value) && value.length > 0;
  const nodes = [];
  if (has("stdout", isText)) nodes.push(...commandNodes(take, call));
  if (has("diff", (value) => isText(value) && lengthOf(value) > 0)) nodes.push(diffNode(take("diff"), call));
  if (has("rows", (value) => isRows(value) && value.every(isObject))) nodes.push(matchesNode(take("rows"), call));
  if (has("counts", (value) => isRows(value) && value.every(isObject))) nodes.push(countsNode(take("counts"), call));
  for (const key of ["paths", "files"]) {
    if (has(key, (value) => isRows(value) && value.every(isText))) nodes.push(pathsNode(take(key), call));
  }
  if (has("results", (value) => isRows(value) && value.every(isObject))) nodes.push(linksNode(take("results"), call));
  if (has("answers", (value) => isRows(value) && value.every(isObject))) nodes.push(answersNode(take("answers"), call));
  if (has("output", isText)) nodes.push(streamNode("output", take("output"), call));
  const rest = Object.entries(data).filter(([key, value]) => !used.has(key) && value !== null);
  const left = missing.get(data) || 0;
  const isShort = left === 0 && rest.every(([, value]) => isScalar(value) || (isText(value) && lengthOf(value) < 100));
  if (rest.length > 0 || left > 0) nodes.push(isShort ? factLine(rest) : pairs(rest, call, left, false));
  return nodes;
}

function factLine(facts) {
  const nodes = facts.map(([name, value]) => el("span", {}, el("i", {}, visible(name)), " ", visible(String(value))));
  return el("p", { class: "facts" }, ...nodes);
}

function plainResult(content, call) {
  const { data, text } = content;
  if (data === null || (typeof data === "string" && data === text)) return [];
  return [valueNode(data, call)];
}

function commandNodes(take, call) {
  const code = take("exit_code");
  const signal = take("signal");
  const facts = [];
  if (typeof code === "number") facts.push(badge(`exit code ${code}`, code === 0 ? "ok" : "error"));
  if (signal) facts.push(badge(`signal ${plain(String(signal))}`, "error"));
  if (take("timed_out") === true) facts.push(badge("timed out", "error"));
  const survivors = take("survivors_killed");
  if (survivors > 0) facts.push(badge(`${some(survivors, "survivor")} killed`, "cancelled"));
  const nodes = [el("p", { class: "facts" }, ...facts)];
  for (const name of ["stdout", "stderr"]) {
    const isCut = take(`${name}_cut`) === true;
    const text = take(name);
    if (isText(text)) nodes.push(streamNode(name, text, call, isCut));
  }
  return nodes;
}

function streamNode(name, text, call, isCut) {
  if (lengthOf(text) === 0) return el("p", { class: "faint" }, `${name}: nothing`);
  const note = isCut ? ", cut when it was captured" : "";
  return el(
    "figure",
    { class: name },
    el("figcaption", {}, `${name} (${some(lengthOf(text), "character")}${note})`),
    pre(text, call, { "aria-label": name }),
  );
}

function badge(text, kind) {
  return el("span", { class: `badge ${kind}` }, text);
}

function diffNode(diff, call) {
  if (diff instanceof Cut) {
    const parts = [diffNode(diff.head, call), leftOut(diff.left, "character", call), diffNode(diff.tail, call)];
    return el("div", {}, ...parts);
  }
  const lines = diff.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  if (lines.length > DIFF_LINES) return pre(diff, call);
  const block = el("pre", { class: "diff", tabindex: "0", "aria-label": "diff" });
  for (const line of lines) {
    const isFile = line.startsWith("--- ") || line.startsWith("+++ ");
    const kind = isFile ? "file" : { "+": "added", "-": "removed", "@": "hunk" }[line[0]] || "same";
    block.append(el("span", { class: kind }, visible(line), "\n"));
  }
  return block;
}

function matchesNode(rows, call) {
  let path = null;
  const groups = [];
  for (const row of rows) {
    if (row.path !== path) groups.push({ heading: (path = row.path) });
    groups.push({ row });
  }
  const node = table(["line", "text"], groups, ({ heading, row }) => {
    if (row === undefined) return el("tr", {}, el("th", { colspan: "2", scope: "rowgroup" }, cellText(heading, call)));
    const made = cells([row.line, row.text], call);
    if (row.context === true) made.className = "faint";
    return made;
  });
  return withMissing(node, rows, "row", call, "matches");
}

function withMissing(node, rows, what, call, name) {
  node.classList.add(name);
  const left = missing.get(rows) || 0;
  if (left > 0) node.append(leftOut(left, what, call));
  return node;
}

const countsNode = (rows, call) =>
  withMissing(table(["path", "count"], rows, (row) => cells([row.path, row.count], call)), rows, "row", call, "counts");

const pathsNode = (rows, call) =>
  withMissing(table(["path"], rows, (path) => cells([path], call)), rows, "path", call, "paths");

// Addresses are shown as text: a link would be a way out of the page.
function linksNode(rows, call) {
  const node = table(["title", "address", "snippet"], rows, (row) => cells([row.title, row.url, row.snippet], call));
  return withMissing(node, rows, "result", call, "links");
}

function answersNode(rows, call) {
  const said = (row) => {
    if (row.cancelled === true) return el("i", {}, "dismissed");
    const values = Array.isArray(row.values) ? row.values.filter(isText) : [];
    return visible([...values, ...(isText(row.text) ? [row.text] : [])].map(String).join(", "));
  };
  const node = table(["question", "answer"], rows, (row) => cells([row.question, el("span", {}, said(row))], call));
  return withMissing(node, rows, "answer", call, "answers");
}

function imageNode(image, call) {
  const about = `${plain(image.mime_type)}, ${bytes(image.size_bytes)}`;
  if (typeof image.base64 !== "string") {
    const why = image.left_out === true ? "not on this page: it is too large" : "no bytes were kept of it";
    return el("p", {}, `[image ${about}; ${why}]`);
  }
  const source = `data:${image.mime_type};base64,${image.base64}`;
  return el("figure", { class: "image" }, el("img", { src: source, alt: `image, ${about}` }), el("figcaption", {}, about));
}
