// Sorts and filters tables, names the cells of grids under the pointer, and unfolds everything for printing. Without it, the
// page shows the same contents.
const downbeat = (() => {
  const element = (name, properties) => Object.assign(document.createElement(name), properties);

  const units = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]];
  const unitOf = (nanos) => units.find(([, length]) => Math.abs(nanos) >= length) || units[3];
  const number = (value) => value.toLocaleString("en", { maximumSignificantDigits: 6 });
  const time = (nanos) => {
    const [name, length] = unitOf(nanos);
    return `${number(nanos / length)} ${name}`;
  };

  const box = element("div", { className: "hover", hidden: true });
  document.body.append(box);
  // Shows a text next to the pointer; nothing if there is none.
  const hover = (text, event) => {
    box.hidden = !text;
    if (!text) return;
    box.textContent = text;
    const { clientX: x, clientY: y } = event;
    const [right, below] = [x + 14 + box.offsetWidth, y + 14 + box.offsetHeight];
    box.style.left = `${Math.max(right > innerWidth ? x - 14 - box.offsetWidth : x + 14, 0)}px`;
    box.style.top = `${Math.max(below > innerHeight ? y - 14 - box.offsetHeight : y + 14, 0)}px`;
  };

  // Position of the pointer in the units of the picture.
  const place = (svg, event) => {
    const frame = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / frame.width;
    return [(event.clientX - frame.left) * scale, (event.clientY - frame.top) * scale];
  };

  const nameCells = (group) => {
    const grid = JSON.parse(group.dataset.grid);
    const name = (cell) => {
      const [first, last] = [cell * grid.shared, Math.min((cell + 1) * grid.shared, grid.ranks) - 1];
      return first === last ? `rank ${first}` : `ranks ${first} to ${last}`;
    };
    // What a shape stands for; the browser would show its title besides.
    const states = new Map();
    for (const title of group.querySelectorAll("title")) {
      states.set(title.parentNode, title.textContent);
      title.remove();
    }
    group.addEventListener("pointermove", (event) => {
      const [x, y] = place(group.ownerSVGElement, event);
      const column = Math.floor((x - grid.left) / grid.width);
      const row = Math.floor((y - grid.top) / grid.height);
      const state = states.get(event.target.parentNode);
      const isInside = state && column >= 0 && row >= 0 && column < grid.columns;
      hover(isInside && `${name(row * grid.columns + column)}: ${state}`, event);
    });
    group.addEventListener("pointerleave", () => hover());
  };

  const collator = new Intl.Collator("en", { numeric: true });
  const keyOf = (row, column) => {
    const cell = row.cells[column];
    const text = cell ? cell.textContent.trim() : "";
    const value = cell && cell.dataset.value !== undefined ? cell.dataset.value : text;
    const isNumber = value !== "" && Number.isFinite(Number(value));
    return { text, value: isNumber ? Number(value) : null };
  };
  // Numbers come before texts; what is missing comes last in either order.
  const kind = ({ text, value }) => (text === "" || text === "\u2013" ? 2 : value === null ? 1 : 0);
  const compare = (one, two, turn) => {
    if (kind(one) !== kind(two)) return kind(one) - kind(two);
    return turn * (kind(one) === 0 ? one.value - two.value : collator.compare(one.text, two.text));
  };

  const makeSortable = (table, rows) => {
    const headings = [...table.tHead.rows[0].cells];
    const order = { none: "ascending", ascending: "descending", descending: "none" };
    headings.forEach((heading, column) => {
      const text = heading.textContent;
      if (!text) return;
      const button = element("button", { type: "button", textContent: text, title: "sort by this column" });
      heading.replaceChildren(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const next = order[heading.getAttribute("aria-sort")];
        for (const other of headings) if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", next);
        const keyed = rows.map((row) => [keyOf(row, column), row]);
        const turn = next === "ascending" ? 1 : -1;
        // The third order is that of the page.
        if (next !== "none") keyed.sort(([one], [two]) => compare(one, two, turn));
        table.tBodies[0].append(...keyed.map(([, row]) => row));
      });
    });
  };

  const makeFilter = (table, rows) => {
    const input = element("input", { type: "search" });
    const label = element("label", { className: "filter", textContent: "Rows with " });
    const shown = element("output", {});
    label.append(input, " ", shown);
    table.parentNode.before(label);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let count = 0;
      rows.forEach((row, i) => {
        row.hidden = !words.every((word) => texts[i].includes(word));
        count += row.hidden ? 0 : 1;
      });
      shown.textContent = words.length > 0 ? `${number(count)} of ${number(rows.length)}` : "";
    });
  };

  for (const table of document.querySelectorAll(".scroll > table")) {
    const rows = [...table.tBodies[0].rows];
    if (rows.length > 1) makeSortable(table, rows);
    if (rows.length > 10) makeFilter(table, rows);
  }
  document.querySelectorAll("[data-grid]").forEach(nameCells);

  let unfolded = [];
  addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    for (const details of unfolded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of unfolded) details.open = false;
  });
  return { hover, number, place, time, unitOf };
})();
