// Small helpers. Text reaches the page through text nodes alone, never as markup.
const byId = (id) => document.getElementById(id);

function el(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const count = (number) => number.toLocaleString("en-US");
const some = (number, one, many) => `${count(number)} ${number === 1 ? one : many || one + "s"}`;

const two = (large, unit, small, rest) => `${Math.floor(large)} ${unit}${rest >= 1 ? ` ${Math.floor(rest)} ${small}` : ""}`;

function seconds(value) {
  if (value < 0.0095) return `${(value * 1000).toFixed(1)} ms`;
  if (value < 0.9995) return `${Math.round(value * 1000)} ms`;
  if (value < 59.95) return `${value.toFixed(value < 9.995 ? 2 : 1)} s`;
  if (value < 3600) return two(value / 60, "min", "s", value % 60);
  if (value < 86400) return two(value / 3600, "h", "min", (value % 3600) / 60);
  return two(value / 86400, "d", "h", (value % 86400) / 3600);
}

function bytes(value) {
  if (value < 1024) return some(value, "byte");
  if (value < 1048576) return `${(value / 1024).toFixed(1)} KiB`;
  return `${(value / 1048576).toFixed(1)} MiB`;
}

function moment(epoch) {
  const date = new Date(epoch * 1000);
  return Number.isNaN(date.getTime()) ? null : date;
}

function clock(epoch, withDay) {
  const date = moment(epoch);
  if (date === null) return "?";
  const digits = (number) => String(number).padStart(2, "0");
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(digits).join(":");
  return withDay ? `${date.getFullYear()}-${digits(date.getMonth() + 1)}-${digits(date.getDate())} ${time}` : time;
}
