"use strict";
// The page reads without this script; it adds the theme switch, the highlighting of one objective, the place in the contents, and what scrolls.
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
  const keyOf = (event) => event.target.closest?.("[data-mark]")?.dataset.mark ?? "";
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

  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) target.parentElement.classList.toggle("wide", target.scrollWidth > target.clientWidth + 1);
  });
  for (const box of document.querySelectorAll(".scroll")) sizes.observe(box);
})();
