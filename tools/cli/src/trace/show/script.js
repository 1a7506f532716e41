// Zooms the timeline, and names what is under the pointer. Without it, the page shows the same picture.
(() => {
  const data = JSON.parse(document.getElementById("timeline").textContent);
  const svg = document.querySelector("figure.wide svg");
  const SVG = "http://www.w3.org/2000/svg";
  const groups = (name) => [...svg.querySelectorAll("g." + name)];
  const [bars, arrows, ticks, since] = ["bars", "messages", "ticks", "since"].map(groups);
  const sinceTexts = since.map((group) => group.textContent);
  const axes = data.panels.filter((panel) => panel.axis !== null);
  let view = [0, 1];

  for (const panel of data.panels) {
    panel.parsed = panel.rows.map(([, text]) => {
      const numbers = text ? text.split(" ").map(Number) : [];
      let time = 0;
      for (let i = 0; i < numbers.length; i += 3) {
        numbers[i] += time;
        time = numbers[i] + numbers[i + 1];
      }
      return numbers;
    });
  }

  const { unitOf, time } = downbeat;
  const round = (value) => Math.round(value * 10) / 10;
  const add = (group, name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    group.appendChild(element);
  };

  // Index of the first bar that ends at a time or later.
  const firstBar = (numbers, at) => {
    let [low, high] = [0, numbers.length / 3];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (numbers[3 * middle] + numbers[3 * middle + 1] < at) low = middle + 1;
      else high = middle;
    }
    return 3 * low;
  };

  const drawBars = (panel, group) => {
    const paths = new Map();
    const [low, high] = view.map((share) => share * panel.length);
    const scale = data.width / (high - low);
    panel.parsed.forEach((numbers, row) => {
      const top = round(panel.top + row * panel.row);
      for (let i = firstBar(numbers, low); i < numbers.length && numbers[i] <= high; i += 3) {
        const [kind, share] = [panel.regions[numbers[i + 2] >> 2][1], numbers[i + 2] & 3];
        const name = data.classes[kind][share];
        const begin = Math.max(numbers[i], low);
        const end = Math.min(numbers[i] + numbers[i + 1], high);
        const x = round(data.left + (begin - low) * scale);
        const width = Math.max(round((end - begin) * scale), 0.5);
        const path = `M${x} ${top}h${width}v${round(panel.bar)}h-${width}z`;
        if (paths.has(name)) paths.get(name).push(path);
        else paths.set(name, [path]);
      }
    });
    group.replaceChildren();
    const behind = (name) => (name === "lack" || name === "still" ? 0 : 1);
    const sorted = [...paths].sort((one, two) => behind(one[0]) - behind(two[0]));
    for (const [name, path] of sorted) add(group, "path", { class: name, d: path.join("") });
  };

  const drawArrows = (panel, group) => {
    const [low, high] = view.map((share) => share * panel.length);
    const cut = (x, y, otherX, otherY) => {
      const edge = Math.min(Math.max(x, low), high, Math.max(panel.end, low));
      if (edge === x) return [x, y];
      const share = (edge - x) / (otherX - x);
      return share >= 0 && share <= 1 ? [edge, y + share * (otherY - y)] : null;
    };
    const paths = ["", ""];
    const middle = (row) => panel.top + row * panel.row + panel.bar / 2;
    const heads = panel.messages.length <= 600;
    for (const [from, to, send, receive] of panel.messages) {
      const begin = cut(send, middle(from), receive, middle(to));
      const end = cut(receive, middle(to), send, middle(from));
      if (!begin || !end) continue;
      const x = (at) => data.left + ((at - low) / (high - low)) * data.width;
      const [x1, y1, x2, y2] = [x(begin[0]), begin[1], x(end[0]), end[1]];
      const length = Math.hypot(x2 - x1, y2 - y1);
      let path = `M${round(x1)} ${round(y1)}L${round(x2)} ${round(y2)}`;
      if (heads && length > 8 && end[0] === receive) {
        const [dx, dy] = [(x2 - x1) / length * 4, (y2 - y1) / length * 4];
        const side = (turn) => `${round(x2 - dx - turn * dy)} ${round(y2 - dy + turn * dx)}`;
        path += `M${side(0.45)}L${round(x2)} ${round(y2)}L${side(-0.45)}`;
      }
      paths[receive < send ? 1 : 0] += path;
    }
    group.replaceChildren();
    paths.forEach((path, i) => path && add(group, "path", { class: data.messages[i], d: path }));
  };

  const drawAxis = (panel, group, label, text) => {
    const [low, high] = view.map((share) => share * panel.length * panel.unit);
    const [name, length] = unitOf(high - low);
    const raw = (high - low) / length / 8;
    const ten = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].find((factor) => factor * ten >= raw) * ten;
    group.replaceChildren();
    for (let i = Math.ceil(low / length / step); i * step * length <= high; i += 1) {
      const x = round(data.left + ((i * step * length - low) / (high - low)) * data.width);
      add(group, "path", { class: "axis", d: `M${x} ${panel.axis}v4` });
      const value = downbeat.number(+(i * step).toPrecision(12));
      // About half of the width of the text: the last one must not be cut off.
      const most = svg.viewBox.baseVal.width - 3.6 * value.length;
      const at = { x: Math.min(x, most), y: panel.axis + 17, "text-anchor": "middle" };
      add(group, "text", at, value);
    }
    label.querySelector("text").textContent = text.replace(/, [^,]*$/, ", " + name);
  };

  const draw = () => {
    data.panels.forEach((panel, i) => {
      drawBars(panel, bars[i]);
      drawArrows(panel, arrows[i]);
    });
    axes.forEach((panel, i) => drawAxis(panel, ticks[i], since[i], sinceTexts[i]));
  };

  const show = (low, high) => {
    const shortest = Math.max(...data.panels.map((panel) => 10 / panel.length));
    const width = Math.min(Math.max(high - low, Math.min(shortest, 1)), 1);
    const begin = Math.min(Math.max((low + high - width) / 2, 0), 1 - width);
    view = [begin, begin + width];
    requestAnimationFrame(draw);
  };
  const zoom = (factor, at) => {
    const centre = view[0] + at * (view[1] - view[0]);
    show(centre - (centre - view[0]) * factor, centre + (view[1] - centre) * factor);
  };
  const move = (share) => {
    const by = Math.min(Math.max(share * (view[1] - view[0]), -view[0]), 1 - view[1]);
    show(view[0] + by, view[1] + by);
  };

  const controls = document.createElement("div");
  controls.className = "zoom";
  const button = (text, name, act) => {
    const element = document.createElement("button");
    [element.textContent, element.type] = [text, "button"];
    element.setAttribute("aria-label", name);
    element.addEventListener("click", act);
    controls.appendChild(element);
  };
  button("+", "zoom in", () => zoom(0.5, 0.5));
  button("\u2212", "zoom out", () => zoom(2, 0.5));
  button("\u2190", "earlier", () => move(-0.5));
  button("\u2192", "later", () => move(0.5));
  button("whole", "whole interval", () => show(0, 1));
  svg.before(controls);

  const place = (event) => downbeat.place(svg, event);
  const shareOf = (x) => (x - data.left) / data.width;

  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return;
    event.preventDefault();
    const at = Math.min(Math.max(shareOf(place(event)[0]), 0), 1);
    zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : 0.8, at);
  }, { passive: false });
  svg.addEventListener("dblclick", (event) => zoom(0.5, shareOf(place(event)[0])));

  let last = null;
  svg.addEventListener("pointerdown", (event) => {
    last = place(event)[0];
  });
  addEventListener("pointerup", () => {
    last = null;
  });

  const said = ([x, y]) => {
    const share = shareOf(x);
    if (share < 0 || share > 1) return null;
    for (const panel of data.panels) {
      const row = Math.floor((y - panel.top) / panel.row);
      if (row < 0 || row >= panel.rows.length) continue;
      const at = (view[0] + share * (view[1] - view[0])) * panel.length;
      const near = ((view[1] - view[0]) * panel.length) / data.width;
      const numbers = panel.parsed[row];
      const i = firstBar(numbers, at - near);
      const from = time(at * panel.unit);
      if (i >= numbers.length || numbers[i] > at + near) return `${panel.rows[row][0]}, ${from}`;
      const region = panel.regions[numbers[i + 2] >> 2][0];
      const length = time(numbers[i + 1] * panel.unit);
      const begin = time(numbers[i] * panel.unit);
      const most = panel.single ? "" : `, up to ${25 * ((numbers[i + 2] & 3) + 1)} % of it`;
      return `${panel.rows[row][0]}: ${region}, ${length} from ${begin}${most}`;
    }
    return null;
  };
  svg.addEventListener("pointermove", (event) => {
    const at = place(event);
    if (last !== null && event.buttons) {
      move((last - at[0]) / data.width);
      last = at[0];
    }
    downbeat.hover(said(at), event);
  });
  svg.addEventListener("pointerleave", () => {
    downbeat.hover();
  });
  draw();
})();
