// What an item is, in words: for the tip under the pointer and the panel of the chosen one.
const tip = $("tip"), panel = $("details");

// All items of a lane in the order of time: what the arrow keys walk along.
function itemsOf(lane) {
  lane.items ??= [
    ...lane.rows.flatMap((row) => row.segments),
    ...(lane.curve?.bands ?? []),
    ...lane.ticks.filter((each) => each.kind !== "violation"),
    ...(lane.kind === "violations" ? flags : lane.flags),
    ...(lane.chart?.points.map((point, index) => pointItem(lane, index)) ?? []),
  ].sort((a, b) => startOf(a) - startOf(b));
  return lane.items;
}
const startOf = (item) => item.x ?? item.x0;
const endOf = (item) => item.x ?? item.x1;
function pointItem(lane, index) {
  const { points } = lane.chart;
  return (points[index].item ??= { x0: points[index][0], x1: points[index + 1]?.[0] ?? raw.end, point: points[index], chart: lane.chart });
}
// The item under a place of a lane: flags and marks first, then bars.
function itemAt(lane, x, y, reach) {
  const near = (items) => items.filter((each) => Math.abs(each.x - x) <= reach)
    .sort((a, b) => Math.abs(a.x - x) - Math.abs(b.x - x));
  const found = near(lane.kind === "violations" ? flags : lane.flags);
  if (found.length) return found[0];
  const marks = near(lane.ticks.filter((each) => each.kind !== "violation"));
  const large = marks.find((each) => !markOf(each.kind).small);
  if (large) return large;
  const small = marks.find((each) => y > lane.line.high * 0.55 && Math.abs(each.x - x) < reach / 2);
  if (small) return small;
  const inside = (each) => each.x0 <= x && x <= each.x1;
  const own = sizesOf(lane);
  let top = own.pad;
  for (const row of rowsOf(lane)) {
    const h = own[row.look], last = row === rowsOf(lane).at(-1) && !lane.chart && !lane.curve;
    if (y < top + h || last) return row.segments.findLast(inside) ?? shortest(row.segments, x, reach);
    top += h;
  }
  if (lane.curve) return lane.curve.bands.findLast(inside) ?? null;
  if (lane.chart) {
    const index = lane.chart.points.findLastIndex((point) => point[0] <= x);
    return index < 0 ? null : pointItem(lane, index);
  }
  return null;
}
// a bar too short to hit
function shortest(segments, x, reach) {
  return segments.find((each) => Math.abs((each.x0 + each.x1) / 2 - x) <= reach / 2) ?? null;
}

function element(name, className, words) {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (words !== undefined) made.textContent = words;
  return made;
}
function headline(item, lane) {
  if (item.message) return item.message;
  if (item.point) return chartWords(item);
  if (item.x !== undefined) return SMALL.has(item.kind) ? item.text : `${markOf(item.kind).words}: ${item.text}`;
  const label = item.label || item.state;
  return label.toLowerCase().includes(item.state.toLowerCase()) || lane?.kind === "training" ? label : `${item.state} · ${label}`;
}
function chartWords(item) {
  const { series, limit } = item.chart;
  const parts = series.map((name, index) => item.point[index + 1] ? `${item.point[index + 1]} ${name}` : "").filter(Boolean);
  const bound = limitAt(item.chart, item.x0);
  return (parts.join(", ") || "none") + (bound !== undefined ? ` (${limit}: ${bound})` : "");
}
function whenWords(item) {
  if (item.x !== undefined) return `${offset(item.x)} · ${clock(item.x)}`;
  const long = length(item.x1 - item.x0);
  return `${offset(item.x0)} to ${offset(item.x1)} · ${long} · from ${clock(item.x0)}`;
}
function eventsOf(item) {
  if (item.events) return item.events.map((seq) => ["cited", seq]);
  if (item.point) return [];
  if (item.x !== undefined) return [["", item.event]];
  return [["began", item.began], ["ended", item.ended]];
}
function saidOf(how, seq, link) {
  const note = notes.get(seq), box = element("div", "said");
  const head = element("div"), number = element(link ? "a" : "b", "", `event ${seq}`);
  if (link) number.href = `#e${seq}`;
  if (how === "began" || how === "ended") head.append(`${how} with `);
  head.append(number);
  if (note) {
    head.append(` · ${note.type} ${note.subject}${note.rv ? ` · version ${note.rv}` : ""} · ${offset(note.x)}`);
    const phrases = note.words.split("; ");
    const words = phrases.length > 1 ? element("ul") : element("div", "", note.words);
    if (phrases.length > 1) for (const phrase of phrases) words.append(element("li", "", phrase));
    box.append(head, words);
  } else {
    box.append(head);
  }
  return box;
}
function describe(item, lane, full) {
  const found = document.createDocumentFragment();
  if (full) found.append(element("h3", "", headline(item, lane)));
  else found.append(element("b", "", headline(item, lane)));
  const about = item.message ? [item.subject, item.invariant, item.behaviour].filter(Boolean).join(" · ") : lane.title;
  found.append(element("div", "when", about), element("div", "when", whenWords(item)));
  if (item.known) {
    const [id, href] = item.known, said = element("div", "when", "known: "), link = element("a", "", id);
    link.href = href;
    said.append(link);
    found.append(said);
  }
  const events = eventsOf(item).filter(([, seq]) => seq > 0);
  for (const [how, seq] of full ? events.slice(0, 40) : events.slice(0, 1)) found.append(saidOf(how, seq, full));
  return found;
}
function showTip(item, lane, x, y) {
  tip.replaceChildren(describe(item, lane, false));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 6))}px`;
  tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 12) : y + 18}px`;
}
const hideTip = () => { tip.hidden = true; };

// Chooses an item: the panel says all about it; it stays outlined.
function choose(item, lane) {
  chosen.item = item;
  chosen.lane = lane;
  if (!item) panel.hidden = true;
  else {
    const close = element("button", "close", "×");
    close.setAttribute("aria-label", "Close the details");
    close.addEventListener("click", () => choose(null, null));
    panel.replaceChildren(close, describe(item, lane, true));
    panel.hidden = false;
    panel.scrollTop = 0;
  }
  repaint();
}
// Brings a lane into view, whatever hides it.
function reveal(lane, flash = true) {
  if (words.length && !words.every((word) => lane.words.includes(word))) {
    $("filter").value = "";
    words = [];
  }
  lane.group.open = true;
  layout();
  focusLine(lane.line, false);
  const box = lane.line.node.getBoundingClientRect(), under = document.querySelector(".sticky").offsetHeight;
  if (box.top < under + 20 || box.bottom > innerHeight * 0.6) {
    scrollBy({ top: box.top - under - innerHeight * 0.2, behavior: still.matches ? "instant" : "smooth" });
  }
  if (flash) {
    lane.line.node.classList.remove("flash");
    void lane.line.node.offsetWidth;
    lane.line.node.classList.add("flash");
  }
}
// Shows the moments *xs* with some room around.
function around(...xs) {
  const low = Math.min(...xs), high = Math.max(...xs);
  const long = Math.max((high - low) * 1.5, whole.long * 0.12, SHORTEST * 10);
  if (low >= view.x0 && high <= view.x1 && view.x1 - view.x0 <= long * 4) return;
  glide((low + high - long) / 2, (low + high + long) / 2);
}
function goToFlag(flag) {
  const lane = laneOf.get(flag.lane) ?? laneOf.get("violations");
  const cited = flag.events.map((seq) => notes.get(seq)?.x).filter((x) => x !== undefined);
  around(flag.x, ...cited);
  reveal(lane);
  choose(flag, lane);
}
function goToEvent(seq) {
  const note = notes.get(seq);
  if (!note) return;
  around(note.x);
  const home = laneOf.get(note.subject) ?? lanes.find((lane) => itemsOf(lane).some((item) => item.event === seq));
  if (!home) return;
  reveal(home);
  const item = itemsOf(home).find((each) => [each.event, each.began].includes(seq))
    ?? itemsOf(home).find((each) => each.ended === seq)
    ?? { x: note.x, kind: "change", text: note.words, event: seq };
  choose(item, home);
}
function goToHash() {
  const [, kind, number] = location.hash.match(/^#([ve])(\d+)$/) ?? [];
  if (kind === "v" && flags[number - 1]) goToFlag(flags[number - 1]);
  if (kind === "e") goToEvent(Number(number));
}
