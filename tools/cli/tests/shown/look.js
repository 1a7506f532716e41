// Looks at the page in the frame, from outside: what is there, and what is wrong.
addEventListener("load", () => {
  const found = { errors: [], overlaps: [], clipped: [], hidden: [] };
  try {
    const page = document.querySelector("iframe").contentDocument;
    for (const folded of page.querySelectorAll("details")) folded.open = true;
    const root = page.documentElement;
    found.overflow = root.scrollWidth - root.clientWidth;
    found.title = page.title;
    found.figures = page.querySelectorAll("figure").length;
    found.scripts = page.querySelectorAll("script, iframe, object, embed, link, img, [onload], [onerror]").length;
    found.buttons = page.querySelectorAll(".zoom button").length;
    found.links = [...page.querySelectorAll("a")].map((a) => a.getAttribute("href"));
    found.dead = found.links.filter((link) => !page.querySelector(link));
    found.text = page.body.innerText;
    found.smallest = Infinity;
    const svgs = [...page.querySelectorAll("figure svg")];
    found.svgs = svgs.length;
    found.named = svgs.filter((svg) => {
      const ids = (svg.getAttribute("aria-labelledby") || "").split(" ");
      return ids.length === 2 && ids.every((id) => page.querySelectorAll("#" + id).length === 1 && page.getElementById(id).textContent);
    }).length;
    for (const svg of svgs) {
      const name = svg.querySelector("title").textContent;
      const frame = svg.getBoundingClientRect();
      if (frame.width < 200 || frame.height < 80) found.hidden.push(name);
      const scale = frame.width / svg.viewBox.baseVal.width;
      const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent);
      const rects = texts.map((text) => text.getBoundingClientRect());
      rects.forEach((one, i) => {
        const size = parseFloat(page.defaultView.getComputedStyle(texts[i]).fontSize);
        found.smallest = Math.min(found.smallest, size * scale);
        const outside = Math.max(frame.left - one.left, one.right - frame.right, frame.top - one.top, one.bottom - frame.bottom);
        if (outside > 1) found.clipped.push([name, texts[i].textContent, outside]);
        rects.slice(0, i).forEach((two, j) => {
          const width = Math.min(one.right, two.right) - Math.max(one.left, two.left);
          // The boxes of lines of text are higher than their letters.
          const height = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top) - 4 * scale;
          if (width > 0 && height > 0) found.overlaps.push([name, texts[i].textContent, texts[j].textContent]);
        });
      });
    }
  } catch (error) {
    found.errors.push(String(error));
  }
  document.getElementById("found").textContent = JSON.stringify(found);
});
