"use strict";
// Sort a table by a column: first upwards, again downwards. What has no value stays last.
const units = { ms: 1e-3, min: 60, h: 3600, GB: 1e3 };
const number = (text) =>
  parseFloat(text.replace("−", "-").replaceAll(",", "").replace(/^[<≤+ ]+/, "")) *
  (units[text.split(" ").at(-1)] ?? 1);
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => {
    const header = button.closest("th");
    const table = header.closest("table");
    const column = header.cellIndex;
    const isText = button.dataset.sort === "text";
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const value = (row) => (isText ? (text) => text : number)(row.cells[column].textContent);
    const compare = (first, second) => {
      const [a, b] = [value(first), value(second)];
      const [no, none] = [a, b].map((each) => each === "" || Number.isNaN(each));
      if (no || none) return no - none;
      return sign * (isText ? a.localeCompare(b, undefined, { numeric: true }) : a - b);
    };
    const body = table.tBodies[0];
    body.append(...[...body.rows].sort(compare));
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    const direction = sign === 1 ? "ascending" : "descending";
    header.setAttribute("aria-sort", direction);
    document.getElementById("status").textContent =
      `${table.caption.textContent}: sorted by ${button.textContent}, ${direction}.`;
  });
}
// A link into a folded section unfolds it, and so does printing.
const unfold = (within) => within?.querySelectorAll("details").forEach((each) => { each.open = true; });
const follow = () => unfold(document.getElementById(decodeURIComponent(location.hash.slice(1)) || "-"));
addEventListener("hashchange", follow);
addEventListener("beforeprint", () => unfold(document.body));
follow();
// A table that is wider than its box shows each row as a block, instead of a part of its columns.
const narrow = matchMedia("(max-width: 40rem)");
const stack = () => {
  for (const box of document.querySelectorAll(".scroll")) {
    box.classList.remove("stacked");
    box.classList.toggle("stacked", narrow.matches || box.scrollWidth > box.clientWidth);
  }
};
addEventListener("resize", stack);
document.addEventListener("toggle", stack, true); // tables of a folded section have no width
stack();
