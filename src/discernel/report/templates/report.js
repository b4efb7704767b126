"use strict";
// Sort a table by a column: first upwards, again downwards. What has no value stays last.
for (const button of document.querySelectorAll("table.sortable thead button")) {
  button.addEventListener("click", () => {
    const header = button.closest("th");
    const table = header.closest("table");
    const column = header.cellIndex;
    const isText = button.dataset.sort === "text";
    const sign = header.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const value = (row) => row.cells[column].dataset.value;
    const compare = (first, second) => {
      const [a, b] = [value(first), value(second)];
      if (a === "" || b === "") return (a === "") - (b === "");
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
