// The stretch of time that is shown, and when to paint.
const still = matchMedia("(prefers-reduced-motion: reduce)");
const whole = (() => {
  const xs = [raw.start, raw.end];
  for (const lane of lanes) for (const row of lane.rows) if (row.segments.length) xs.push(row.segments[0].x0);
  const long = Math.max(raw.end - raw.start, 0.01);
  // what was there long before the test (nodes) does not stretch the page
  return { x0: Math.max(Math.min(...xs), raw.start - long / 4), x1: Math.max(...xs), long };
})();
const fitted = { x0: raw.start - whole.long * 0.012, x1: raw.end + whole.long * 0.02 };
const SHORTEST = 0.002;
const view = { ...fitted };
const painters = new Set();
let asked = 0, moving = 0;

function repaint() {
  asked ||= requestAnimationFrame(() => {
    asked = 0;
    for (const each of painters) each();
  });
}
function show(x0, x1) {
  const low = Math.min(whole.x0, fitted.x0), high = fitted.x1;
  const long = Math.min(Math.max(x1 - x0, SHORTEST), high - low);
  const start = Math.min(Math.max(x0, low), high - long);
  view.x0 = start;
  view.x1 = start + long;
  repaint();
}
// Goes there in a few frames, so that the eye can follow.
function glide(x0, x1) {
  cancelAnimationFrame(moving);
  if (still.matches || document.hidden) return show(x0, x1);
  const from = { ...view }, began = performance.now();
  const step = (now) => {
    const part = Math.min((now - began) / 180, 1), eased = 1 - (1 - part) ** 3;
    show(from.x0 + (x0 - from.x0) * eased, from.x1 + (x1 - from.x1) * eased);
    if (part < 1) moving = requestAnimationFrame(step);
  };
  moving = requestAnimationFrame(step);
}
function zoom(factor, at = (view.x0 + view.x1) / 2, slowly = false) {
  (slowly ? glide : show)(at - (at - view.x0) * factor, at + (view.x1 - at) * factor);
}
function pan(part, slowly = false) {
  const by = (view.x1 - view.x0) * part;
  (slowly ? glide : show)(view.x0 + by, view.x1 + by);
}
const fit = () => glide(fitted.x0, fitted.x1);

// A canvas made as large as it is on the screen; gives its context and size in CSS pixels.
function ready(canvas, wide, high, density = Math.min(devicePixelRatio || 1, 3)) {
  const w = Math.round(wide * density), h = Math.round(high * density);
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const g = canvas.getContext("2d");
  g.setTransform(density, 0, 0, density, 0, 0);
  g.clearRect(0, 0, wide, high);
  return g;
}
// Steps of an axis: the smallest nice one that leaves *room* pixels to a label.
function steps(x0, x1, wide, room) {
  const least = ((x1 - x0) / wide) * room;
  const nice = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600,
    900, 1800, 3600, 7200, 14400, 43200, 86400];
  const step = nice.find((each) => each >= least) ?? Math.ceil(least / 86400) * 86400;
  const found = [];
  for (let i = Math.ceil(x0 / step); i * step <= x1; i++) found.push(i * step);
  return { step, at: found };
}
function axisLabel(x, step) {
  const digits = step >= 1 ? 0 : Math.min(3, Math.ceil(-Math.log10(step) - 1e-9));
  if (whole.x1 <= 60) return `${+x.toFixed(3) || 0} s`;
  const sign = x < -1e-9 ? "−" : "", all = Math.abs(x) + 1e-9;
  const hours = Math.floor(all / 3600), minutes = Math.floor((all % 3600) / 60);
  const seconds = (all % 60).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  return hours ? `${sign}${hours}:${String(minutes).padStart(2, "0")}:${seconds}` : `${sign}${minutes}:${seconds}`;
}
