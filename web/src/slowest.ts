// The slowest requests, each with what it consists of.

import { Child, h, section, symbol } from "./dom";
import { shade } from "./colours";
import type { Model, Request } from "./model";
import { state } from "./state";
import { duration } from "./units";

export function slowest(m: Model): HTMLElement | null {
  if (m.slowest.length === 0) return null;
  const most = Math.max(...m.slowest.map((q) => q.wall), 1);
  const rows = m.slowest.map((q, i) => line(m, q, i, most));
  const none = h("p", { class: "dim" }, "None of the slowest requests has this account among its parts.");
  const filter = () => {
    let shown = 0;
    m.slowest.forEach((q, i) => {
      const on = has(q, state.row);
      rows[i]!.hidden = !on;
      if (on) shown++;
    });
    none.hidden = shown > 0;
  };
  none.hidden = true;
  state.on(filter);
  const mark = () => rows.forEach((r, i) => r.classList.toggle("chosen", i === state.open));
  state.on(mark);
  return section("slowest", "The slowest requests", m.stories.length > 0 ? "Open one to see below whom it waited for." : "", h("div", { class: "scroll" }, h("table", { class: "slowest" },
    h("thead", null, h("tr", null, h("th", { scope: "col" }, "start"), h("th", { scope: "col", class: "n" }, "took"), h("th", { scope: "col" }, "request and where its time went"))),
    h("tbody", null, rows))), none);
}

// has reports whether a tenth of the request's time is in the row.
export function has(q: Request, row: number): boolean {
  if (row < 0) return true;
  let ns = 0;
  for (const p of q.parts) if (p.row === row) ns += p.ns;
  return ns * 10 >= q.wall && ns > 0;
}

function line(m: Model, q: Request, i: number, most: number): HTMLElement {
  const told = m.stories.some((s) => s.request === i);
  return h("tr", null, h("td", { class: "when" }, q.when), h("td", { class: "n" }, duration(q.wall)),
    h("td", null, h("div", { class: "name" }, told ? h("button", { type: "button", class: "open", click: () => state.show(i, true) }, symbol(q.name)) : symbol(q.name)), parts(m, q, most), h("div", { class: "why" }, symbol(q.why))));
}

// parts is the request's own bar.
export function parts(m: Model, q: Request, most: number): Child {
  return h("div", { class: "bar small", role: "img", "aria-label": q.why }, q.parts.map((p) => {
    const e = h("span", { class: "part", title: p.label + ", " + duration(p.ns) });
    e.style.background = p.row < 0 ? "var(--c-other)" : shade(m.ledger?.rows ?? [], p.row);
    e.style.width = (100 * p.ns) / most + "%";
    return e;
  }));
}
