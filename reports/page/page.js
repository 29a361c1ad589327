// Filters, sorts, and brings a cell's details to where the eye is. All texts are in the page.
const $ = (selector, under = document) => under.querySelector(selector);
const $$ = (selector, under = document) => [...under.querySelectorAll(selector)];
const grids = $$(".grid"), filter = $("#filter"), axis = $("#axis");
let wanted = new Set();

// What is shown ----------------------------------------------------------------------------------
function chosen() {
  return Object.fromEntries($$("select.part").map((each) => [each.dataset.part, each.value]));
}
function showColumns(grid, value) {
  const heads = $$("thead tr:nth-child(2) th", grid);
  const shown = heads.map((head) => !value || head.dataset.value === value);
  heads.forEach((head, index) => { head.hidden = !shown[index]; });
  for (const group of $$("th.group", grid)) {
    const count = heads.filter((head, index) => shown[index] && head.dataset.group === group.dataset.group).length;
    group.hidden = !count;
    if (count) group.colSpan = count;
  }
  const count = shown.filter(Boolean).length;
  for (const line of $$("tr.line", grid)) {
    const cells = $$("td", line);
    if (cells[0].classList.contains("only")) cells[0].colSpan = count;
    else cells.forEach((cell, index) => { cell.hidden = index < shown.length && !shown[index]; });
  }
}
function showLine(line, text, parts, own) {
  const cells = $$("td", line).filter((cell) => !cell.hidden);
  const has = (cell) => cell.dataset.outcomes.split(" ").some((outcome) => wanted.has(outcome));
  let good = !wanted.size || cells.some(has);
  for (const [part, value] of Object.entries(parts))
    if (value && part !== own && line.dataset[part] && line.dataset[part] !== value) good = false;
  // a row of which this column has nothing says nothing
  if (parts[own] && !cells.some((cell) => cell.dataset.outcomes)) good = false;
  if (text && !text.split(/\s+/).every((word) => line.textContent.toLowerCase().includes(word))) good = false;
  line.hidden = !good;
  for (const cell of cells) cell.classList.toggle("other", wanted.size > 0 && !has(cell));
  return good;
}
function show() {
  const text = filter.value.trim().toLowerCase(), parts = chosen();
  let seen = 0, all = 0;
  for (const grid of grids) {
    const own = grid.dataset.axis;
    grid.hidden = Boolean(axis) && own !== axis.value;
    showColumns(grid, parts[own]);
    for (const body of $$("tbody", grid)) {
      const lines = $$("tr.line", body);
      const good = lines.filter((line) => showLine(line, text, parts, own)).length;
      $("tr.section", body).hidden = !good;
      if (!grid.hidden) { seen += good; all += lines.length; }
    }
  }
  $("#shown").textContent = seen === all ? `${all} rows` : `${seen} of ${all} rows`;
  $("#nothing").hidden = seen > 0 || !grids.length;
}

// Sorting: worst first, largest figure first, as in the catalogue --------------------------------
const ORDERS = ["", "worst", "largest"];
function sort(head) {
  const grid = head.closest(".grid"), heads = $$("thead tr:nth-child(2) th", grid), index = heads.indexOf(head);
  const order = ORDERS[(ORDERS.indexOf(head.dataset.order ?? "") + 1) % ORDERS.length];
  for (const other of heads) {
    other.dataset.order = other === head ? order : "";
    $(".arrow", other).textContent = other === head ? { worst: "▼ worst", largest: "▼ largest" }[order] ?? "" : "";
    if (other === head && order) other.setAttribute("aria-sort", order === "worst" ? "other" : "descending");
    else other.removeAttribute("aria-sort");
  }
  const cellOf = (line) => { const cells = $$("td", line); return cells[0].classList.contains("only") ? cells[0] : cells[index]; };
  const rank = (line) => Number(cellOf(line).dataset.rank);
  const value = (line) => { const text = cellOf(line).dataset.value; return text === undefined ? -Infinity : Number(text); };
  const compare = {
    "": (a, b) => a.place - b.place,
    worst: (a, b) => rank(a) - rank(b) || value(b) - value(a) || a.place - b.place,
    largest: (a, b) => (value(b) > value(a)) - (value(b) < value(a)) || a.place - b.place,
  }[order];
  for (const body of $$("tbody", grid)) body.append(...$$("tr.line", body).sort(compare));
}

// A cell's details -------------------------------------------------------------------------------
const panel = $("#panel");
let from = null;
function open(id) {
  const detail = /^c\d+$/.test(id) && document.getElementById(id);
  if (!detail) return false;
  const copy = detail.cloneNode(true);
  copy.removeAttribute("id");
  $(".body", panel).replaceChildren(copy);
  panel.hidden = false;
  panel.scrollTop = 0;
  return true;
}
function close() {
  if (panel.hidden) return;
  panel.hidden = true;
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  from?.focus();
}
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#c']");
  if (link && open(link.hash.slice(1))) {
    event.preventDefault();
    history.replaceState(null, "", link.hash);
    from = link;
    $(".close", panel).focus();
  }
});
$(".close", panel).addEventListener("click", close);
window.addEventListener("hashchange", () => open(location.hash.slice(1)));

// Keys -------------------------------------------------------------------------------------------
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    if (panel.hidden && document.activeElement === filter) { filter.value = ""; show(); }
    close();
  } else if (event.key === "/" && !event.target.closest("input, select")) {
    event.preventDefault();
    filter.focus();
  } else if (STEPS[event.key] && event.target.matches(".grid .cell")) {
    move(event, ...STEPS[event.key]);
  }
});
function move(event, down, right) {
  const line = event.target.closest("tr"), lines = $$("tr.line", line.closest("table")).filter((each) => !each.hidden);
  const cells = (row) => $$("td:not([hidden])", row);
  const place = cells(line).indexOf(event.target.closest("td"));
  let row = lines.indexOf(line), column = place;
  for (;;) {
    row += down; column += right;
    const next = lines[row] && cells(lines[row]);
    const cell = next?.[down ? Math.min(column, next.length - 1) : column];
    if (!cell) return;
    const link = $(".cell", cell);
    if (link) { event.preventDefault(); link.focus(); return; }
  }
}

// The beginning ----------------------------------------------------------------------------------
for (const line of $$("tr.line")) line.place = [...line.parentNode.children].indexOf(line);
for (const button of $$(".sort")) button.addEventListener("click", () => sort(button.closest("th")));
for (const button of $$(".only-outcome")) button.addEventListener("click", () => {
  const outcome = button.dataset.o, on = !wanted.has(outcome);
  if (on) wanted.add(outcome); else wanted.delete(outcome);
  button.setAttribute("aria-pressed", String(on));
  show();
});
for (const each of $$("select")) each.addEventListener("change", show);
filter.addEventListener("input", show);
$("#all-figures").addEventListener("change", (event) => document.body.classList.toggle("all-figures", event.target.checked));
$(".toolbar").hidden = false;
show();
open(location.hash.slice(1));
