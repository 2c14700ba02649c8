// Filters, keys and the first picture.
const SLICE_MILLISECONDS = 12; // a search leaves the page this often to whoever types
const filters = { text: byId("text"), tool: byId("tool"), outcome: byId("outcome"), session: byId("session") };
const statusLine = byId("status");
let searchNumber = 0;

function fillChoices(select, all, key) {
  const counts = new Map();
  for (const call of calls) counts.set(key(call), (counts.get(key(call)) || 0) + 1);
  select.append(el("option", { value: "" }, all));
  const sorted = [...counts].sort((a, b) => (a[0] < b[0] ? -1 : 1));
  sorted.forEach(([value, number], at) => {
    const name = plain(value).slice(0, 80) || "(none)";
    const option = el("option", { value: `v${at}` }, `${name} (${count(number)})`);
    option.wanted = value;
    select.append(option);
  });
}

const outcomeOf = (call) => (call.outcome === "error" ? `error: ${call.code || "?"}` : call.outcome);

function fillOutcomes() {
  const errors = calls.filter((call) => call.outcome === "error").length;
  fillChoices(filters.outcome, "all outcomes", outcomeOf);
  if (errors > 0) filters.outcome.options[0].after(el("option", { value: "errors" }, `any error (${count(errors)})`));
}

function chosenFilters() {
  const tests = [];
  const choose = (select, key) => {
    const option = select.selectedOptions[0];
    if (option?.wanted !== undefined) tests.push((call) => key(call) === option.wanted);
  };
  choose(filters.tool, (call) => call.tool);
  choose(filters.session, (call) => call.session_id);
  choose(filters.outcome, outcomeOf);
  if (filters.outcome.value === "errors") tests.push((call) => call.outcome === "error");
  if (filters.text.value !== "") tests.push(searching(filters.text.value));
  return tests;
}

async function applyFilters() {
  const mine = ++searchNumber;
  const tests = chosenFilters();
  const found = [];
  let since = performance.now();
  for (const call of calls) {
    if (tests.every((test) => test(call))) found.push(call);
    if (performance.now() - since < SLICE_MILLISECONDS) continue;
    statusLine.textContent = `searching: ${count(call.position + 1)} of ${count(calls.length)}`;
    await new Promise((resume) => setTimeout(resume));
    if (mine !== searchNumber) return; // somebody typed on
    since = performance.now();
  }
  showCalls(found);
}

function showCalls(found) {
  const before = activeCall();
  shown = found;
  active = Math.max(0, shown.indexOf(before));
  layTimeline(shown);
  byId("empty").hidden = shown.length > 0;
  list.scrollTop = 0;
  moveTo(active);
  redrawList();
  const isAll = shown.length === calls.length;
  statusLine.textContent = isAll ? some(calls.length, "call") : `${count(shown.length)} of ${some(calls.length, "call")}`;
}

function tellAbout() {
  const name = plain(index.source);
  if (name !== "") byId("title").textContent = name;
  const sessions = new Set(calls.map((call) => call.session_id)).size;
  const errors = calls.filter((call) => call.outcome === "error").length;
  const parts = [some(calls.length, "call"), some(errors, "error"), some(sessions, "session")];
  if (calls.length > 0) {
    const first = calls.reduce((least, call) => Math.min(least, call.started_at), Infinity);
    const last = calls.reduce((most, call) => Math.max(most, ended(call)), 0);
    parts.push(`${clock(first, true)}, ${seconds(last - first)} in all`);
  }
  byId("about").textContent = parts.join(" \u00b7 ");
  if (index.left_calls > 0) {
    const note = `${some(index.left_calls, "later call")} not on this page; ${index.command} lists all.`;
    byId("about").append(el("span", { class: "left-out" }, plain(` ${note}`)));
  }
  byId("session-label").hidden = sessions < 2;
}

function drawLegend() {
  const kinds = [...new Set(calls.map(kindOf))];
  byId("legend").append(...kinds.map((kind) => el("span", { class: "key" }, el("i", { class: `bar ${kind}` }), kind)));
}

document.addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    filters.text.focus();
    filters.text.select();
  } else if (event.key === "Escape" && event.target === filters.text && filters.text.value !== "") {
    event.preventDefault();
    filters.text.value = "";
    applyFilters();
  } else if (event.key === "Escape" && isTyping) list.focus();
  else if (event.key === "Escape" && opened !== null) leaveDetail();
  else if (event.key === "Enter" && event.target === filters.text) {
    event.preventDefault();
    list.focus();
  }
});

let typing = 0;
filters.text.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(applyFilters, 150);
});
for (const select of [filters.tool, filters.outcome, filters.session]) select.addEventListener("change", applyFilters);
byId("filters").addEventListener("submit", (event) => event.preventDefault());
byId("filters").addEventListener("reset", () => setTimeout(applyFilters));
window.addEventListener("resize", () => {
  layTimeline(shown);
  redrawList();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawTimeline);

tellAbout();
fillChoices(filters.tool, "all tools", (call) => call.tool);
fillOutcomes();
fillChoices(filters.session, "all sessions", (call) => call.session_id);
drawLegend();
showCalls(calls);
const linked = calls.find((call) => location.hash === `#${encodeURIComponent(call.entry_id)}`);
if (location.hash.length > 1 && linked !== undefined) goTo(linked);
else list.focus();
document.body.classList.add("ready");
