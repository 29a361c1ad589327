// How each state looks. A state is told by height, hatching or words too, never by colour alone.
const LOOKS = {
  waiting: { fill: "waiting", tall: 0.34 },
  bound: { fill: "bound", tall: 0.7 },
  running: { fill: "running", tall: 0.84 },
  ready: { fill: "ready" },
  leaving: { fill: "leaving", hatch: true },
  succeeded: { fill: "good" },
  failed: { fill: "bad" },

  Created: { fill: "created" },
  Running: { fill: "ready" },
  Restarting: { fill: "restarting" },
  Suspended: { fill: "suspended" },
  Succeeded: { fill: "good" },
  Complete: { fill: "good" },
  Failed: { fill: "bad" },
  submitted: { fill: "waiting", tall: 0.34 },

  Ready: { fill: "node" },
  NotReady: { fill: "bad" },
  Unknown: { fill: "bad", hatch: true },
  cordoned: { fill: "suspended", hatch: true },
  "gpus taken": { fill: "bound" },

  training: { fill: "train" },
  starting: { fill: "train-soft", tall: 0.6 },
  ending: { fill: "train-soft", tall: 0.6 },
  stalled: { fill: "stalled", hatch: true },
  silent: { fill: "stalled", hatch: true, tall: 0.6 },
  world: { fill: "train-soft" },

  fault: { fill: "fault" },
  gap: { fill: "gap", hatch: true },
  there: { fill: "created" },
};
// phases of group objects, by what they mean
const PHASES = {
  waiting: ["no phase", "Pending", "Inqueue", "QuotaReserved", "PodsNotReady"],
  bound: ["PreScheduling", "Scheduling", "Prescheduling"],
  ready: ["Scheduled", "Running", "Admitted", "PodsReady"],
  good: ["Finished", "Succeeded", "Completed", "Complete"],
  bad: ["Failed", "Unknown", "Evicted", "Unschedulable"],
};
const PHASE_LOOKS = {
  waiting: { fill: "waiting", tall: 0.34 },
  bound: { fill: "bound", tall: 0.7 },
  ready: { fill: "ready" },
  good: { fill: "good" },
  bad: { fill: "bad" },
};
const OTHER = { fill: "created" };

const isGroup = (kind) => kind === "PodGroup" || kind === "Workload" || kind === "PodDisruptionBudget";
function lookOf(state, kind) {
  if (isGroup(kind)) {
    const meaning = Object.keys(PHASES).find((each) => PHASES[each].includes(state));
    return meaning ? PHASE_LOOKS[meaning] : OTHER;
  }
  return LOOKS[state] ?? OTHER;
}

// marks: a shape, a colour, whether it is small
const MARKS = {
  change: { shape: "notch", fill: "mark", small: true, words: "something else changed" },
  event: { shape: "dot", fill: "mark", small: true, words: "event of the cluster" },
  warning: { shape: "up", fill: "restarting", words: "warning of the cluster" },
  replaced: { shape: "diamond", fill: "ink", words: "made again under its name" },
  agent: { shape: "down", fill: "ink", words: "container or agent started again" },
  worker: { shape: "hollow-down", fill: "ink", words: "worker process started again" },
  signal: { shape: "square", fill: "fault", words: "signal" },
  error: { shape: "cross", fill: "bad", words: "error" },
  resume: { shape: "right", fill: "curve", words: "resumed from a checkpoint" },
  checkpoint: { shape: "dot", fill: "curve", words: "checkpoint" },
  end: { shape: "bar", fill: "ink", words: "program ended" },
  gpus: { shape: "square", fill: "restarting", words: "number of GPUs changed" },
  mark: { shape: "bar", fill: "mark", words: "mark of the test" },
  violation: { shape: "up", fill: "violation", words: "broken promise" },
  inject: { shape: "diamond", fill: "fault", words: "fault injected" },
  proven: { shape: "check", fill: "fault", words: "fault proven" },
  unproven: { shape: "cross", fill: "fault", words: "fault not proven" },
  recover: { shape: "hollow-diamond", fill: "fault", words: "recovered" },
};
const markOf = (kind) => MARKS[kind] ?? MARKS.mark;

let paint = {}, inks = {};
function readColours() {
  const style = getComputedStyle(document.documentElement);
  const names = ["ground", "paper", "ink", "quiet", "line", "faint", "waiting", "bound", "running", "ready",
    "leaving", "good", "bad", "created", "restarting", "suspended", "node", "train", "train-soft", "stalled",
    "fault", "violation", "gap", "mark", "curve", "limit", "focus"];
  paint = Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  inks = Object.fromEntries(names.map((name) => [name, inkOn(paint[name])]));
  hatches.clear();
}
// black or white, whichever can be read better on a colour
function inkOn(colour) {
  const part = (at) => {
    const value = parseInt(colour.slice(at, at + 2), 16) / 255;
    return value <= 0.04 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  const light = 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
  return 1.05 / (light + 0.05) > (light + 0.05) / 0.058 ? "#ffffff" : "#10151b";
}

// hatching in a colour, as a canvas pattern
const hatches = new Map();
function hatch(g, colour) {
  const key = `${colour} ${g.getTransform().a}`;
  if (!hatches.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 12;
    const on = tile.getContext("2d");
    on.strokeStyle = colour;
    on.lineWidth = 3;
    on.beginPath();
    for (const shift of [-12, 0, 12]) { on.moveTo(shift - 2, 14); on.lineTo(shift + 14, -2); }
    on.stroke();
    const pattern = g.createPattern(tile, "repeat");
    pattern.setTransform(new DOMMatrix().scale(0.5));
    hatches.set(key, pattern);
  }
  return hatches.get(key);
}
