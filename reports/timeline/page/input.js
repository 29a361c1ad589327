// Mouse, touch, keyboard.
const xAt = (clientX, canvas) => {
  const box = canvas.getBoundingClientRect();
  return view.x0 + ((clientX - box.left) / box.width) * (view.x1 - view.x0);
};
const perPixel = (canvas) => (view.x1 - view.x0) / Math.max(canvas.clientWidth, 1);

function focusLine(line, scroll = true) {
  for (const each of lines.values()) each.node.tabIndex = -1;
  line.node.tabIndex = 0;
  line.node.focus({ preventScroll: !scroll });
}
const lineOf = (target) => lines.get(target.closest?.(".lane, .group"));

// zoom and move
function onWheel(event, always) {
  const canvas = event.target.closest("canvas") ?? $("axis");
  if (event.ctrlKey || event.metaKey || (always && !event.shiftKey && Math.abs(event.deltaY) >= Math.abs(event.deltaX))) {
    event.preventDefault();
    zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006), xAt(event.clientX, canvas));
  } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    pan((event.deltaX || event.deltaY) / Math.max(canvas.clientWidth, 1));
  }
}
list.addEventListener("wheel", (event) => onWheel(event, false), { passive: false });
for (const id of ["axis", "overview"]) $(id).addEventListener("wheel", (event) => onWheel(event, true), { passive: false });

// dragging with one pointer moves, two pointers pinch
const pointers = new Map();
let dragged = false;
list.addEventListener("pointerdown", (event) => {
  if (event.target.tagName !== "CANVAS" || event.button) return;
  pointers.set(event.pointerId, event);
  dragged = false;
  hideTip();
});
addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const canvas = before.target, others = [...pointers.values()].filter((each) => each !== before);
  if (others.length) {
    const other = others[0];
    const was = Math.abs(before.clientX - other.clientX), now = Math.abs(event.clientX - other.clientX);
    dragged = true;
    if (was > 8 && now > 8) zoom(was / now, xAt((event.clientX + other.clientX) / 2, canvas));
  } else if (!dragged && Math.abs(event.clientX - before.clientX) < 4) {
    return;
  } else {
    if (!dragged) list.classList.add("panning");
    dragged = true;
    pan((before.clientX - event.clientX) / Math.max(canvas.clientWidth, 1));
  }
  pointers.set(event.pointerId, Object.assign(Object.create(null), {
    target: canvas, clientX: event.clientX, pointerId: event.pointerId,
  }));
});
const release = (event) => {
  pointers.delete(event.pointerId);
  if (!pointers.size) list.classList.remove("panning");
};
addEventListener("pointerup", release);
addEventListener("pointercancel", release);

list.addEventListener("click", (event) => {
  const line = lineOf(event.target);
  if (!line || dragged) return;
  focusLine(line, false);
  if (line.group) {
    if (event.target.tagName !== "CANVAS" || !line.group.summary.length) toggle(line.group);
    return;
  }
  if (event.target.tagName !== "CANVAS") return;
  choose(under(event, line), line.lane);
});
list.addEventListener("dblclick", (event) => {
  const line = lineOf(event.target), item = line?.lane && event.target.tagName === "CANVAS" && under(event, line);
  if (!item) return;
  const room = Math.max(endOf(item) - startOf(item), whole.long / 50) * 0.15;
  glide(startOf(item) - room, endOf(item) + room);
});
function under(event, line) {
  const box = line.canvas.getBoundingClientRect();
  return itemAt(line.lane, xAt(event.clientX, line.canvas), event.clientY - box.top, perPixel(line.canvas) * 6);
}
list.addEventListener("pointermove", (event) => {
  const line = lineOf(event.target);
  if (pointers.size || !line || event.target.tagName !== "CANVAS") return hideTip();
  const x = xAt(event.clientX, line.canvas);
  hair.hidden = false;
  hair.style.left = `${event.clientX - list.getBoundingClientRect().left}px`;
  $("cursor").textContent = `${offset(x)}\n${clock(x)}`;
  const item = event.pointerType !== "touch" && line.lane && under(event, line);
  if (item) showTip(item, line.lane, event.clientX, event.clientY);
  else hideTip();
});
list.addEventListener("pointerleave", () => {
  hair.hidden = true;
  $("cursor").textContent = "";
  hideTip();
});
addEventListener("scroll", hideTip, { passive: true });

// the axis: drag over a stretch to zoom to it; the overview: drag what is shown
function drag(canvas, move, done) {
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const begin = event.clientX;
    canvas.setPointerCapture(event.pointerId);
    const onMove = (each) => move(begin, each.clientX);
    canvas.addEventListener("pointermove", onMove);
    canvas.addEventListener("pointerup", (each) => {
      canvas.removeEventListener("pointermove", onMove);
      done(begin, each.clientX);
    }, { once: true });
    move(begin, begin);
  });
}
drag($("axis"), (from, to) => {
  const box = $("axis").getBoundingClientRect();
  hair.hidden = Math.abs(to - from) < 4;
  hair.style.left = `${Math.min(from, to) - list.getBoundingClientRect().left}px`;
  hair.style.width = `${Math.abs(to - from)}px`;
  $("cursor").textContent = length(Math.abs(to - from) / box.width * (view.x1 - view.x0));
}, (from, to) => {
  hair.hidden = true;
  hair.style.width = "";
  if (Math.abs(to - from) < 4) return;
  const xs = [xAt(from, $("axis")), xAt(to, $("axis"))];
  glide(Math.min(...xs), Math.max(...xs));
});
drag($("overview"), (from, to) => {
  const box = $("overview").getBoundingClientRect(), long = view.x1 - view.x0;
  const middle = fitted.x0 + ((to - box.left) / box.width) * (fitted.x1 - fitted.x0);
  show(middle - long / 2, middle + long / 2);
}, () => {});

// groups, filter, buttons
function toggle(group, open = !group.open) {
  group.open = open;
  layout();
}
function toggleAll(open) {
  for (const group of groups) group.open = open;
  layout();
}
$("filter").addEventListener("input", () => {
  words = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  layout();
});
$("filter").addEventListener("keydown", (event) => {
  if (event.key === "Escape") { $("filter").value = ""; words = []; layout(); $("filter").blur(); }
  if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); focusLine(visible()[0] ?? [...lines.values()][0]); }
});
$("zoom-in").addEventListener("click", () => zoom(0.5, undefined, true));
$("zoom-out").addEventListener("click", () => zoom(2, undefined, true));
$("fit").addEventListener("click", fit);
$("density").addEventListener("change", () => setDensity($("density").value));
$("open-all").addEventListener("click", () => toggleAll(true));
$("close-all").addEventListener("click", () => toggleAll(false));
$("help-button").addEventListener("click", () => $("help").showModal());
$("more-violations")?.addEventListener("click", (event) => {
  event.target.parentElement.classList.add("all");
  event.target.remove();
});
document.addEventListener("click", (event) => {
  const jump = event.target.closest(".jump");
  if (jump) {
    const seq = Number(jump.dataset.event), lane = laneOf.get(jump.dataset.lane);
    if (Number(jump.dataset.flag)) goToFlag(flags[jump.dataset.flag - 1]);
    else if (seq && notes.has(seq)) goToEvent(seq);
    else if (lane) { around(Number(jump.dataset.x)); reveal(lane); }
    else around(Number(jump.dataset.x));
  }
  // also when it is where we are already
  const link = event.target.closest('a[href^="#"]');
  if (link && link.getAttribute("href") === location.hash) { event.preventDefault(); goToHash(); }
});
addEventListener("hashchange", goToHash);

// keys
const visible = () => [...lines.values()].filter((line) => !line.node.hidden);
function walk(line, by) {
  const items = itemsOf(line.lane);
  if (!items.length) return;
  const at = chosen.lane === line.lane ? items.indexOf(chosen.item) : -1;
  const next = at < 0
    ? (by > 0 ? items.findIndex((each) => endOf(each) >= view.x0) : items.findLastIndex((each) => startOf(each) <= view.x1))
    : Math.min(Math.max(at + by, 0), items.length - 1);
  const item = items[Math.max(next, 0)];
  choose(item, line.lane);
  if (endOf(item) < view.x0 || startOf(item) > view.x1) {
    const middle = (startOf(item) + Math.min(endOf(item), startOf(item) + (view.x1 - view.x0) / 2)) / 2, half = (view.x1 - view.x0) / 2;
    glide(middle - half, middle + half);
  }
}
let place = -1;
function jump(by) {
  if (flags.length) {
    place = (place + by + flags.length) % flags.length;
    goToFlag(flags[place]);
  } else if (faults.length) {
    place = (place + by + faults.length) % faults.length;
    goToEvent(faults[place].event);
  }
}
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return false;
  const line = lineOf(document.activeElement ?? document.body), all = visible();
  const go = (index) => all.length && focusLine(all[Math.min(Math.max(index, 0), all.length - 1)]);
  switch (event.key) {
    case "+": case "=": case "w": zoom(0.6, focusX(), true); return true;
    case "-": case "_": case "s": zoom(1 / 0.6, focusX(), true); return true;
    case "0": case "f": fit(); return true;
    case "a": pan(-0.25, true); return true;
    case "d": pan(0.25, true); return true;
    case "n": jump(1); return true;
    case "p": jump(-1); return true;
    case "/": $("filter").focus(); return true;
    case "?": $("help").showModal(); return true;
    case "r": setDensity({ roomy: "compact", compact: "tiny", tiny: "roomy" }[$("density").value]); return true;
    case "Escape": choose(null, null); hideTip(); return true;
  }
  if (!line) return false;
  switch (event.key) {
    case "ArrowDown": go(all.indexOf(line) + 1); return true;
    case "ArrowUp": go(all.indexOf(line) - 1); return true;
    case "Home": go(0); return true;
    case "End": go(all.length - 1); return true;
    case "ArrowLeft": case "ArrowRight": {
      const by = event.key === "ArrowLeft" ? -1 : 1;
      if (event.shiftKey) pan(by * 0.25, true);
      else if (line.group) toggle(line.group, by > 0);
      else walk(line, by);
      return true;
    }
    case "Enter": case " ":
      if (line.group) toggle(line.group);
      else if (chosen.item && chosen.lane === line.lane) around(startOf(chosen.item), endOf(chosen.item));
      else walk(line, 1);
      return true;
  }
  return false;
}
// keys zoom around what is chosen, if it can be seen
function focusX() {
  const x = chosen.item && startOf(chosen.item);
  return x >= view.x0 && x <= view.x1 ? x : undefined;
}
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (!typing && onKey(event)) event.preventDefault();
});
