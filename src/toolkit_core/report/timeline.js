// When each call ran: lanes of calls that ran at once, a group a session; long idle times are drawn short.
const LANES_A_SESSION = 64;
const IDLE_SHARE = 0.05; // an idle time longer than this part of the busy time is drawn short
const IDLE_DRAWN = 0.02;
const LEAST_SECONDS = 0.001;
const AXIS = 18;
const STEPS = [1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400, 604800, 2592000];

const timeScroll = byId("time-scroll");
const canvas = byId("time-canvas");
const time = { parts: [], total: 1, lanes: 0, laneHeight: 14, groups: [], bars: [], zoom: 1 };

// Busy stretches of the clock, and where each lies on the drawn axis.
function axisOf(shown) {
  const spans = shown.map((call) => [call.started_at, Math.max(ended(call), call.started_at + LEAST_SECONDS)]);
  spans.sort((a, b) => a[0] - b[0]);
  const join = (pieces, idle) => {
    const joined = [];
    for (const [start, end] of pieces) {
      const last = joined[joined.length - 1];
      if (last !== undefined && start - last[1] <= idle) last[1] = Math.max(last[1], end);
      else joined.push([start, end]);
    }
    return joined;
  };
  const length = (pieces) => pieces.reduce((sum, [start, end]) => sum + end - start, 0);
  const exact = join(spans, 0);
  const busy = length(exact);
  const parts = join(exact, busy * IDLE_SHARE);
  const idle = Math.min(busy * IDLE_DRAWN, (0.3 * busy) / Math.max(1, parts.length - 1));
  let at = 0;
  time.parts = parts.map(([start, end]) => {
    const part = { start, end, at };
    at += end - start + idle;
    return part;
  });
  time.total = Math.max(LEAST_SECONDS, at - idle);
}

// The place of a moment on the axis, from 0 to 1.
function placeOf(moment) {
  let low = 0;
  let high = time.parts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (time.parts[middle].start <= moment) low = middle;
    else high = middle - 1;
  }
  const part = time.parts[low];
  if (part === undefined) return 0;
  return (part.at + Math.max(0, Math.min(moment, part.end) - part.start)) / time.total;
}

function layTimeline(shown) {
  axisOf(shown);
  const groups = new Map();
  for (const call of [...shown].sort((a, b) => a.started_at - b.started_at)) {
    if (!groups.has(call.session_id)) groups.set(call.session_id, { ends: [], bars: [] });
    const { ends, bars } = groups.get(call.session_id);
    let lane = ends.findIndex((end) => end <= call.started_at);
    if (lane < 0) lane = Math.min(ends.length, LANES_A_SESSION - 1);
    ends[lane] = Math.max(ended(call), call.started_at + LEAST_SECONDS);
    bars.push({ call, lane, from: placeOf(call.started_at), to: placeOf(ends[lane]) });
  }
  time.bars = [];
  time.groups = [];
  let top = 0;
  for (const [session, { ends, bars }] of groups) {
    time.groups.push({ session, top });
    if (groups.size > 1) top += 1; // the session's name
    for (const bar of bars) time.bars.push({ ...bar, lane: bar.lane + top });
    top += ends.length;
  }
  time.lanes = top;
  time.laneHeight = top > 14 ? 11 : 16;
  timeScroll.style.height = `${Math.min(AXIS + top * time.laneHeight + 14, Math.max(120, window.innerHeight * 0.25))}px`;
  sizeTimeline();
}

function sizeTimeline() {
  const size = byId("time-size");
  size.style.width = `${timeScroll.clientWidth * time.zoom}px`;
  size.style.height = `${AXIS + time.lanes * time.laneHeight}px`;
  drawTimeline();
}

// Pixels of the whole axis; a little is left free so that the last bar is seen.
const spanOf = () => timeScroll.clientWidth * time.zoom - 8;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

function drawTimeline() {
  const width = timeScroll.clientWidth;
  const height = timeScroll.clientHeight;
  const scale = window.devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const ink = canvas.getContext("2d");
  ink.scale(scale, scale);
  ink.font = "11px system-ui, sans-serif";
  const view = { width, height, left: timeScroll.scrollLeft, top: timeScroll.scrollTop, span: spanOf() };
  drawAxis(ink, view);
  ink.save();
  ink.beginPath();
  ink.rect(0, AXIS, width, height - AXIS);
  ink.clip();
  drawGroups(ink, view);
  drawBars(ink, view);
  ink.restore();
}

// The clock where a busy stretch begins, and steps within it where there is room.
function drawAxis(ink, view) {
  const place = (at) => (at / time.total) * view.span - view.left;
  const stretches = time.parts.map((part, number) => {
    const next = time.parts[number + 1];
    return { start: part.start, from: place(part.at), to: place(part.at + part.end - part.start), until: next && place(next.at) };
  });
  const marks = stretches.map(({ start, from }) => ({ x: from, text: clock(start) }));
  for (const { from, to, until } of stretches) {
    if (until === undefined || until < 0 || to > view.width) continue;
    ink.fillStyle = colour("idle");
    ink.fillRect(to + 1, AXIS, Math.max(1, until - to - 2), view.height - AXIS);
  }
  const perSecond = view.span / time.total;
  const step = STEPS.find((one) => one * perSecond > 100);
  for (const { from, to } of step === undefined ? [] : stretches) {
    const last = Math.min(to, view.width);
    for (let number = Math.max(1, Math.floor(-from / perSecond / step)); from + number * step * perSecond < last; number += 1) {
      marks.push({ x: from + number * step * perSecond, text: `+${seconds(number * step).replace(/\.0+ /, " ")}` });
    }
  }
  drawMarks(ink, view, marks);
}

function drawMarks(ink, view, marks) {
  const taken = [];
  for (const { x, text } of marks) {
    const end = x + ink.measureText(text).width + 10;
    if (end < 0 || end > view.width + 10 || taken.some(([from, to]) => x < to && end > from)) continue;
    taken.push([x, end]);
    ink.fillStyle = colour("edge");
    ink.fillRect(x, 0, 1, view.height);
    ink.fillStyle = colour("faint");
    ink.fillText(text, x + 4, 12);
  }
}

function drawGroups(ink, view) {
  if (time.groups.length < 2) return;
  for (const { session, top } of time.groups) {
    const y = AXIS + top * time.laneHeight - view.top;
    ink.fillStyle = colour("edge");
    ink.fillRect(0, y, view.width, 1);
    ink.fillStyle = colour("faint");
    if (y > -time.laneHeight && y < view.height) ink.fillText(plain(session).slice(0, 80), 4, y + 10);
  }
}

// Ok is a thin bar, an error a full one, cancelled and suspended are outlines: not colour alone tells.
function drawBars(ink, view) {
  const colours = { ok: colour("ok"), error: colour("error"), cancelled: colour("cancelled"), suspended: colour("suspended") };
  const full = time.laneHeight - 2;
  for (const { call, lane, from, to } of time.bars) {
    const x = from * view.span - view.left;
    const wide = Math.max(2, (to - from) * view.span);
    const y = AXIS + lane * time.laneHeight - view.top;
    if (x + wide < 0 || x > view.width || y > view.height || y < -full) continue;
    const kind = kindOf(call);
    const high = kind === "ok" ? Math.ceil(full * 0.65) : full;
    const middle = y + (time.laneHeight - high) / 2;
    ink.fillStyle = ink.strokeStyle = colours[kind];
    if (kind === "ok" || kind === "error" || wide < 4) ink.fillRect(x, middle, wide, high);
    else ink.strokeRect(x + 0.5, middle + 0.5, wide - 1, high - 1);
    if (call === activeCall()) {
      ink.strokeStyle = colour("text");
      ink.lineWidth = 2;
      ink.strokeRect(x - 1, y, wide + 2, time.laneHeight - 1);
      ink.lineWidth = 1;
    }
  }
}

function callAt(event) {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left + timeScroll.scrollLeft;
  const y = event.clientY - box.top + timeScroll.scrollTop - AXIS;
  const span = spanOf();
  const lane = Math.floor(y / time.laneHeight);
  const near = (bar) => bar.lane === lane && x >= bar.from * span - 3 && x <= Math.max(bar.to * span, bar.from * span + 2) + 3;
  return time.bars.find(near)?.call;
}

function zoomTimeline(factor) {
  const middle = (timeScroll.scrollLeft + timeScroll.clientWidth / 2) / time.zoom;
  time.zoom = factor === 0 ? 1 : Math.max(1, Math.min(10000, time.zoom * factor));
  sizeTimeline();
  timeScroll.scrollLeft = middle * time.zoom - timeScroll.clientWidth / 2;
  drawTimeline();
}

// Brings a call's bar into view.
function showBar(call) {
  const bar = time.bars.find((one) => one.call === call);
  if (bar === undefined) return;
  const x = bar.from * spanOf();
  const y = bar.lane * time.laneHeight;
  if (x < timeScroll.scrollLeft || x > timeScroll.scrollLeft + timeScroll.clientWidth - 20) timeScroll.scrollLeft = x - 40;
  const room = timeScroll.clientHeight - AXIS - time.laneHeight;
  if (y < timeScroll.scrollTop || y > timeScroll.scrollTop + room) timeScroll.scrollTop = y - room / 2;
}

timeScroll.addEventListener("scroll", () => requestAnimationFrame(drawTimeline));
canvas.addEventListener("click", (event) => {
  const call = callAt(event);
  if (call !== undefined) goTo(call);
});
canvas.addEventListener("mousemove", (event) => {
  const call = callAt(event);
  canvas.classList.toggle("over", call !== undefined);
  const text = call === undefined ? "" : `${call.tool} ${call.summary} \u2013 ${seconds(call.duration_seconds)}, ${call.code || call.outcome}`;
  byId("hover").textContent = plain(text);
});
byId("zoom-in").addEventListener("click", () => zoomTimeline(2));
byId("zoom-out").addEventListener("click", () => zoomTimeline(0.5));
byId("zoom-all").addEventListener("click", () => zoomTimeline(0));
