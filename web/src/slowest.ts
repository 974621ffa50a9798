// The slowest requests, each with what it consists of.

import { Child, h, section, symbol } from "./dom";
import { hue, shade } from "./colours";
import type { Model, Part, Request } from "./model";
import type { Openable } from "./opened";
import { state } from "./state";
import { duration } from "./units";

// slowest lists the first few of the requests that can be opened.
export function slowest(m: Model, listed: number, open: Openable): HTMLElement | null {
  if (listed === 0) return null;
  const few = m.slowest.slice(0, listed);
  const most = Math.max(...few.map((q) => q.wall), 1);
  const rows = few.map((q, i) => line(m, q, i, most, open));
  const none = h("p", { class: "dim" }, "None of the slowest requests has this account among its parts.");
  const filter = () => {
    let shown = 0;
    few.forEach((q, i) => {
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

function line(m: Model, q: Request, i: number, most: number, open: Openable): HTMLElement {
  const told = open.has(i);
  return h("tr", null, h("td", { class: "when" }, q.when), h("td", { class: "n" }, duration(q.wall)),
    h("td", null, h("div", { class: "name" }, told ? h("button", { type: "button", class: "open", click: () => state.show(i, true) }, symbol(q.name)) : symbol(q.name)), parts(m, q, most), h("div", { class: "why" }, symbol(q.why))));
}

// parts is the request's own bar. What is in none of its parts is the rest.
export function parts(m: Model, q: Request, most: number): Child {
  return h("div", { class: "bar small", role: "img", "aria-label": q.parts.map((p) => p.label + " " + duration(p.ns)).join(", ") }, q.parts.map((p) => {
    const e = h("span", { class: "part", title: p.label + ", " + duration(p.ns) });
    e.style.background = partColour(m, p);
    e.style.width = (100 * p.ns) / most + "%";
    return e;
  }));
}

// partColour is one of ours, never of the data.
export function partColour(m: Model, p: Part): string {
  if (p.row >= 0) return shade(m.ledger?.rows ?? [], p.row);
  return `var(--c-${p.leaf ? hue(p.leaf) : "other"})`;
}
