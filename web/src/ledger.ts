// Where slow requests spend their time, beside usual ones: two stacked bars in ms and the table of
// their rows. A click on a row or on a part of a bar filters what is below.

import { chip, h, section, symbol } from "./dom";
import { shade } from "./colours";
import type { Ledger, Model, Row } from "./model";
import { state } from "./state";
import { count, duration, percent } from "./units";

export function ledger(m: Model): HTMLElement | null {
  const l = m.ledger;
  if (!l) return null;
  const detail = h("div", { class: "detail", "aria-live": "polite" });
  const show = (i: number) => detail.replaceChildren(account(l, i));
  const widest = Math.max(l.slowNs, l.usualNs, 1);
  const bars = h("div", { class: "bars" },
    bar("slow", l.rows.map((r) => r.slowNs), l, l.slowNs, widest, show),
    l.usual > 0 ? bar("usual", l.rows.map((r) => r.usualNs), l, l.usualNs, widest, show) : null);
  const rows = l.rows.map((r, i) => tableRow(l, r, i, show));
  const first = l.rows.findIndex((r) => r.slowNs > 0);
  if (first >= 0) show(first);
  const clear = h("button", { type: "button", class: "clear", click: () => state.filter(state.row) }, "show all again");
  const mark = () => {
    document.querySelectorAll<HTMLElement>("[data-row]").forEach((e) => {
      const on = Number(e.dataset.row) === state.row;
      e.classList.toggle("chosen", on);
      e.classList.toggle("faded", state.row >= 0 && !on);
      if (e.hasAttribute("aria-pressed")) e.setAttribute("aria-pressed", String(on));
    });
    clear.hidden = state.row < 0;
    if (state.row >= 0) show(state.row);
  };
  state.on(mark);
  clear.hidden = true;
  return section("ledger", "Where slow requests spend their time", `A slow request takes ${l.total[0]} ${l.unit}` + (l.usual > 0 ? `, a usual one ${l.total[1]} ${l.unit}.` : ".") + ` ${count(l.slow)} slow` + (l.usual > 0 ? ` beside ${count(l.usual)} in the middle of their group.` : ".") + " Click a part to see only requests with it below.",
    bars, h("div", { class: "ledger" }, h("div", { class: "scroll" }, table(l, rows)), detail), clear, l.note ? h("p", { class: "dim" }, "Not looked into: " + l.note) : null);
}

function bar(name: string, ns: number[], l: Ledger, total: number, widest: number, show: (i: number) => void): HTMLElement {
  const parts = h("div", { class: "bar" }, ns.map((n, i) => {
    if (n <= 0) return null;
    const r = l.rows[i]!;
    const label = `${name}: ${r.label}, ${duration(n)}, ${percent(n, total)}`;
    const e = h("button", { type: "button", class: "part", "data-row": i, "aria-pressed": "false", "aria-label": label, title: label, mouseenter: () => show(i), focus: () => show(i), click: () => state.filter(i) });
    e.style.background = shade(l.rows, i);
    e.style.width = (100 * n) / widest + "%";
    return e;
  }));
  return h("div", { class: "barline", role: "group", "aria-label": name + " requests" }, h("span", { class: "barname" }, name), parts, h("span", { class: "barsum" }, duration(total)));
}

function table(l: Ledger, rows: HTMLElement[]): HTMLElement {
  return h("table", { class: "accounts" },
    h("caption", { class: "sr" }, "Time of one request, by account, in " + l.unit),
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "account"), h("th", { scope: "col", class: "n" }, "share"), h("th", { scope: "col", class: "n" }, "slow, " + l.unit), h("th", { scope: "col", class: "n" }, "usual, " + l.unit), h("th", { scope: "col", class: "n", title: "in how many slow requests this is the largest part" }, "largest in"))),
    h("tbody", null, rows),
    h("tfoot", null, h("tr", null, h("th", { scope: "row" }, "in all"), h("td", { class: "n" }, "100.0 %"), h("td", { class: "n" }, l.total[0]), h("td", { class: "n" }, l.total[1]), h("td"))));
}

function tableRow(l: Ledger, r: Row, i: number, show: (i: number) => void): HTMLElement {
  return h("tr", { "data-row": i, mouseenter: () => show(i) },
    h("th", { scope: "row" }, h("button", { type: "button", class: "account", "aria-pressed": "false", "data-row": i, focus: () => show(i), click: () => state.filter(i) }, chip(shade(l.rows, i)), symbol(r.label))),
    h("td", { class: "n" }, r.share), h("td", { class: "n" }, r.slow), h("td", { class: "n" }, r.usual), h("td", { class: "n" }, r.largest || ""));
}

// account is all that is known of a row.
function account(l: Ledger, i: number): HTMLElement {
  const r = l.rows[i]!;
  return h("div", null,
    h("h3", null, chip(shade(l.rows, i)), symbol(r.label)),
    h("p", null, `${duration(r.slowNs)} of a slow request (${r.share})` + (l.usual > 0 ? `, ${duration(r.usualNs)} of a usual one.` : ".")),
    h("ul", null, r.more.map((f) => h("li", null, f.name ? h("span", { class: "dim" }, f.name + ": ") : null, symbol(f.value)))));
}
