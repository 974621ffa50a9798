// One slow request opened: where its time went, and below it, on the same axis, the goroutines of
// the chain, their threads and the CPUs, each in its states.

import { axis, buttons, Picture, right, View, wire } from "./axis";
import { chip, flat, h, keys, section, symbol } from "./dom";
import { colour, css, hue } from "./colours";
import type { Lane, Model, Request, Story } from "./model";
import type { Openable } from "./opened";
import { state } from "./state";
import { stackOf } from "./process";
import { has, partColour, parts } from "./slowest";
import { fit } from "./text";
import { count, duration, percent } from "./units";

const chainTall = 30;
const tall = 19;
const gap = 8; // between kinds of lanes
const mostParts = 6;

// Figures of a link or a span: see Story and Lane in model.go.
type Figures = [number, number, number, number, number, number, number, number, number];

// What a person can ask about: a link of the chain, or a span of a lane.
interface Piece { begin: number; end: number; leaf: string; detail: string; by: string; on: string; site: string; stack: number; several: number; depth: number; lane: number }

export function stories(m: Model, open: Openable): HTMLElement | null {
  const first = open.requests.findIndex((_, i) => open.has(i));
  return first >= 0 ? new Opened(m, open, first, open.story(first)!).element : null;
}

class Opened {
  readonly element: HTMLElement;
  private view = new View(0, 1);
  private picture: Picture;
  private tip = h("div", { class: "tip", hidden: true });
  private title = h("h3", { "aria-live": "polite" });
  private why = h("p", null);
  private parts = h("div", { class: "use" });
  private note = h("p", { class: "dim" });
  private span = h("div", { class: "span detail", "aria-live": "polite" });
  private chosen: Piece | null = null;
  private link = -1;
  private tops: number[] = []; // of the lanes, and where the last ends
  private own = new Set<number[]>(); // holds of Ps by goroutines of the chain
  private lead = h("span");
  private legend = h("p", { class: "legend" });

  constructor(private m: Model, private open: Openable, private request: number, private story: Story) {
    this.picture = new Picture(() => this.draw(), "The request over time: where its time went, and below it whose time it was. Keys: j and k go from stretch to stretch, n and p to the next and previous slow request, plus, minus, arrows and 0 zoom and move", 190);
    this.view.on(() => this.picture.redraw());
    wire(this.picture, this.view, (x, y, e) => this.hover(x, y, e), (x, y) => this.pick(this.at(x, y), -1));
    const step = (text: string, by: number) => h("button", { type: "button", click: () => this.step(by) }, text);
    this.element = section("story", "One slow request, opened", [this.lead, " A line under a lane marks the time that counts. Click a stretch for its stack; keys: ",
      keys("n p other requests,"), " ", keys("j k stretches,"), " ", keys("+ \u2212 \u25c2 \u25b8 0 zoom"), "."],
      h("div", { class: "steps" }, step("\u25c2 slower (p)", -1), step("next slowest (n) \u25b8", 1)), this.title, this.why, this.parts,
      h("div", { class: "picture" }, buttons(this.view), this.picture.canvas, this.tip), this.legend, this.note, this.span);
    this.element.addEventListener("keydown", (e) => this.key(e));
    state.on(() => this.follow());
    this.show(request);
    state.open = request;
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "n") this.step(1);
    else if (e.key === "p") this.step(-1);
    else if (e.key === "j" || e.key === "k") this.walk(e.key === "j" ? 1 : -1);
    else return;
    e.preventDefault();
  }

  // step opens another request, of those that the filter leaves.
  private step(by: number): void {
    const all = this.open.requests, n = all.length;
    for (let i = 1; i <= n; i++) {
      const at = (this.request + by * i + n * i) % n;
      if (this.open.has(at) && has(all[at]!, state.row)) return state.show(at);
    }
  }

  // walk goes along the chain.
  private walk(by: number): void {
    const c = this.story.chain;
    this.link = Math.min(Math.max(this.link + by, 0), c.length - 1);
    const p = this.ofChain(this.link);
    this.pick(p, this.link);
    if (p.begin < this.view.lo || p.end > this.view.hi) this.view.set(p.begin - (this.view.hi - this.view.lo) / 2, p.begin + (this.view.hi - this.view.lo) / 2);
  }

  private follow(): void {
    if (state.open !== this.request && this.open.has(state.open)) this.show(state.open);
    else this.picture.redraw();
  }

  private show(request: number): void {
    const s = this.open.story(request);
    if (!s) return;
    this.story = s;
    this.request = request;
    this.link = -1;
    const q = this.open.requests[request]!, full = this.open.isFull(request);
    this.title.replaceChildren(h("span", null, `${count(request + 1)} of ${count(this.open.requests.length)}: `, symbol(q.name), `, ${duration(q.wall)}, started ${q.when}, ${s.lanes[0]?.kind ?? "actor"} ${q.g}`));
    this.why.replaceChildren(h("span", null, symbol(q.why)));
    this.why.hidden = q.why === "";
    this.parts.replaceChildren(...this.ledger(q));
    const notes = full ? [s.cut ? "It had more than can be shown: some goroutines, Ps or threads are left out." : "", s.lanes.some((l) => l.kind === "thread") ? "" : "The recording does not have its threads: no kernel records on the trace's clock."]
      : [`Of this request the parts and the chain are kept. What goroutines, threads and CPUs did meanwhile is kept of ${this.open.fulls}: the slowest, and one of the slowest with each largest part; they have a ring above.`];
    this.note.replaceChildren(h("span", null, notes.filter((x) => x).join(" ")));
    this.measure(full);
    this.view.bound(0, s.length);
    this.picture.tall(this.laneTop(s.lanes.length) + 26);
    this.pick(null, -1);
    this.picture.redraw();
  }

  // ledger is the request's own: a bar, and its largest parts.
  private ledger(q: Request): HTMLElement[] {
    const l = q.parts.slice(0, mostParts), rest = q.wall - l.reduce((sum, p) => sum + p.ns, 0);
    if (rest * 100 > q.wall) l.push({ row: -1, label: "the rest", ns: rest });
    return [h("div", null, parts(this.m, { ...q, parts: l }, q.wall)),
      h("ul", null, l.map((p) => h("li", null, chip(partColour(this.m, p)), symbol(p.label), " ", h("span", { class: "n" }, `${duration(p.ns)}, ${percent(p.ns, q.wall)}`))))];
  }

  // measure finds where the lanes stand, and whose threads are the request's own.
  private measure(full: boolean): void {
    const l = this.story.lanes, total = new Map<string, number>();
    let y = chainTall + 8;
    this.tops = l.map((x, n) => {
      const top = y;
      y += tall + (n + 1 < l.length && x.kind !== l[n + 1]!.kind ? gap : 0);
      return top;
    });
    this.tops.push(y);
    this.own = new Set(l.filter((x) => x.kind === "P").flatMap((x) => x.spans.filter((s) => this.holds(s))));
    const has = (kind: string, words: string) => (l.some((x) => x.kind === kind) ? [words] : []);
    this.lead.textContent = !full ? "The top row is where its time went. Below it stands whose time that was." : "The top row is where its time went. Below it stand " + [...has("goroutine", "its goroutine (G) and those it waited for"), ...has("P", "the Ps of the Go scheduler"),
      ...has("thread", l.some((x) => x.kind === "goroutine") ? "their threads" : "its thread and those it waited for"), ...has("CPU", "the CPUs")].join(", then ") + "."
      + (l.some((x) => x.kind === "P" || x.kind === "CPU") ? " " + [...has("P", "Ps"), ...has("CPU", "CPUs")].join(" and ") + " are bright where these had them and pale where others did." : "");
    for (const c of this.story.chain as Figures[]) {
      const leaf = this.story.leaves[c[2]]!;
      total.set(leaf, (total.get(leaf) ?? 0) + c[1] - c[0]);
    }
    this.legend.replaceChildren(...[...total].sort((a, b) => b[1] - a[1]).map(([leaf, ns]) => h("span", null, chip(`var(--c-${hue(leaf)})`), leaf, " ", h("span", { class: "n dim" }, duration(ns)))));
  }

  // holds reports whether the hold of a P is mostly by the chain: one of its goroutines was then on
  // the same thread.
  private holds(x: number[]): boolean {
    let ns = 0;
    for (const l of this.story.lanes) {
      if (l.kind !== "goroutine") continue;
      for (let i = first(l.spans, x[0]!); i < l.spans.length && l.spans[i]![0]! < x[1]!; i++) {
        const s = l.spans[i]!;
        if (s[5]! > 0 && s[5] === x[5]) ns += Math.min(s[1]!, x[1]!) - Math.max(s[0]!, x[0]!);
      }
    }
    return 2 * ns >= x[1]! - x[0]!;
  }

  private laneTop(i: number): number {
    return this.tops[i] ?? 0;
  }

  private ofChain(i: number): Piece {
    const s = this.story, c = s.chain[i] as Figures;
    const lane = s.lanes[c[4]];
    return { begin: c[0], end: c[1], leaf: s.leaves[c[2]]!, depth: c[3], lane: c[4], site: s.names[c[5]]!, detail: s.names[c[6]]!, stack: c[7], by: "", on: lane ? laneName(lane) : "", several: c[8] };
  }

  private ofLane(lane: number, i: number): Piece {
    const s = this.story, x = s.lanes[lane]!.spans[i] as Figures;
    return { begin: x[0], end: x[1], leaf: s.leaves[x[2]]!, detail: s.names[x[3]]!, by: s.names[x[4]]!, on: s.names[x[5]]!, site: "", stack: x[6], several: x[7], depth: -1, lane };
  }

  private draw(): void {
    const p = this.picture, g = p.g, s = this.story, v = this.view;
    p.left = p.width < 600 ? 96 : 190;
    const bottom = this.laneTop(s.lanes.length);
    axis(p, v, bottom, 0);
    g.save();
    g.beginPath();
    g.rect(p.left, 0, p.width - p.left - right, p.height);
    g.clip();
    this.row(s.chain, 2, chainTall - 4, (c) => [s.leaves[c[2]!]!, 1, ""]);
    s.lanes.forEach((l, i) => this.row(l.spans, this.laneTop(i) + 2, tall - 6, (x) => this.look(l, x)));
    g.fillStyle = css("ink");
    let drawn = -1, in_ = -1;
    for (const c of s.chain as Figures[]) {
      if (c[4] < 0 || c[1] < v.lo || c[0] > v.hi) continue;
      const x = p.x(v, c[0]), end = Math.max(p.x(v, c[1]), x + 0.5);
      if (c[4] === in_ && end <= drawn) continue;
      g.fillRect(x, this.laneTop(c[4]) + tall - 3, end - x, 2);
      [drawn, in_] = [Math.ceil(end), c[4]];
    }
    if (this.chosen) {
      const y = this.chosen.depth >= 0 ? 1 : this.laneTop(this.chosen.lane) + 1, tallness = this.chosen.depth >= 0 ? chainTall - 2 : tall - 4;
      g.strokeStyle = css("ink");
      g.lineWidth = 2;
      g.strokeRect(p.x(v, this.chosen.begin), y, Math.max(2, p.x(v, this.chosen.end) - p.x(v, this.chosen.begin)), tallness);
      g.lineWidth = 1;
    }
    g.restore();
    g.textAlign = "right";
    g.fillStyle = css("ink");
    g.fillText(fit(g, "where the time went", p.left - 14), p.left - 8, chainTall / 2);
    g.fillStyle = css("soft");
    s.lanes.forEach((l, i) => g.fillText(fit(g, laneName(l).replace(/^goroutine /, "G "), p.left - 14), p.left - 8, this.laneTop(i) + tall / 2 - 1));
  }

  // look is the leaf, how strongly it is drawn, and the text. Of a P or a CPU the text is who had it.
  private look(l: Lane, x: number[]): [string, number, string] {
    const s = this.story, leaf = s.leaves[x[2]!]!, detail = s.names[x[3] ?? 0]!;
    if (l.kind === "P") return [leaf, this.own.has(x) ? 0.95 : 0.45, detail];
    if (l.kind === "CPU") return [leaf, leaf === "on CPU" ? 0.95 : 0.6, detail];
    return [leaf, quiet(leaf) ? 0.25 : 0.95, detail ? leaf + ": " + detail : ""];
  }

  // row draws the stretches of a lane that can be seen. Of those that share a pixel the first is
  // drawn: a long recording has hundreds of them.
  private row(spans: number[][], y: number, height: number, look: (x: number[]) => [string, number, string]): void {
    const p = this.picture, v = this.view, g = p.g;
    let drawn = -1;
    for (let i = first(spans, v.lo); i < spans.length && spans[i]![0]! <= v.hi; i++) {
      const x = p.x(v, spans[i]![0]!), till = p.x(v, spans[i]![1]!), end = Math.max(till, x + 0.5);
      if (till <= drawn) continue;
      const [leaf, alpha, text] = look(spans[i]!);
      g.globalAlpha = alpha;
      g.fillStyle = colour(leaf);
      g.fillRect(x, y, end - x, height);
      g.globalAlpha = 1;
      drawn = end;
      const from = Math.max(x, p.left), room = Math.min(end, p.width - right) - from - 8;
      if (room < (alpha < 0.5 ? 70 : 40)) continue;
      g.textAlign = "left";
      g.fillStyle = alpha < 0.5 ? css("ink") : css("on");
      g.fillText(fit(g, flat(text || leaf), room), from + 4, y + height / 2 + 0.5);
    }
  }

  // at is the piece under a point.
  private at(x: number, y: number): Piece | null {
    const s = this.story, v = this.view, p = this.picture;
    if (x < p.left) return null;
    const t = p.time(v, x), near = (v.hi - v.lo) / Math.max(1, p.width - p.left);
    const find = (spans: number[][]) => {
      const i = first(spans, t);
      if (spans[i] && spans[i]![0]! <= t) return i;
      for (const n of [i - 1, i]) if (spans[n] && spans[n]![0]! - near <= t && t <= spans[n]![1]! + near) return n;
      return -1;
    };
    if (y < chainTall) {
      const i = find(s.chain);
      return i < 0 ? null : this.ofChain(i);
    }
    for (let n = 0; n < s.lanes.length; n++) {
      const top = this.laneTop(n);
      if (y < top || y >= top + tall) continue;
      const i = find(s.lanes[n]!.spans);
      return i < 0 ? null : this.ofLane(n, i);
    }
    return null;
  }

  private hover(x: number, y: number, e: MouseEvent | null): void {
    const piece = e === null ? null : this.at(x, y);
    this.tip.hidden = piece === null;
    if (!piece) return;
    this.tip.replaceChildren(...this.lines(piece).map(([name, value]) => h("div", null, name ? name + ": " + value : value)));
    this.tip.style.left = Math.max(0, Math.min(x + 14, this.picture.width - 300)) + "px";
    this.tip.style.top = this.picture.canvas.offsetTop + y + 14 + "px";
  }

  private lines(p: Piece): [string, string][] {
    const s = this.story, lane = s.lanes[p.lane];
    const out: [string, string][] = [["", `${p.leaf}, ${duration(p.end - p.begin)} from +${duration(p.begin)}`]];
    if (p.several > 1) out.push(["", `${p.several} short stretches together, the longest of them shown`]);
    if (p.depth < 0 && lane) out.push(["of", laneName(lane)]);
    if (p.depth > 0) out.push(["after", `${p.depth} ${p.depth === 1 ? "wait that was" : "waits that were"} followed`]);
    if (p.depth >= 0 && p.on) out.push(["time of", p.on]);
    if (p.depth < 0 && p.on) out.push(["on", p.on]);
    if (p.site) out.push(["the request waits in", p.site]);
    if (p.detail) out.push([detailWord(p, lane), p.detail]);
    if (p.by) out.push([p.leaf === "runnable in Go" ? "made by" : "ended by", p.by]);
    return out;
  }

  // pick shows all that is known of a stretch, its stack too.
  private pick(p: Piece | null, link: number): void {
    this.chosen = p;
    if (link < 0 && p && p.depth >= 0) this.link = this.story.chain.findIndex((c) => c[0] === p.begin);
    this.picture.redraw();
    this.span.hidden = p === null;
    if (!p) return;
    const [first, ...rest] = this.lines(p);
    const stack = (this.story.stacks[p.stack] ?? []).map((n) => this.m.frames[n]!);
    const c = chip(`var(--c-${hue(p.leaf)})`);
    this.span.replaceChildren(h("h3", null, c, first![1]),
      h("dl", null, rest.map(([name, value]) => [h("dt", null, name), h("dd", null, symbol(value))])),
      stack.length > 0 ? stackOf(stack) : h("p", { class: "dim" }, "No stack was recorded here."));
  }
}

// quiet states are those in which nothing is wrong: they recede.
function quiet(leaf: string): boolean {
  return leaf === "another goroutine" || leaf === "network" || leaf === "timer" || leaf === "asleep" || leaf === "lock" || leaf === "unexplained (born outside)";
}

function detailWord(p: Piece, lane: Lane | undefined): string {
  if (p.depth < 0 && lane?.kind === "CPU") return "ran";
  if (p.depth < 0 && lane?.kind === "P") return "held by";
  if (p.leaf === "no CPU") return "the CPU had";
  if (p.leaf === "runnable in Go") return "since it was";
  return "in";
}

function laneName(l: Lane): string {
  return `${l.kind} ${l.id}` + (l.name ? " " + l.name : "");
}

// first is the first of spans, which are in order, that ends after t.
function first(spans: number[][], t: number): number {
  let lo = 0, hi = spans.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (spans[mid]![1]! > t) hi = mid;
    else lo = mid + 1;
  }
  return lo;
}
