// The legend, printing, and the beginning.
const SECTIONS = {
  Pod: "Pods: the taller, the nearer to work",
  Training: "Training programs, under each pod",
  Job: "Conditions of jobs",
  Group: "Group objects",
  Node: "Nodes",
  Across: "Across lanes",
  Marks: "Marks",
};
const TRAINING = new Set(["starting", "training", "stalled", "silent", "ending"]);
function sectionOf(lane, row, state) {
  if (TRAINING.has(state)) return "Training";
  if (lane.kind === "Pod" || lane.kind === "Node") return lane.kind;
  if (lane.kind === "faults" || lane.kind === "gaps") return "Across";
  if (isGroup(lane.kind)) return "Group";
  return row.look === "thin" ? "Job" : null;
}
// The looks that this page has, each once.
function legend() {
  const found = Object.fromEntries(Object.keys(SECTIONS).map((each) => [each, new Map()]));
  const kinds = new Set();
  for (const lane of lanes) {
    for (const row of lane.rows) for (const { state } of row.segments) {
      const section = sectionOf(lane, row, state);
      if (section) found[section].set(state, lane.kind);
    }
    for (const each of lane.ticks) kinds.add(each.kind);
  }
  const order = Object.keys(LOOKS), boxes = [];
  for (const [section, title] of Object.entries(SECTIONS)) {
    const entries = section === "Marks"
      ? Object.keys(MARKS).filter((kind) => kinds.has(kind)).map((kind) => [MARKS[kind].words, markSwatch(kind)])
      : [...found[section]].sort((a, b) => order.indexOf(a[0]) - order.indexOf(b[0]))
        .map(([state, kind]) => [state, (g) => fillLook(g, lookOf(state, kind), 1, 1, 24, 12)]);
    if (!entries.length) continue;
    const box = element("div");
    box.append(element("b", "", title));
    for (const [label, draw] of entries) {
      const entry = element("span"), swatch = element("canvas");
      draw(ready(swatch, 26, 14));
      entry.append(swatch, label);
      box.append(entry);
    }
    boxes.push(box);
  }
  $("legend").replaceChildren(...boxes);
}
const markSwatch = (kind) => (g) =>
  kind === "violation" ? drawFlag(g, { number: 1 }, 20, 1, 12, false) : drawMark(g, kind, 13, 7, 4.5, false);

function restyle() {
  readColours();
  legend();
  repaint();
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
new ResizeObserver(() => { wide = 0; repaint(); }).observe(list);
const PRINTED = 1000 - 214; // as wide as the lanes are in the print styles
addEventListener("beforeprint", () => {
  printing = true;
  document.documentElement.dataset.theme = "light";
  wide = PRINTED;
  restyle();
  for (const line of lines.values()) paintLine(line, 2);
  paintRulers();
});
addEventListener("afterprint", () => {
  printing = false;
  delete document.documentElement.dataset.theme;
  wide = 0;
  restyle();
});

build();
readColours();
setDensity(lanes.filter((lane) => lane.kind === "Pod").length > 48 ? "compact" : "roomy");
legend();
paintRulers();
goToHash();
