// Draws lanes. Everything takes x in CSS pixels from a scale of the shown stretch.
const FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif";
const widths = new Map();
function fitText(g, words, room) {
  const measure = (part) => {
    const key = g.font + part;
    let found = widths.get(key);
    if (found === undefined) widths.set(key, found = g.measureText(part).width);
    return found;
  };
  if (measure(words) <= room) return words;
  if (room < 26) return "";
  let low = 0, high = words.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (measure(words.slice(0, middle) + "…") <= room) low = middle; else high = middle - 1;
  }
  return low > 2 ? words.slice(0, low) + "…" : "";
}
// Index of the first item that ends after x; items do not overlap much, so it is a place to begin.
function firstAt(items, x, end) {
  let low = 0, high = items.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (end(items[middle]) < x) low = middle + 1; else high = middle;
  }
  return low;
}
function fillLook(g, look, x, y, w, h) {
  const tall = Math.max(h * (look.tall ?? 1), Math.min(h, 2)), top = y + h - tall;
  if (look.hatch) {
    g.globalAlpha = 0.2;
    g.fillStyle = paint[look.fill];
    g.fillRect(x, top, w, tall);
    g.globalAlpha = 1;
    g.fillStyle = hatch(g, paint[look.fill]);
    g.fillRect(x, top, w, tall);
  } else {
    g.fillStyle = paint[look.fill];
    g.fillRect(x, top, w, tall);
  }
  return tall;
}
function drawRow(g, row, kind, y, h, to, wide, size, quietLabels) {
  const { segments } = row;
  let drawn = -1, last = "";
  g.font = `${size}px ${FONT}`;
  g.textBaseline = "middle";
  for (let i = firstAt(segments, view.x0, (each) => each.x1); i < segments.length; i++) {
    const each = segments[i];
    if (each.x0 > view.x1) break;
    const x = Math.max(to(each.x0), -2), right = Math.min(to(each.x1), wide + 2);
    const w = Math.max(right - x, 1);
    // many of one look in a pixel are one rectangle
    if (right <= drawn + 0.5 && each.state === last && each !== chosen.item) continue;
    const look = lookOf(each.state, kind);
    const tall = fillLook(g, look, x, y, w, h);
    if (w > 3 && i > 0) { g.fillStyle = paint.paper; g.fillRect(x, y + h - tall, 0.75, tall); }
    drawn = right;
    last = each.state;
    if (each === chosen.item) outline(g, x, y, w, h);
    if (quietLabels || w < 24 || size < 7) continue;
    const begins = clear(row.marks, Math.max(x, 0), to), room = Math.min(right, wide) - begins - 8;
    const words = fitText(g, each.label || each.state, room);
    if (!words) continue;
    // words stand on the bar, above a low one, or else on a piece of ground of their own
    const on = tall >= size * 0.8 && !look.hatch, above = !on && !look.hatch && h - tall >= size * 0.7;
    if (!on && !above) {
      g.fillStyle = paint.paper;
      g.globalAlpha = 0.82;
      g.fillRect(begins + 2, y + 1, g.measureText(words).width + 4, h - 2);
      g.globalAlpha = 1;
    }
    g.fillStyle = on ? inks[look.fill] : paint.ink;
    g.fillText(words, begins + 4, on ? y + h - tall / 2 + 0.5 : above ? y + (h - tall) / 2 : y + h / 2);
  }
}
// Where words can begin: after a mark that stands at the beginning.
function clear(marks, x, to) {
  if (!marks) return x;
  let at = x;
  for (let i = firstAt(marks, view.x0 + (x - 9) * (to.per ?? 0), (each) => each.x); i < marks.length; i++) {
    const mark = to(marks[i].x);
    if (mark > at + 9) break;
    if (mark > at - 6) at = mark + 4;
  }
  return at;
}
function outline(g, x, y, w, h) {
  g.strokeStyle = paint.ink;
  g.lineWidth = 2;
  g.strokeRect(x + 0.5, y, Math.max(w - 1, 2), h);
}
function drawMark(g, kind, x, y, r, picked) {
  const mark = markOf(kind), colour = paint[mark.fill];
  if (mark.shape === "notch" || mark.shape === "bar") {
    const w = mark.shape === "bar" ? 2 : 1;
    g.fillStyle = colour;
    g.fillRect(x - w / 2, y - r, w, r * 2);
    if (picked) outline(g, x - 3, y - r - 1, 6, r * 2 + 2);
    return;
  }
  g.beginPath();
  switch (mark.shape) {
    case "dot": g.arc(x, y, mark.small ? r * 0.5 : r * 0.75, 0, 7); break;
    case "up": g.moveTo(x, y - r); g.lineTo(x + r, y + r); g.lineTo(x - r, y + r); g.closePath(); break;
    case "down": case "hollow-down":
      g.moveTo(x, y + r); g.lineTo(x + r, y - r); g.lineTo(x - r, y - r); g.closePath(); break;
    case "right": g.moveTo(x + r, y); g.lineTo(x - r, y - r); g.lineTo(x - r, y + r); g.closePath(); break;
    case "square": g.rect(x - r * 0.8, y - r * 0.8, r * 1.6, r * 1.6); break;
    case "cross": g.moveTo(x - r, y - r); g.lineTo(x + r, y + r); g.moveTo(x + r, y - r); g.lineTo(x - r, y + r); break;
    case "check": g.moveTo(x - r, y); g.lineTo(x - r * 0.2, y + r * 0.8); g.lineTo(x + r, y - r * 0.8); break;
    default: g.moveTo(x, y - r * 1.2); g.lineTo(x + r * 1.1, y); g.lineTo(x, y + r * 1.2); g.lineTo(x - r * 1.1, y); g.closePath();
  }
  g.lineJoin = "round";
  g.strokeStyle = picked ? paint.focus : paint.paper;
  const open = mark.shape === "cross" || mark.shape === "check";
  g.lineWidth = picked ? 6 : open ? 4.5 : 3;
  g.stroke();
  const hollow = mark.shape.startsWith("hollow");
  if (open || hollow) {
    if (hollow) { g.fillStyle = paint.paper; g.fill(); }
    g.strokeStyle = colour;
    g.lineWidth = open ? 2 : 1.5;
    g.stroke();
  } else {
    g.fillStyle = colour;
    g.fill();
  }
}
function drawTicks(g, lane, y, h, to, wide, r) {
  if (lane.kind === "violations") return;
  const heightAt = lane.curve && onCurve(lane.curve, y, h);
  const last = new Map();
  const { ticks } = lane;
  const reach = (view.x1 - view.x0) / wide * 10;
  for (let i = firstAt(ticks, view.x0 - reach, (each) => each.x); i < ticks.length; i++) {
    const each = ticks[i];
    if (each.x > view.x1 + reach) break;
    const x = to(each.x), mark = markOf(each.kind);
    if (x - (last.get(each.kind) ?? -9) < (mark.small ? 2 : 1) && each !== chosen.item) continue;
    last.set(each.kind, x);
    if (mark.small) drawMark(g, each.kind, x, y + h - 2, Math.min(r, 2.5), each === chosen.item);
    else drawMark(g, each.kind, x, heightAt ? heightAt(each.x) : y + h / 2, r, each === chosen.item);
  }
}
const limitAt = (chart, x) => chart.limits.findLast(([when]) => when <= x + 0.001)?.[1];
// The steps of a chart that can be seen; of several in one pixel the last.
function shownPoints(points, to, wide) {
  const found = [];
  for (let i = Math.max(firstAt(points, view.x0, (each) => each[0]) - 1, 0); i < points.length; i++) {
    const [from, ...numbers] = points[i];
    if (from > view.x1) break;
    const last = i + 1 === points.length;
    const x = Math.max(to(from), -1), right = Math.min(last ? to(raw.end) : to(points[i + 1][0]), wide + 1);
    if (right < 0 || (right - (found.at(-1)?.right ?? -2) < 0.3 && !last)) continue;
    found.push({ from, numbers, x: found.at(-1)?.right ?? x, right });
  }
  return found;
}
// Stacked areas, lowest series first; the limit is a line, red where it is not kept.
function drawChart(g, chart, y, h, to, wide) {
  const { points, series, limits } = chart;
  let most = 1;
  for (const [, ...numbers] of points) most = Math.max(most, numbers.reduce((a, b) => a + b, 0));
  for (const [, value] of limits) most = Math.max(most, value);
  const up = (value) => y + h - (value / most) * (h - 3);
  const shown = shownPoints(points, to, wide), lows = shown.map(() => 0);
  // one outline for each series, so that many short steps leave no seams
  series.forEach((name, index) => {
    if (!shown.some((each) => each.numbers[index])) return;
    g.beginPath();
    const corners = (heights) => shown.flatMap((each, i) => [[each.x, up(heights[i])], [each.right, up(heights[i])]]);
    const bottom = corners(lows);
    shown.forEach((each, i) => { lows[i] += each.numbers[index]; });
    for (const [x, at] of [...corners(lows), ...bottom.reverse()]) g.lineTo(x, at);
    g.closePath();
    const look = LOOKS[name] ?? OTHER;
    g.fillStyle = paint[look.fill];
    g.globalAlpha = look.hatch ? 0.2 : 1;
    g.fill();
    g.globalAlpha = 1;
    if (look.hatch) { g.fillStyle = hatch(g, paint[look.fill]); g.fill(); }
  });
  if (!chart.floor) for (const each of shown) {
    const compared = each.numbers.slice(0, chart.compared).reduce((a, b) => a + b, 0);
    const limit = limitAt(chart, each.from);
    if (limit === undefined || compared <= limit) continue;
    g.fillStyle = paint.violation;
    g.fillRect(each.x, up(compared), Math.max(each.right - each.x, 1), up(limit) - up(compared));
  }
  g.strokeStyle = paint.limit;
  g.lineWidth = 1;
  g.setLineDash([4, 3]);
  limits.forEach(([when, value], i) => {
    const x = to(when), right = i + 1 < limits.length ? to(limits[i + 1][0]) : to(raw.end);
    if (right < 0 || x > wide || !value) return;
    g.beginPath();
    g.moveTo(Math.max(x, 0), Math.round(up(value)) + 0.5);
    g.lineTo(Math.min(right, wide), Math.round(up(value)) + 0.5);
    g.stroke();
  });
  g.setLineDash([]);
  g.font = `9.5px ${FONT}`;
  g.textBaseline = "top";
  if (h >= 26 && points.length) {
    g.fillStyle = paint.quiet;
    g.textAlign = "right";
    g.fillText(String(most), wide - 3, y + 1);
    g.textAlign = "left";
  }
}
function drawCurve(g, curve, y, h, to, wide, size) {
  drawRow(g, { segments: curve.bands }, "world", y, h, to, wide, size, true);
  bandLabels(g, curve.bands, y, to, wide, size);
  const { points } = curve, up = curveHeight(curve, y, h);
  curve.cuts ??= new Set(curve.bands.map((band) => points.findIndex((point) => point[0] >= band.x0 - 0.001)));
  g.strokeStyle = paint.curve;
  const begin = Math.max(firstAt(points, view.x0, (each) => each[0]), 1);
  // dashed from one process group to the next: nobody trained there
  for (const between of [false, true]) {
    g.lineWidth = between ? 1 : 1.75;
    g.setLineDash(between ? [2, 3] : []);
    g.beginPath();
    for (let i = begin; i < points.length; i++) {
      if (points[i - 1][0] > view.x1) break;
      if (curve.cuts.has(i) !== between) continue;
      g.moveTo(to(points[i - 1][0]), up(points[i - 1][1]));
      g.lineTo(to(points[i][0]), up(points[i][1]));
    }
    g.stroke();
  }
  g.setLineDash([]);
}
// marks of a curve stand on it
function onCurve(curve, y, h) {
  const up = curveHeight(curve, y, h), { points } = curve;
  return (x) => up(points[Math.max(firstAt(points, x + 0.0005, (each) => each[0]) - 1, 0)]?.[1] ?? 0);
}
function bandLabels(g, bands, y, to, wide, size) {
  if (size < 7) return;
  g.font = `${size}px ${FONT}`;
  g.textBaseline = "top";
  g.fillStyle = paint.ink;
  for (const band of bands) {
    const x = Math.max(to(band.x0), 0), right = Math.min(to(band.x1), wide);
    const label = right - x > 10 ? fitText(g, band.label, right - x - 6) : "";
    if (label) g.fillText(label, x + 4, y + 3);
  }
}
function curveHeight(curve, y, h) {
  curve.most ??= Math.max(1, ...curve.points.map((point) => point[1]));
  return (value) => y + h - 3 - (value / curve.most) * (h - 8);
}
// What goes through all lanes: gaps, faults, violations.
function drawThrough(g, lane, wide, high, to) {
  for (const gap of gaps) {
    if (gap.x1 < view.x0 || gap.x0 > view.x1 || !lane || lane.kind === "gaps") continue;
    const about = !gap.kind || gap.kind === lane.kind || (gap.kind === "Pod" && lane.kind === "pods");
    if (!about) continue;
    const x = to(gap.x0), w = Math.max(to(gap.x1) - x, 2);
    g.globalAlpha = 0.55;
    g.fillStyle = hatch(g, paint.gap);
    g.fillRect(x, 0, w, high);
    g.globalAlpha = 1;
  }
  for (const fault of faults) {
    if (fault.x1 < view.x0 || fault.x0 > view.x1) continue;
    const x = to(fault.x0), right = to(fault.x1);
    g.globalAlpha = 0.09;
    g.fillStyle = paint.fault;
    g.fillRect(x, 0, Math.max(right - x, 1), high);
    g.globalAlpha = 1;
    line(g, x, high, paint.fault, [5, 3]);
    if (!fault.open) line(g, right, high, paint.fault, [1.5, 3]);
  }
  for (const flag of flags) {
    if (flag.x < view.x0 || flag.x > view.x1) continue;
    g.globalAlpha = lane?.flags.includes(flag) ? 1 : 0.5;
    line(g, to(flag.x), high, flag.known ? KNOWN : paint.violation, []);
    g.globalAlpha = 1;
  }
}
function line(g, x, high, colour, dash) {
  g.strokeStyle = colour;
  g.lineWidth = 1;
  g.setLineDash(dash);
  g.beginPath();
  g.moveTo(Math.round(x) + 0.5, 0);
  g.lineTo(Math.round(x) + 0.5, high);
  g.stroke();
  g.setLineDash([]);
}
// A violation: a flag with its number, before its line, where it hides what was and not what came.
const FLAG = "#c20f34", KNOWN = "#7a4fb0";
function drawFlag(g, flag, x, y, high, picked) {
  const { number } = flag, wide = number > 9 ? 17 : 13, left = x < wide ? x : x - wide;
  g.fillStyle = flag.known ? KNOWN : FLAG;
  g.fillRect(left, y, wide, high);
  if (picked) outline(g, left, y, wide, high);
  g.font = `bold 9px ${FONT}`;
  g.textBaseline = "middle";
  g.textAlign = "center";
  g.fillStyle = "#ffffff";
  if (high >= 9) g.fillText(String(number), left + wide / 2, y + 0.5 + high / 2);
  g.textAlign = "left";
}
function drawFlags(g, found, wide, y, high, to) {
  let last = -99;
  for (const flag of found) {
    const x = to(flag.x), picked = flag === chosen.item;
    if (x < -8 || x > wide + 8 || (x - last < 4 && !picked)) continue;
    last = x;
    drawFlag(g, flag, x, y, high, picked);
  }
}
