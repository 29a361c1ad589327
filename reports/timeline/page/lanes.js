// Builds the lines of the page, and paints those that can be seen.
const SIZES = {
  roomy: { bar: 15, strip: 12, thin: 13, chart: 46, curve: 44, marks: 24, pad: 3, size: 10, mark: 4.5, group: 30 },
  compact: { bar: 11, strip: 5, thin: 10, chart: 34, curve: 32, marks: 18, pad: 2, size: 8.5, mark: 3.5, group: 26 },
  tiny: { bar: 5, strip: 0, thin: 6, chart: 26, curve: 24, marks: 14, pad: 0.5, size: 0, mark: 2.5, group: 22 },
};
const chosen = { lane: null, item: null };
const list = $("lanes");
const hair = document.createElement("div");
let sizes = SIZES.roomy, printing = false;
const lines = new Map();
const seen = new Set();
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const line = lines.get(entry.target);
    if (entry.isIntersecting) {
      seen.add(line);
      paintLine(line);
    } else if (!printing) {
      seen.delete(line);
      line.canvas.width = 0;
    }
  }
}, { rootMargin: "150px 0px" });

// In the smallest density only pods are tiny: there are few of the others, and they say most.
const sizesOf = (lane) => (sizes === SIZES.tiny && lane.kind !== "Pod" ? SIZES.compact : sizes);
function rowsOf(lane) {
  return lane.rows.filter((row) => sizesOf(lane)[row.look] > 0);
}
function heightOf(lane) {
  const sizes = sizesOf(lane);
  let high = rowsOf(lane).reduce((sum, row) => sum + sizes[row.look], 0);
  if (lane.chart) high += (high ? 1 : 0) + (lane.kind === "Node" || lane.kind === "count" ? Math.round(sizes.chart * 0.6) : sizes.chart);
  if (lane.curve) high += sizes.curve;
  if (!high) high = sizes.marks - 2 * sizes.pad;
  return Math.ceil(high + 2 * sizes.pad);
}
function makeLine(className, level, title, note, full) {
  const node = document.createElement("div");
  node.className = className;
  node.setAttribute("role", "treeitem");
  node.setAttribute("aria-level", level);
  node.tabIndex = -1;
  const name = document.createElement("div");
  name.className = "name";
  name.title = note ? `${full} · ${note}` : full;
  const bold = document.createElement("b");
  bold.textContent = title;
  const small = document.createElement("i");
  small.textContent = note;
  name.append(bold, small);
  const canvas = document.createElement("canvas");
  canvas.setAttribute("aria-hidden", "true");
  node.append(name, canvas);
  list.append(node);
  return { node, canvas };
}
function build() {
  hair.id = "hair";
  hair.hidden = true;
  for (const group of groups) {
    group.line = makeLine("group", 1, group.title, group.note, group.title);
    group.line.group = group;
    lines.set(group.line.node, group.line);
    for (const lane of group.lanes) {
      lane.line = makeLine("lane", 2, lane.name, lane.note, lane.title);
      lane.line.lane = lane;
      lane.line.node.dataset.lane = lane.id;
      lane.line.node.dataset.kind = lane.kind;
      lane.line.node.setAttribute("aria-label", spoken(lane));
      lines.set(lane.line.node, lane.line);
    }
  }
  list.append(hair);
  (groups[0]?.line.node ?? list).tabIndex = 0;
  for (const node of lines.keys()) watcher.observe(node);
}
function spoken(lane) {
  const last = lane.rows[0]?.segments.at(-1);
  const parts = [lane.title, lane.note, last && `last ${last.label || last.state}`,
    lane.flags.length && `${lane.flags.length} broken promises`];
  return parts.filter(Boolean).join(", ");
}
// Sets what is shown (groups, filter, density) and the heights.
let words = [];
function layout() {
  let count = 0, pods = 0;
  for (const group of groups) {
    const fits = group.lanes.filter((lane) => words.every((word) => lane.words.includes(word)));
    const open = words.length ? fits.length > 0 : group.open;
    group.line.node.hidden = words.length > 0 && !fits.length;
    group.line.node.setAttribute("aria-expanded", String(open));
    group.line.high = sizes.group;
    for (const lane of group.lanes) {
      const { line } = lane;
      line.node.hidden = !open || (words.length > 0 && !fits.includes(lane));
      line.high = heightOf(lane);
      line.node.classList.toggle("two", line.high >= 28);
      // names that have no room are shown for some, so that one knows where one is
      line.node.classList.toggle("tiny", line.high < 12);
      line.node.classList.toggle("named", pods % 4 === 0);
      if (!line.node.hidden) count += 1;
      if (!line.node.hidden && lane.kind === "Pod") pods += 1;
    }
  }
  for (const line of lines.values()) {
    line.node.style.height = `${line.high}px`;
    line.canvas.style.height = `${line.high}px`;
  }
  $("shown").textContent = words.length ? `${count} of ${lanes.length} lanes` : "";
  $("nothing").hidden = !words.length || count > 0;
  repaint();
}
function setDensity(name) {
  sizes = SIZES[name];
  $("density").value = name;
  layout();
}
const wideOf = () => Math.max(list.clientWidth - namesWidth(), 40);
function namesWidth() {
  return parseFloat(getComputedStyle(list.parentElement).getPropertyValue("--names"));
}
let wide = 0;
function paintLine(line, density) {
  if (line.node.hidden) return;
  wide ||= wideOf();
  const { high, lane } = line, g = ready(line.canvas, wide, high, density);
  const scale = wide / (view.x1 - view.x0), to = (x) => (x - view.x0) * scale;
  to.per = 1 / scale;
  g.strokeStyle = paint.faint;
  g.lineWidth = 1;
  g.beginPath();
  for (const x of steps(view.x0, view.x1, wide, 90).at) {
    g.moveTo(Math.round(to(x)) + 0.5, 0);
    g.lineTo(Math.round(to(x)) + 0.5, high);
  }
  g.stroke();
  if (!lane) {
    const h = high - 12;
    drawRow(g, { segments: line.group.summary }, "job", 6, h, to, wide, h < 14 ? 9 : 10, h < 10);
    drawThrough(g, null, wide, high, to);
    return;
  }
  const sizes = sizesOf(lane);
  let y = sizes.pad, top = y;
  for (const row of rowsOf(lane)) {
    const h = sizes[row.look];
    const named = row.label !== "", inset = named ? 1 : 0;
    const room = h - 2 * inset - (row.look === "strip" ? 1 : 0);
    drawRow(g, row, lane.kind, y + inset, room, to, wide, Math.min(sizes.size, room - 1), h < 9);
    y += h;
  }
  const barHigh = Math.max(y - top, high - 2 * sizes.pad > y - top && !lane.chart && !lane.curve ? high - 2 * sizes.pad : 0);
  if (lane.chart) drawChart(g, lane.chart, y + (y > top ? 1 : 0), high - y - 1 - sizes.pad, to, wide);
  if (lane.curve) drawCurve(g, lane.curve, y, high - y - sizes.pad, to, wide, sizes.size);
  drawThrough(g, lane, wide, high, to);
  const first = rowsOf(lane)[0];
  const tickHigh = lane.curve ? high - y - sizes.pad : first && first.look === "bar" ? sizes.bar : barHigh;
  drawTicks(g, lane, top, tickHigh, to, wide, sizes.mark);
  const flagHigh = Math.min(13, high - 2);
  if (lane.kind === "violations") drawFlags(g, flags, wide, (high - flagHigh) / 2, flagHigh, to);
  else drawFlags(g, lane.flags, wide, 1, flagHigh, to);
}
function paintRulers() {
  const canvas = $("axis"), w = canvas.clientWidth;
  if (!w) return;
  const g = ready(canvas, printing ? wide : w, 22), to = (x) => ((x - view.x0) / (view.x1 - view.x0)) * (printing ? wide : w);
  g.font = `11px ${FONT}`;
  g.textBaseline = "middle";
  g.fillStyle = paint.quiet;
  g.strokeStyle = paint.line;
  const { step, at } = steps(view.x0, view.x1, w, 90);
  for (const x of at) {
    g.beginPath();
    g.moveTo(Math.round(to(x)) + 0.5, 14);
    g.lineTo(Math.round(to(x)) + 0.5, 22);
    g.stroke();
    g.fillText(axisLabel(x, step), to(x) + 4, 12);
  }
  paintOverview();
}
// The pods of all jobs together, as one chart; null where there is none.
const allPods = (() => {
  const charts = lanes.filter((lane) => lane.kind === "pods").map((lane) => lane.chart);
  if (charts.length < 2) return charts[0] ? { ...charts[0], limits: [] } : null;
  const now = charts.map(() => []), total = charts[0].series.map(() => 0);
  const steps = charts.flatMap((chart, index) => chart.points.map((point) => [index, point]));
  steps.sort((a, b) => a[1][0] - b[1][0]);
  const points = steps.map(([index, [x, ...numbers]]) => {
    numbers.forEach((value, i) => { total[i] += value - (now[index][i] ?? 0); });
    now[index] = numbers;
    return [x, ...total];
  });
  return { ...charts[0], limits: [], points };
})();
// All of the test in small: pods by state, faults, violations, and what of it is shown.
function paintOverview() {
  const canvas = $("overview"), w = canvas.clientWidth, h = 26;
  const g = ready(canvas, w, h), kept = { ...view };
  Object.assign(view, fitted);
  const to = (x) => ((x - fitted.x0) / (fitted.x1 - fitted.x0)) * w;
  g.fillStyle = paint.faint;
  g.fillRect(0, 0, w, h - 2);
  g.globalAlpha = 0.85;
  if (allPods) drawChart(g, allPods, 3, h - 7, to, w);
  else groups.filter((group) => group.summary.length).slice(0, 3).forEach((group, i) =>
    drawRow(g, { segments: group.summary }, "job", 4 + i * 7, 6, to, w, 0, true));
  g.globalAlpha = 1;
  drawThrough(g, null, w, h - 2, to);
  Object.assign(view, kept);
  const x = to(view.x0), right = to(view.x1);
  g.fillStyle = paint.paper;
  g.globalAlpha = 0.66;
  g.fillRect(0, 0, x, h - 2);
  g.fillRect(right, 0, w - right, h - 2);
  g.globalAlpha = 1;
  g.strokeStyle = paint.focus;
  g.lineWidth = 1.5;
  g.strokeRect(Math.max(x, 0) + 0.75, 0.75, Math.min(right, w) - Math.max(x, 0) - 1.5, h - 3.5);
}
function paintAll() {
  for (const line of seen) paintLine(line);
}
painters.add(paintAll).add(paintRulers);
