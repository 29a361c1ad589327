// Reads the data back: texts are numbers in a table, segments and ticks are short arrays.
const $ = (id) => document.getElementById(id);
const raw = JSON.parse($("data").textContent);
const text = raw.strings;
const segment = ([x0, x1, state, label, began, ended]) =>
  ({ x0, x1, state: text[state], label: text[label], began, ended });
const tick = ([x, kind, words, event]) => ({ x, kind: text[kind], text: text[words], event });
const span = ([x0, x1, kind, words, event]) => ({ x0, x1: x1 ?? raw.end, open: x1 === null, kind, text: words, event });

// a row with a name (a condition) has its name on the bar, and the reason after it
const named = (name, each) =>
  name && each.label && each.label !== name ? { ...each, label: `${name} · ${each.label}` } : { ...each, label: each.label || name };

const faults = raw.faults.map(span);
const gaps = raw.gaps.map(span);
const flags = raw.flags.map((flag, index) => ({ ...flag, number: index + 1 }));
const notes = new Map(raw.notes.map(([seq, x, type, subject, rv, words]) =>
  [seq, { seq, x, type: text[type], subject: text[subject], rv, words: text[words] }]));

const SMALL = new Set(["change", "event"]);
const laneOf = new Map();
const groups = raw.groups.map((each) => {
  const group = { ...each, summary: each.summary.map(segment) };
  group.lanes = each.lanes.map((found) => {
    const lane = {
      note: "", chart: null, curve: null, ...found, group, flags: [],
      rows: (found.rows ?? []).map(([look, label, segments]) =>
        ({ look, label, segments: segments.map((each) => named(label, segment(each))) })),
      ticks: (found.ticks ?? []).map(tick),
    };
    if (lane.curve) lane.curve.bands = lane.curve.bands.map(segment);
    if (lane.rows[0]?.look === "bar") lane.rows[0].marks = lane.ticks.filter((each) => !SMALL.has(each.kind));
    lane.words = `${group.title} ${lane.name} ${lane.title} ${lane.note} ${lane.kind}`.toLowerCase();
    if (!laneOf.has(lane.id)) laneOf.set(lane.id, lane);
    return lane;
  });
  return group;
});
const lanes = groups.flatMap((group) => group.lanes);
for (const flag of flags) {
  const lane = laneOf.get(flag.lane);
  if (lane && lane.kind !== "violations") lane.flags.push(flag);
}

// Times in words. An offset counts from the start of the test.
function offset(x, digits = 3) {
  const sign = x < -0.0005 ? "−" : "+";
  const ms = Math.round(Math.abs(x) * 1000);
  if (ms < 60000) return `${sign}${(ms / 1000).toFixed(digits)} s`;
  const minutes = Math.floor(ms / 60000);
  return `${sign}${minutes}:${((ms % 60000) / 1000).toFixed(digits).padStart(digits ? digits + 3 : 2, "0")}`;
}
function clock(x) {
  return new Date((raw.epoch + x) * 1000).toISOString().slice(11, 23);
}
function length(seconds) {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  const whole = Math.round(seconds);
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}
