// Search without leaving the page: everything here also works as plain links and forms.
"use strict";
document.documentElement.classList.add("scripted");
const form = document.getElementById("search");
if (form) {
  const results = document.getElementById("results"), panel = document.getElementById("panel");
  const words = document.getElementById("words"), chips = document.getElementById("chips");
  const box = document.getElementById("box"), least = document.getElementById("least");
  const shown = document.getElementById("shown"), picker = document.getElementById("file");
  let picture = null, latest = 0;

  // ---- Searching ----
  function address() {
    const asked = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (typeof value === "string" && value && !(name === "least" && value === "0")) asked.append(name, value);
    }
    return "/" + (String(asked) ? "?" + asked : "");
  }

  async function ask(url) {
    const options = { headers: { "x-fragment": "1" } };
    if (picture) {
      const body = new FormData();
      for (const [name, value] of new URL(url, location).searchParams) body.append(name, value);
      body.append("image", picture, "image");
      Object.assign(options, { method: "POST", body });
      url = "/";
    }
    const answer = await fetch(url, options);
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    return parsed.body;
  }

  async function search(push = true) {
    const number = ++latest, url = address();
    results.setAttribute("aria-busy", "true");
    try {
      const found = await ask(url);
      if (number !== latest) return;
      results.replaceChildren(...found.childNodes);
      if (push && !picture) history.pushState(null, "", url);
      document.title = (words.value || "Search") + " – Diptych";
      const top = Number(results.querySelector(".columns")?.dataset.top || 0);
      if (top && Number(least.value) === 0) { least.max = top; least.step = top / 100; }
      applyThreshold();
      watchEnd();
    } catch (error) {
      const line = Object.assign(document.createElement("p"), { className: "error", textContent: "The service does not answer." });
      line.setAttribute("role", "alert");
      results.replaceChildren(line);
    } finally {
      if (number === latest) results.removeAttribute("aria-busy");
    }
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  form.addEventListener("change", (event) => {
    if (event.target === picker) usePicture(picker.files[0]);
    else if (event.target !== words && event.target !== least) search();
  });
  words.addEventListener("search", () => { if (!words.value) search(); });
  addEventListener("popstate", () => location.reload());

  // ---- Threshold: hides at once what scores less ----
  function applyThreshold() {
    const limit = Number(least.value);
    shown.value = limit ? limit.toFixed(2) : "any";
    for (const card of results.querySelectorAll(".card")) {
      card.parentElement.classList.toggle("below", limit > 0 && Number(card.dataset.score) < limit);
    }
  }
  least.addEventListener("input", applyThreshold);

  // ---- An image as the query: chosen, dropped, pasted; or a result, dragged back ----
  function chip(source, text, clear) {
    const one = document.createElement("span"), remove = document.createElement("button");
    one.className = "chip";
    const image = Object.assign(new Image(32, 32), { src: source, alt: "" });
    Object.assign(remove, { type: "button", textContent: "×" });
    remove.setAttribute("aria-label", "Search without this image");
    remove.addEventListener("click", () => { clear(); chips.replaceChildren(); search(); words.focus(); });
    one.append(image, text, remove);
    return one;
  }

  function usePicture(file) {
    if (!file || !file.type.startsWith("image/")) return;
    picture = file;
    const source = URL.createObjectURL(file);
    chips.replaceChildren(chip(source, file.name || "image", () => { picture = null; picker.value = ""; }));
    search(false);
  }

  function useItem(id, index, source) {
    picture = null;
    const hidden = Object.assign(document.createElement("input"), { type: "hidden", name: "item", value: id });
    chips.replaceChildren(chip(source, "like " + id, () => {}), hidden);
    words.value = "";
    const chosen = form.elements.index;
    if (chosen && index) chosen.value = index;
    if (panel.open) panel.close();
    scrollTo({ top: 0 });
    search();
  }

  const thumbnail = (card) => card.querySelector("img")?.src || "";
  for (const name of ["dragenter", "dragover"]) {
    document.addEventListener(name, (event) => { event.preventDefault(); box.classList.add("over"); });
  }
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) box.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    box.classList.remove("over");
    const dragged = event.dataTransfer.getData("application/x-diptych-item");
    if (dragged) useItem(...JSON.parse(dragged));
    else usePicture(event.dataTransfer.files[0]);
  });
  document.addEventListener("dragstart", (event) => {
    const card = event.target.closest?.(".card");
    if (card) {
      const item = [card.dataset.id, card.dataset.index, thumbnail(card)];
      event.dataTransfer.setData("application/x-diptych-item", JSON.stringify(item));
    }
  });
  document.addEventListener("paste", (event) => {
    const file = [...event.clipboardData.files].find((one) => one.type.startsWith("image/"));
    if (file) { event.preventDefault(); usePicture(file); }
  });

  // ---- Endless results ----
  const end = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting) more(entry.target);
  }, { rootMargin: "600px" });

  function watchEnd() {
    end.disconnect();
    for (const link of results.querySelectorAll("a[rel=next]")) end.observe(link);
  }

  async function more(link) {
    end.unobserve(link);
    const column = link.closest(".column"), list = column.querySelector("ol");
    const last = list.querySelector("li:last-child .card");
    if (Number(least.value) && last && Number(last.dataset.score) < Number(least.value)) return;
    const found = await ask(link.getAttribute("href"));
    const same = [...found.querySelectorAll(".column")].find((one) => one.ariaLabel === column.ariaLabel);
    const known = new Set([...list.querySelectorAll(".card")].map((one) => one.dataset.id));
    for (const item of same?.querySelectorAll("ol > li") || []) {
      if (!known.has(item.querySelector(".card").dataset.id)) list.append(item);
    }
    const next = same?.querySelector(".next");
    if (next) link.parentElement.replaceWith(next);
    else link.parentElement.remove();
    applyThreshold();
    watchEnd();
  }

  // ---- The panel of a result ----
  async function open(card) {
    const answer = await fetch(card.href, { headers: { "x-fragment": "1" } });
    const parsed = new DOMParser().parseFromString(await answer.text(), "text/html");
    panel.replaceChildren(...parsed.body.childNodes);
    panel.opener = card;
    for (const button of panel.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
    if (!panel.open) panel.showModal();
  }

  panel.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy]"), like = event.target.closest("[data-more]");
    if (copy) {
      event.preventDefault();
      navigator.clipboard.writeText(copy.closest("details").querySelector("code").textContent);
      copy.textContent = "Copied";
    } else if (like) {
      event.preventDefault();
      likeThis(panel.opener);
    } else if (event.target === panel) panel.close();
  });
  panel.addEventListener("close", () => panel.opener?.focus());
  results.addEventListener("click", (event) => {
    const card = event.target.closest(".card");
    if (card && !event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); open(card); }
  });
  const likeThis = (card) => useItem(card.dataset.id, card.dataset.index, thumbnail(card));

  // ---- Keyboard ----
  function neighbour(card, key) {
    const cards = [...card.closest("ol").querySelectorAll("li:not(.below) > .card")], at = cards.indexOf(card);
    if (key === "ArrowRight") return cards[at + 1];
    if (key === "ArrowLeft") return cards[at - 1];
    const mine = card.getBoundingClientRect(), down = key === "ArrowDown";
    const sameColumn = cards.filter((one) => Math.abs(one.getBoundingClientRect().left - mine.left) < 4);
    return sameColumn[sameColumn.indexOf(card) + (down ? 1 : -1)];
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const card = document.activeElement.closest(".card"), typing = document.activeElement.matches("input, select");
    if (event.key === "/" && !typing && !panel.open) {
      event.preventDefault();
      words.select();
      words.focus();
    } else if (event.key === "ArrowDown" && document.activeElement === words) {
      event.preventDefault();
      results.querySelector(".card")?.focus();
    } else if (event.key === "Escape" && card) {
      words.focus();
    } else if ((event.key === "m" || event.key === "M") && !typing && (card || panel.open)) {
      likeThis(panel.open ? panel.opener : card);
    } else if (event.key.startsWith("Arrow") && (card || panel.open) && !typing) {
      const next = neighbour(panel.open ? panel.opener : card, event.key);
      if (next && panel.open && event.key.match(/Left|Right/)) open(next);
      else if (next && !panel.open) { event.preventDefault(); next.focus(); }
    }
  });

  applyThreshold();
  watchEnd();
}
