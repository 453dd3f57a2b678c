"use strict";
// The page reads without this script; it adds the theme switch, the highlighting of one objective, the place in the contents, what scrolls, and copies.
(() => {
  const root = document.documentElement;
  const remembered = "penultimate-theme";
  const read = () => { try { return localStorage.getItem(remembered); } catch { return null; } };
  const write = (value) => { try { localStorage.setItem(remembered, value); } catch { /* private windows */ } };
  const system = matchMedia("(prefers-color-scheme: dark)");
  const button = document.querySelector(".theme");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => {
    const other = isDark() ? "Light" : "Dark";
    button.textContent = other;
    button.setAttribute("aria-label", `${other} colours`);
  };
  const saved = read();
  if (saved === "light" || saved === "dark") root.dataset.theme = saved;
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    write(root.dataset.theme);
    name();
  });
  system.addEventListener("change", name);
  name();

  let pinned = "";
  const show = (key) => { if (key) root.dataset.focus = key; else delete root.dataset.focus; };
  const pin = (key) => {
    pinned = pinned === key ? "" : key;
    show(pinned);
    for (const one of document.querySelectorAll(".legend button")) {
      one.setAttribute("aria-pressed", String(one.dataset.mark === pinned));
    }
  };
  const keyOf = (event) => {
    const on = event.target.closest?.("[data-mark], tbody tr");
    return on?.dataset.mark ?? on?.querySelector("[data-mark]")?.dataset.mark ?? "";
  };
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType === "mouse") show(keyOf(event) || pinned);
  });
  document.addEventListener("click", (event) => {
    const key = event.target.closest?.(".legend button, .panel [data-mark]")?.dataset.mark;
    if (key) pin(key);
  });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape" && pinned) pin(pinned); });

  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
  const seen = new Set();
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) (entry.isIntersecting ? seen.add(entry.target.id) : seen.delete(entry.target.id));
    const current = [...links.keys()].filter((id) => seen.has(id)).pop();
    if (!current) return;
    for (const [id, link] of links) {
      if (id === current) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-8% 0px -72% 0px" });
  for (const id of links.keys()) watch.observe(document.getElementById(id));

  // A drawing takes its colours and its font from the page; a copy has them itself.
  const standalone = (drawing) => {
    const style = getComputedStyle(drawing), copy = drawing.cloneNode(true);
    copy.setAttribute("font-family", style.fontFamily);
    return new XMLSerializer().serializeToString(copy)
      .replace(/var\((--[\w-]+)(?:, ([^)]*))?\)/g, (_, name, otherwise) => style.getPropertyValue(name).trim() || otherwise)
      .replaceAll("currentColor", style.color);
  };
  const unpacked = async (template) => {
    const bytes = Uint8Array.from(atob(template.content.textContent), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const copying = (label, text) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = label;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(await text());
        button.textContent = "Copied";
      } catch {
        button.textContent = "The browser does not allow copying here";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
    return button;
  };
  for (const drawing of document.querySelectorAll(".panel > svg:not(.mark)")) {
    drawing.after(copying("Copy as SVG", async () => standalone(drawing)));
  }
  for (const points of document.querySelectorAll("template.points")) {
    points.previousElementSibling.append(copying("Copy the points as CSV", () => unpacked(points)));
  }

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) target.parentElement.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
  });
  for (const box of document.querySelectorAll(".scroll")) sizes.observe(box);
})();
