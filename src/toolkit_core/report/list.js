// The list: only the rows that are in sight are in the page.
const ROW_HEIGHT = 26;
const ROWS_AROUND = 8;
const list = byId("list");
const listSize = byId("list-size");
let shown = calls;
let active = 0;
let drawing = false;

const activeCall = () => shown[active];

function drawList() {
  drawing = false;
  const first = Math.max(0, Math.floor(list.scrollTop / ROW_HEIGHT) - ROWS_AROUND);
  const last = Math.min(shown.length, Math.ceil((list.scrollTop + list.clientHeight) / ROW_HEIGHT) + ROWS_AROUND);
  listSize.style.height = `${shown.length * ROW_HEIGHT}px`;
  listSize.replaceChildren(...shown.slice(first, last).map((call, at) => rowNode(call, first + at)));
  const isDrawn = active >= first && active < last;
  if (isDrawn) list.setAttribute("aria-activedescendant", `row-${active}`);
  else list.removeAttribute("aria-activedescendant");
}

function redrawList() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(drawList);
}

function rowNode(call, at) {
  const bar = el("i", { class: `bar ${kindOf(call)}` });
  const from = placeOf(call.started_at) * 100;
  bar.style.left = `${Math.min(99, from)}%`;
  bar.style.width = `${Math.max(1, Math.min(100 - from, placeOf(ended(call)) * 100 - from))}%`;
  const tool = el("span", { class: "tool" }, call.depth > 0 ? el("i", { class: "nested" }, "\u21b3 ") : "", visible(call.tool));
  tool.style.paddingLeft = `${Math.min(call.depth, 8) * 12}px`;
  const row = el(
    "div",
    {
      class: at === active ? "row active" : "row",
      role: "option",
      id: `row-${at}`,
      "aria-selected": at === active,
      "aria-posinset": at + 1,
      "aria-setsize": shown.length,
    },
    el("span", { class: "began" }, clock(call.started_at)),
    tool,
    el("span", { class: "about" }, visible(call.summary)),
    el("span", {}, outcomeNode(call)),
    el("span", { class: "took" }, seconds(call.duration_seconds)),
    el("span", { class: "when" }, bar),
  );
  row.style.top = `${at * ROW_HEIGHT}px`;
  return row;
}

function moveTo(at) {
  if (shown.length === 0) return;
  active = Math.max(0, Math.min(shown.length - 1, at));
  const top = active * ROW_HEIGHT;
  if (top < list.scrollTop) list.scrollTop = top;
  if (top + ROW_HEIGHT > list.scrollTop + list.clientHeight) list.scrollTop = top + ROW_HEIGHT - list.clientHeight;
  redrawList();
  showBar(activeCall());
  requestAnimationFrame(drawTimeline);
}

function openActive(takesFocus) {
  const call = activeCall();
  if (call === undefined) return;
  openCall(call, takesFocus);
  const hash = `#${encodeURIComponent(call.entry_id)}`;
  if (location.hash !== hash) history.replaceState(null, "", hash);
  redrawList();
}

// To a call from anywhere: selected where the filters show it, opened in any case.
function goTo(call) {
  const at = shown.indexOf(call);
  if (at >= 0) {
    moveTo(at);
    openActive(true);
  } else openCall(call, true);
}

function moveOpened(by) {
  moveTo(active + by);
  openActive(true);
}

function leaveDetail() {
  closeCall();
  list.focus();
  moveTo(active);
}

const moves = {
  ArrowDown: () => active + 1,
  ArrowUp: () => active - 1,
  PageDown: () => active + Math.max(1, Math.floor(list.clientHeight / ROW_HEIGHT) - 1),
  PageUp: () => active - Math.max(1, Math.floor(list.clientHeight / ROW_HEIGHT) - 1),
  Home: () => 0,
  End: () => shown.length - 1,
  ArrowLeft: () => (activeCall()?.parent ? shown.indexOf(activeCall().parent) : -1),
  ArrowRight: () => (activeCall()?.children.length ? shown.indexOf(activeCall().children[0]) : -1),
};

list.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") openActive(true);
  else if (Object.hasOwn(moves, event.key)) {
    const to = moves[event.key]();
    if (to >= 0 || event.key === "ArrowUp" || event.key === "PageUp") moveTo(to);
    if (opened !== null) requestAnimationFrame(() => openActive(false));
  } else return;
  event.preventDefault();
});
list.addEventListener("scroll", redrawList);
list.addEventListener("click", (event) => {
  const row = event.target.closest(".row");
  if (row === null) return;
  moveTo(Number(row.id.slice(4)));
  openActive(false);
});
