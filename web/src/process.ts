// What belongs to the process and to no one request: pauses, locks, curves, CPUs, memory, threads.

import { axis, buttons, nice, Picture, right, View, wire } from "./axis";
import { css, hue, shade, useHue } from "./colours";
import { chip, h, section, symbol } from "./dom";
import type { Amount, Curve, Frame, Model } from "./model";
import { bytes, count, duration, percent } from "./units";

// Hues for lists of names, without those that say how well it goes.
const names = ["outside", "late", "syscall", "lock", "disk", "timer", "asleep", "other"];

export function pauses(m: Model): HTMLElement | null {
  const p = m.pauses;
  if (p.list.length === 0) return null;
  return section("pauses", "Pauses, hop by hop", p.which, p.list.map((x, i) => h("details", { class: "pause", open: i === 0 }, h("summary", null, x.words), amounts(x.spent), h("ol", null, x.hops.map((s) => h("li", null, symbol(s)))))),
    p.fair ? h("p", { class: "dim" }, p.fair) : null);
}

// amounts is a bar with its list.
function amounts(l: Amount[]): HTMLElement | null {
  const whole = l.reduce((sum, a) => sum + a.ns, 0);
  if (whole <= 0) return null;
  const colourOf = (a: Amount, i: number) => (hue(a.leaf) !== "other" ? shade(l, i) : `var(--c-${names[i % names.length]})`);
  return h("div", { class: "use amounts" },
    h("div", { class: "bar small", role: "img", "aria-label": l.map((a) => `${a.name} ${percent(a.ns, whole)}`).join(", ") }, l.map((a, i) => part(a.ns / whole, colourOf(a, i), `${a.name}, ${duration(a.ns)}`))),
    h("ul", null, l.slice(0, 8).map((a, i) => h("li", null, chip(colourOf(a, i)), symbol(a.name), " ", h("span", { class: "n" }, duration(a.ns))))));
}

function part(share: number, background: string, title: string): HTMLElement {
  const e = h("span", { class: "part", title });
  e.style.background = background;
  e.style.width = 100 * share + "%";
  return e;
}

export function stackOf(frames: Frame[]): HTMLElement {
  return h("ol", { class: "stack", "aria-label": "stack, innermost first" }, frames.map((f) => h("li", null, symbol(f.f), f.at ? h("span", { class: "dim" }, " ", symbol(f.at)) : null)));
}

export function locks(m: Model): HTMLElement | null {
  if (m.locks.length === 0) return null;
  return section("locks", "Locks, who waited and who had them", "Those of the program first, by what slow requests waited for them.", m.locks.map((l, i) =>
    h("details", { class: "lock", open: i === 0 },
      h("summary", null, h("h3", null, symbol(l.name)), " ", h("span", { class: "dim" }, `${l.slowNs > 0 ? duration(l.slowNs) + " of slow requests, " : ""}${count(l.waits)} waits of ${duration(l.waitNs)} in all, ${count(l.maxQueue)} at once at most`)),
      l.holders.length > 0 ? [h("h4", null, "Who had it meanwhile"), amounts(l.holders)] : null,
      l.doing.length > 0 ? [h("h4", null, "What the holder did"), amounts(l.doing)] : null,
      l.stack.length > 0 ? [h("h4", null, "Where most wait"), stackOf(l.stack)] : null)));
}

export function uses(m: Model): HTMLElement | null {
  if (m.uses.length === 0) return null;
  return section("uses", "What Ps, CPUs and memory were used for", "", m.uses.map((u) => h("div", { class: "use" }, h("h3", null, u.title), h("p", { class: "dim" }, u.text),
    h("div", { class: "bar", role: "img", "aria-label": u.parts.map((p) => `${p.name} ${(100 * p.share).toFixed(1)} %`).join(", ") }, u.parts.map((p, i) => part(p.share, `var(--c-${useHue(p.name, i)})`, `${p.name}, ${p.amount}`))),
    h("ul", null, u.parts.map((p, i) => h("li", null, chip(`var(--c-${useHue(p.name, i)})`), p.name, " ", h("span", { class: "n" }, `${(100 * p.share).toFixed(1)} %, ${p.amount}`)))))));
}

export function threads(m: Model): HTMLElement | null {
  const t = m.threads;
  if (t.list.length === 0) return null;
  const table = (l: typeof t.list) => h("div", { class: "scroll" }, h("table", null,
    h("thead", null, h("tr", null, ["thread", "on CPU", "queued", "throttled", "blocked"].map((s, i) => h("th", { scope: "col", class: i ? "n" : "" }, s)))),
    h("tbody", null, l.map((x) => h("tr", null, h("th", { scope: "row" }, `${x.tid} `, x.name), [x.on, x.queued, x.throttled, x.blocked].map((ns) => h("td", { class: "n" }, duration(ns))))))));
  const rest = t.list.length - open;
  return section("threads", "Threads", t.text, table(t.list.slice(0, open)), rest > 2 ? h("details", null, h("summary", null, `${rest} more`), table(t.list.slice(open))) : rest > 0 ? table(t.list.slice(open)) : null);
}

// open is how many threads are not folded.
const open = 12;

const hueOf: Record<string, string> = {
  "goroutines runnable": "runnable", "threads on a CPU": "run", "threads queued for a CPU": "nocpu", "threads throttled": "throttled",
  heap: "run", "heap goal": "timer", resident: "memory", "in huge pages": "gc", "in huge pages, its cgroup": "lock", "in huge pages, whole host": "disk", "limit of its cgroup": "throttled",
};

export function curves(m: Model): HTMLElement | null {
  const view = new View(0, m.latency?.length ?? Math.max(1, ...m.curves.flatMap((c) => c.points.map((p) => p[0]))));
  const groups = ([["Goroutines that wait for a P", (c: Curve) => c.name === "goroutines runnable"], ["Threads that run or want to", (c: Curve) => c.name.startsWith("threads")], ["Memory", (c: Curve) => c.bytes]] as const)
    .map(([title, of]) => ({ title, list: m.curves.filter((c) => of(c) && c.points.length > 0) })).filter((g) => g.list.some((c) => c.points.length > 1 && c.name !== "limit of its cgroup"));
  if (groups.length === 0) return null;
  return section("curves", "Run queue, threads and memory over time", "", groups.map((g, i) => h("div", null, h("h3", null, g.title), chart(g.title, g.list, view, i === 0))));
}

const tall = 120;

// chart draws curves as steps.
function chart(title: string, list: Curve[], view: View, first: boolean): HTMLElement {
  const isBytes = list[0]!.bytes, say = (v: number) => (isBytes ? bytes(v) : v.toFixed(v < 10 ? 1 : 0));
  const most = Math.max(...list.map((c) => Math.max(...c.points.map((p) => p[1]))), isBytes ? 1 : 1);
  const p = new Picture(() => {
    const g = p.g, y = (v: number) => 6 + (tall - 8) * (1 - v / (most * 1.05));
    const step = isBytes ? 2 ** Math.ceil(Math.log2(most / 4)) : nice(most * 250) / 1000;
    g.textAlign = "right";
    for (let v = 0; v <= most * 1.05; v += step) {
      g.strokeStyle = css("line");
      g.fillStyle = css("soft");
      g.beginPath();
      g.moveTo(p.left, Math.round(y(v)) + 0.5);
      g.lineTo(p.width - right, Math.round(y(v)) + 0.5);
      g.stroke();
      g.fillText(isBytes ? bytes(v) : String(+v.toFixed(3)), p.left - 8, Math.min(Math.max(y(v), 7), tall - 6));
    }
    axis(p, view, tall + 2, 0);
    g.save();
    g.beginPath();
    g.rect(p.left, 0, p.width - p.left - right, tall + 2);
    g.clip();
    for (const c of list) {
      g.strokeStyle = css("c-" + (hueOf[c.name] ?? "other"));
      g.lineWidth = 1.5;
      g.beginPath();
      if (c.points.length === 1) {
        const [t, v] = c.points[0]!; // read once
        g.fillStyle = g.strokeStyle;
        g.arc(Math.min(p.x(view, t), p.width - right - 3), y(v), 3.5, 0, 2 * Math.PI);
        g.fill();
        continue;
      }
      steps(g, c.points, (t) => p.x(view, t), y, view);
      g.stroke();
    }
    g.lineWidth = 1;
    g.restore();
  }, title + " over time: " + list.map((c) => `${c.name} at most ${say(Math.max(...c.points.map((x) => x[1])))}`).join(", "), 92);
  p.tall(tall + 22);
  view.on(() => p.redraw());
  const tip = h("div", { class: "tip", hidden: true });
  wire(p, view, (x, y, e) => {
    tip.hidden = e === null || x < p.left;
    if (tip.hidden) return;
    const t = p.time(view, x);
    tip.replaceChildren(h("div", null, "+" + duration(t)), ...list.map((c) => h("div", null, `${c.name}: ${say(c.points[Math.max(0, c.points.findIndex((q) => q[0] > t) - 1)]?.[1] ?? 0)}`)));
    tip.style.left = Math.max(0, Math.min(x + 14, p.width - 220)) + "px";
    tip.style.top = p.canvas.offsetTop + y + 14 + "px";
  }, () => {});
  const legend = h("p", { class: "legend" }, list.map((c) => h("span", null, chip(`var(--c-${hueOf[c.name] ?? "other"})`), c.name + (c.points.length === 1 ? ": " + say(c.points[0]![1]) + ", read once" : ""))));
  return h("div", null, h("div", { class: "picture" }, first ? buttons(view) : null, p.canvas, tip), legend);
}

// steps draws what can be seen of a curve. What shares a pixel is one line from its least to its most.
function steps(g: CanvasRenderingContext2D, points: [number, number][], x: (t: number) => number, y: (v: number) => number, view: View): void {
  let column = -Infinity, least = 0, most = 0, last = 0;
  const end = () => {
    if (least === most) return;
    g.lineTo(column, y(least));
    g.lineTo(column, y(most));
    g.lineTo(column, y(last));
  };
  points.forEach(([t, v], i) => {
    const till = points[i + 1]?.[0] ?? view.max;
    if (till < view.lo || t > view.hi) return;
    const from = x(Math.max(t, view.lo - (view.hi - view.lo)));
    if (from - column < 0.5) {
      [least, most, last] = [Math.min(least, v), Math.max(most, v), v];
      return;
    }
    end();
    if (column > -Infinity) g.lineTo(from, y(last));
    g.lineTo(from, y(v));
    [column, least, most, last] = [from, v, v, v];
  });
  end();
  if (column > -Infinity) g.lineTo(x(Math.min(view.max, view.hi + (view.hi - view.lo))), y(last));
}
