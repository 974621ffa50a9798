// Latency over time: each request a dot in the colour of its largest account, and below it, on the
// same axis, what stopped or held up the process.

import { axis, buttons, Picture, right, View, wire } from "./axis";
import { colour, css } from "./colours";
import { flat, h, keys, section } from "./dom";
import type { Latency, Model } from "./model";
import type { Openable } from "./opened";
import { state } from "./state";
import { count, duration } from "./units";

const left = 108; // room for the names of lanes
const lane = 17;

interface Lane { name: string; colour: string; spans: { lo: number; hi: number; part: number; text: string }[] }

const laneColours: Record<string, string> = { "stop-the-world": "c-stw", "GC cycle": "c-gc", throttled: "c-throttled", reclaim: "c-memory" };

export function latency(m: Model, open: Openable): HTMLElement | null {
  const l = m.latency;
  if (!l) return null;
  const chart = new Chart(m, l, open);
  const acts = [" Drag to zoom, Shift and drag to move; ", keys("by keys: + \u2212 \u25c2 \u25b8 0"), "."];
  const picture = h("div", { class: "picture" }, buttons(chart.view), chart.picture.canvas, chart.tip);
  if (!chart.requests) return section("latency", "What held up the process, over time", ["No request is known, so there is no latency to show.", acts], picture);
  const lead = (l.whole ? `Each of ${count(l.dots.at.length)} requests is a dot, by its start, in the colour of its largest part.`
    : `There are too many requests for a dot each: ${count(l.dots.at.length)} slow ones are dots, all others are shown as density (the darker, the more).`)
    + (l.notShown > 0 ? ` ${count(l.notShown)} requests of small groups are not shown.` : "") + " Slow ones are large; click one to open it." + (chart.rings ? " Of those with a ring the states of goroutines, threads and CPUs are kept too, of the others the parts and the chain of waits." : "")
    + (m.sketches.left > 0 ? ` Of ${count(m.sketches.left)} slow ones nothing more is kept.` : "");
  return section("latency", "Latency over time", [lead, acts], picture, chart.legend());
}

class Chart {
  readonly view: View;
  readonly picture: Picture;
  readonly tip = h("div", { class: "tip", hidden: true });
  private lanes: Lane[];
  private low: number;
  private high: number;
  private plot: number; // height of the dots
  private full: number[]; // dots of which the joined timeline is kept
  readonly requests: boolean;
  get rings(): boolean {
    return this.full.length > 0;
  }

  constructor(private m: Model, private l: Latency, private open: Openable) {
    const slow = l.dots.at.map((_, i) => i).filter((i) => l.dots.slow[i]);
    this.full = slow.filter((i) => open.isFull(open.ofDot(i)));
    if (this.full.length === slow.length) this.full = []; // where all have a ring, it says nothing
    this.requests = l.dots.at.length + l.density.cells.length > 0;
    this.plot = this.requests ? 300 : 6;
    this.view = new View(0, l.length);
    this.lanes = lanesOf(l);
    let low = Infinity, high = 0;
    // The very shortest are drawn at the lower edge: one of them must not press all others together.
    const sorted = [...l.dots.ns].sort((a, b) => a - b);
    if (sorted.length > 0) [low, high] = [Math.max(sorted[Math.floor(sorted.length / 200)]!, 1000), sorted[sorted.length - 1]!];
    for (const [, from, below] of l.density.cells) {
      low = Math.min(low, Math.max(from, 1000));
      high = Math.max(high, below);
    }
    if (!(low < high)) [low, high] = [Math.max(1, Math.min(low, 1e6) / 2), Math.max(high * 2, 1e6)];
    this.low = Math.log10(low) - 0.08;
    this.high = Math.log10(high) + 0.08;
    this.picture = new Picture(() => this.draw(), this.requests ? `Latency of ${l.dots.at.length} requests over time, from ${duration(low)} to ${duration(high)}; the slowest are listed in the table below` : "What held up the process, over time: " + this.lanes.map((x) => x.name).join(", "), left);
    this.picture.tall(this.plot + 30 + this.lanes.length * lane);
    this.view.on(() => this.picture.redraw());
    state.on(() => this.picture.redraw());
    wire(this.picture, this.view, (x, y, e) => this.hover(x, y, e), (x, y) => this.click(x, y));
  }

  legend(): HTMLElement {
    const seen = new Set<string>();
    for (const i of this.l.dots.largest) seen.add(this.l.largest[i]!.leaf);
    const box = h("p", { class: "legend" });
    for (const leaf of seen) {
      const chip = h("span", { class: "chip" });
      chip.style.background = colour(leaf);
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (chip.style.background = colour(leaf)));
      box.append(h("span", null, chip, leaf || "not known"));
    }
    return box;
  }

  private y(ns: number): number {
    return 8 + (this.plot - 12) * Math.min(1, 1 - (Math.log10(Math.max(ns, 1)) - this.low) / (this.high - this.low));
  }

  private draw(): void {
    const p = this.picture, g = p.g, v = this.view;
    this.grid();
    axis(p, v, this.plot + 4 + this.lanes.length * lane, 0);
    g.save();
    g.beginPath();
    g.rect(left, 0, p.width - left - right, p.height);
    g.clip();
    this.shade();
    this.density();
    this.dots();
    this.lanes.forEach((x, i) => this.lane(x, i));
    g.restore();
    g.textAlign = "right";
    g.fillStyle = css("soft");
    this.lanes.forEach((x, i) => g.fillText(x.name, left - 8, this.plot + 4 + (i + 0.5) * lane, left - 8));
  }

  private grid(): void {
    if (!this.requests) return;
    const p = this.picture, g = p.g;
    g.textAlign = "right";
    g.strokeStyle = css("line");
    g.fillStyle = css("soft");
    const decades = this.high - this.low;
    for (let e = Math.floor(this.low); e <= this.high; e++) {
      for (const f of decades < 1.3 ? [1, 2, 3, 5, 7] : decades < 3 ? [1, 3] : [1]) {
        const ns = f * 10 ** e, y = Math.round(this.y(ns)) + 0.5;
        if (y < 4 || Math.log10(ns) < this.low) continue;
        g.beginPath();
        g.moveTo(left, y);
        g.lineTo(p.width - right, y);
        g.stroke();
        g.fillText(tickOf(ns), left - 8, y);
      }
    }
  }

  // shade lets long stops be seen behind the dots.
  private shade(): void {
    const g = this.picture.g;
    for (const l of this.lanes) {
      if (l.name !== "throttled" && l.name !== "stop-the-world") continue;
      g.fillStyle = l.colour;
      g.globalAlpha = 0.12;
      for (const s of l.spans) {
        const x = this.picture.x(this.view, s.lo), w = this.picture.x(this.view, s.hi) - x;
        if (w >= 2) g.fillRect(x, 0, w, this.plot);
      }
    }
    g.globalAlpha = 1;
  }

  private density(): void {
    const { begin, width, cells } = this.l.density, g = this.picture.g;
    let most = 1;
    for (const c of cells) most = Math.max(most, c[3]);
    g.fillStyle = css("soft");
    for (const [column, from, below, n] of cells) {
      const x = this.picture.x(this.view, begin + column * width), w = this.picture.x(this.view, begin + (column + 1) * width) - x;
      if (x > this.picture.width || x + w < 0) continue;
      const top = this.y(below), bottom = this.y(Math.max(from, 1));
      g.globalAlpha = 0.08 + 0.72 * (Math.log1p(n) / Math.log1p(most));
      g.fillRect(x, top, Math.max(w, 1), Math.max(bottom - top, 1));
    }
    g.globalAlpha = 1;
  }

  private dots(): void {
    const d = this.l.dots, g = this.picture.g, v = this.view;
    // Dots that look alike come together: to change the colour for each is what takes long.
    const alike = new Map<string, { xy: number[]; colour: string; alpha: number; slow: number }>();
    for (let i = 0; i < d.at.length; i++) {
      const at = d.at[i]!;
      if (at < v.lo || at > v.hi) continue;
      const slow = d.slow[i]!, alpha = this.chosen(i) ? (slow ? 0.95 : 0.6) : 0.07, leaf = this.l.largest[d.largest[i]!]!.leaf;
      const key = slow + " " + alpha + " " + colour(leaf);
      let p = alike.get(key);
      if (!p) alike.set(key, (p = { xy: [], colour: colour(leaf), alpha, slow }));
      p.xy.push(this.picture.x(v, at), this.y(d.ns[i]!));
    }
    const r = d.at.length > 3000 ? 1.4 : 2;
    for (const p of [...alike.values()].sort((a, b) => a.slow - b.slow || a.alpha - b.alpha)) {
      g.globalAlpha = p.alpha;
      g.fillStyle = p.colour;
      for (let i = 0; i < p.xy.length; i += 2) {
        const x = p.xy[i]!, y = p.xy[i + 1]!;
        if (!p.slow) g.fillRect(x - r, y - r, 2 * r, 2 * r);
        else {
          g.beginPath();
          g.arc(x, y, 3.4, 0, 2 * Math.PI);
          g.fill();
        }
      }
    }
    g.lineWidth = 1.2;
    g.strokeStyle = css("ink");
    for (const i of this.full) {
      if (d.at[i]! < v.lo || d.at[i]! > v.hi || !this.chosen(i)) continue;
      g.globalAlpha = 0.8;
      g.beginPath();
      g.arc(this.picture.x(v, d.at[i]!), this.y(d.ns[i]!), 5, 0, 2 * Math.PI);
      g.stroke();
    }
    g.globalAlpha = 1;
    const open = state.open >= 0 ? this.m.slowest[state.open] : undefined;
    if (open) {
      g.strokeStyle = css("ink");
      g.lineWidth = 2;
      g.beginPath();
      g.arc(this.picture.x(v, open.at), this.y(open.wall), 7, 0, 2 * Math.PI);
      g.stroke();
      g.lineWidth = 1;
    }
  }

  // chosen reports whether the filter lets the request through.
  private chosen(i: number): boolean {
    if (state.row < 0) return true;
    const x = this.l.largest[this.l.dots.largest[i]!]!;
    return x.row === state.row || (x.row < 0 && x.leaf === this.m.ledger?.rows[state.row]?.leaf);
  }

  private lane(l: Lane, i: number): void {
    const g = this.picture.g, y = this.plot + 4 + i * lane;
    g.fillStyle = l.colour;
    for (const s of l.spans) {
      const x = this.picture.x(this.view, s.lo), w = this.picture.x(this.view, s.hi) - x;
      if (x > this.picture.width || x + w < left) continue;
      const tall = Math.max(s.part * (lane - 4), s.part > 0 ? 1 : 0);
      g.fillRect(x, y + lane - 2 - tall, Math.max(w, 1), tall);
    }
  }

  private nearest(x: number, y: number): number {
    const d = this.l.dots;
    let best = -1, least = 144;
    for (let i = 0; i < d.at.length; i++) {
      const dx = this.picture.x(this.view, d.at[i]!) - x;
      if (Math.abs(dx) > 12) continue;
      const dy = this.y(d.ns[i]!) - y, far = dx * dx + dy * dy;
      if (far < least && this.chosen(i)) [best, least] = [i, far];
    }
    return best;
  }

  private hover(x: number, y: number, e: MouseEvent | null): void {
    const lines = e === null ? [] : this.words(x, y);
    this.tip.hidden = lines.length === 0;
    if (lines.length === 0) return;
    this.tip.replaceChildren(...lines.map((s) => h("div", null, s)));
    this.tip.style.left = Math.max(0, Math.min(x + 14, this.picture.width - 300)) + "px";
    this.tip.style.top = this.picture.canvas.offsetTop + y + 14 + "px";
  }

  private words(x: number, y: number): string[] {
    if (x < left) return [];
    if (y > this.plot + 4) {
      const l = this.lanes[Math.floor((y - this.plot - 4) / lane)], t = this.picture.time(this.view, x);
      const near = ((this.view.hi - this.view.lo) / this.picture.width) * 2;
      const s = l?.spans.find((s) => s.lo - near <= t && t <= s.hi + near);
      return s ? [l!.name, s.text] : [];
    }
    const i = this.nearest(x, y), d = this.l.dots;
    if (i < 0) return [];
    const a = this.l.largest[d.largest[i]!]!;
    return [duration(d.ns[i]!) + ", started at +" + duration(d.at[i]!) + (d.slow[i] ? ", slow" : ""), this.l.entries[d.entry[i]!] ?? "", "mostly " + a.label, this.kept(i)];
  }

  // kept says what a click opens.
  private kept(i: number): string {
    if (!this.l.dots.slow[i]) return "not slow, so it was not followed";
    const n = this.open.ofDot(i);
    if (!this.open.has(n)) return "nothing more is kept of it";
    return this.open.isFull(n) ? "click: its parts, chain, goroutines, threads and CPUs" : "click: its parts and its chain of waits";
  }

  private click(x: number, y: number): void {
    const i = this.nearest(x, y);
    const n = i < 0 ? -1 : this.open.ofDot(i);
    if (this.open.has(n)) state.show(n, true);
  }
}

function tickOf(ns: number): string {
  if (ns >= 1e9) return ns / 1e9 + " s";
  if (ns >= 1e6) return ns / 1e6 + " ms";
  return ns / 1e3 + " us";
}

function lanesOf(l: Latency): Lane[] {
  const out: Lane[] = [];
  for (const [kind, name] of Object.entries(laneColours)) {
    const spans = l.bands.filter((b) => b.kind === kind);
    if (spans.length === 0) continue;
    out.push({ name: kind, colour: css(name), spans: spans.map((b) => ({ lo: b.begin, hi: b.end, part: 1, text: duration(b.end - b.begin) + " at +" + duration(b.begin) + (b.detail ? ", " + flat(b.detail) : "") + (b.ours ? ", by the recording" : "") })) });
  }
  for (const v of l.levels) {
    if (!v.points.some((p) => p[2] > 0)) continue;
    out.push({ name: levelName(v.name), colour: css("c-disk"), spans: v.points.map(([lo, hi, share]) => ({ lo, hi, part: share, text: levelText(v.name, share) })) });
  }
  return out;
}

// levelName shortens a stream's name: "/host/psi/cpu/some:ns" is "PSI cpu, host".
function levelName(stream: string): string {
  const m = /^\/(\w+)\/psi\/(\w+)\/some:ns$/.exec(stream);
  return m ? `PSI ${m[2]}, ${m[1]}` : stream;
}

// levelText says what such a share means.
function levelText(stream: string, share: number): string {
  const m = /^\/(\w+)\/psi\/(\w+)\/some:ns$/.exec(stream), p = (100 * share).toFixed(1) + " % of the time";
  return m ? `some task waited for ${m[2] === "cpu" ? "a CPU" : m[2]} ${p} (${m[1]})` : p;
}
