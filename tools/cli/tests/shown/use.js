// Uses the page in the frame as a reader would: prints, unfolds, sorts and filters the longest table, points at cells.
addEventListener("load", () => {
  const found = { errors: [] };
  try {
    const page = document.querySelector("iframe").contentDocument;
    const view = page.defaultView;
    const folded = () => page.querySelectorAll("details:not([open])").length;
    found.folded = [folded()];
    view.dispatchEvent(new view.Event("beforeprint"));
    found.folded.push(folded());
    view.dispatchEvent(new view.Event("afterprint"));
    found.folded.push(folded());
    for (const details of page.querySelectorAll("details")) details.open = true;
    const tables = [...page.querySelectorAll(".scroll > table")];
    const table = tables.reduce((one, two) => (two.tBodies[0].rows.length > one.tBodies[0].rows.length ? two : one));
    const rows = () => [...table.tBodies[0].rows];
    const shown = () => rows().filter((row) => !row.hidden);
    found.rows = rows().length;
    found.headings = [...table.tHead.rows[0].cells].map((heading) => heading.textContent);
    found.columns = found.headings.map((name, column) => {
      const button = table.tHead.rows[0].cells[column].querySelector("button");
      if (!button) return [];
      const orders = [];
      for (let click = 0; click < 3; click += 1) {
        button.focus();
        const isFocused = page.activeElement === button;
        button.click();
        const order = table.tHead.rows[0].cells[column].getAttribute("aria-sort");
        orders.push({ isFocused, order, cells: rows().map((row) => row.cells[column].textContent.trim()) });
      }
      return orders;
    });
    // The field before the table.
    const label = table.parentNode.previousElementSibling;
    const input = label && label.querySelector("input");
    const filter = (text) => {
      input.value = text;
      input.dispatchEvent(new view.Event("input"));
      return [shown().length, label.querySelector("output").textContent];
    };
    const first = rows()[0].cells[0].textContent.trim();
    found.filtered = input ? [first, `${first} surely-not-there`, ""].map(filter) : [];
    found.titles = [...page.querySelectorAll("figure svg g > title")].map((title) => title.textContent);
    const box = page.querySelector(".hover");
    found.cells = [...page.querySelectorAll("[data-grid]")].map((grid) => {
      const shape = grid.querySelector("g > path");
      const frame = shape.ownerSVGElement.getBoundingClientRect();
      const scale = frame.width / shape.ownerSVGElement.viewBox.baseVal.width;
      // The upper left corner of the first cell of the shape.
      const [x, y] = shape.getAttribute("d").match(/[0-9.]+/g).map((number) => Number(number) + 0.2);
      const at = { clientX: frame.left + x * scale, clientY: frame.top + y * scale, bubbles: true };
      shape.dispatchEvent(new view.PointerEvent("pointermove", at));
      const text = box.hidden ? "" : box.textContent;
      grid.dispatchEvent(new view.PointerEvent("pointerleave", {}));
      return [text, box.hidden];
    });
  } catch (error) {
    found.errors.push(String(error));
  }
  document.getElementById("found").textContent = JSON.stringify(found);
});
