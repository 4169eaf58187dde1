for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[table.tHead.rows.length - 1].cells].forEach((head, place) => {
    if (!head.textContent.trim()) return;
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of head.parentNode.cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => row.cells[place].dataset.value ?? row.cells[place].textContent;
      const order = (one, other) => {
        const [a, b] = [key(one), key(other)], [x, y] = [Number(a), Number(b)];
        return a !== "" && b !== "" && !isNaN(x) && !isNaN(y) ? x - y : a.localeCompare(b);
      };
      body.append(...[...body.rows].sort((one, other) => (down ? -1 : 1) * order(one, other)));
    });
  });
}
