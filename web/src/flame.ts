// Where slow requests waited, as a flame graph that hangs: the cause on top, below it whose time it
// is, and the functions from the outermost to the one that waits.

import { Picture, right } from "./axis";
import { colour, css } from "./colours";
import { h, section } from "./dom";
import type { Model } from "./model";
import { state } from "./state";
import { fit } from "./text";
import { duration, percent } from "./units";

const row = 19;
const mostRows = 40;

export function flame(m: Model): HTMLElement | null {
  if (m.waits.ns.length < 2) return null;
  return new Flame(m).element;
}

class Flame {
  readonly element: HTMLElement;
  private picture: Picture;
  private trail = h("div", { class: "trail", "aria-live": "polite" });
  private children: number[][];
  private root = 0;
  private chosen = 0;
  private boxes: { node: number; x: number; w: number; y: number }[] = [];

  constructor(private m: Model) {
    const w = m.waits;
    this.children = w.ns.map(() => []);
    w.parent.forEach((p, i) => p >= 0 && this.children[p]!.push(i));
    this.picture = new Picture(() => this.draw(), "Waiting of slow requests by cause and stack. Keys: arrows go to callers, callees and neighbours, Enter zooms, 0 shows all", 8);
    const c = this.picture.canvas;
    c.addEventListener("mousemove", (e) => this.tell(this.at(e.offsetX, e.offsetY)));
    c.addEventListener("mouseleave", () => this.tell(this.chosen));
    c.addEventListener("click", (e) => this.zoom(this.at(e.offsetX, e.offsetY) ?? 0));
    c.addEventListener("dblclick", () => this.zoom(0));
    c.addEventListener("keydown", (e) => this.key(e));
    this.element = section("flame", "Where slow requests waited, by cause and stack", `${duration(w.ns[0]!)} of all slow requests together, without their own time on CPUs. Wider is longer; click to zoom, again on the top row to go back.`,
      h("div", { class: "picture" }, c), this.trail);
    state.on(() => this.filter());
    this.zoom(0);
  }

  // filter opens the cause of the account that was chosen above.
  private filter(): void {
    const leaf = this.m.ledger?.rows[state.row]?.leaf;
    const n = this.children[0]!.find((i) => this.m.waits.leaf[i] === leaf);
    this.zoom(state.row >= 0 && n !== undefined ? n : 0);
  }

  private depth(n: number): number {
    let most = 0;
    const below = (i: number, d: number) => {
      most = Math.max(most, d);
      if (d < mostRows) for (const c of this.children[i]!) below(c, d + 1);
    };
    below(n, 1);
    return most;
  }

  private above(): number[] {
    const l: number[] = [];
    for (let n = this.root; n >= 0; n = this.m.waits.parent[n]!) l.unshift(n);
    return l;
  }

  private zoom(n: number): void {
    this.root = n;
    this.chosen = n;
    this.picture.tall((this.above().length - 1 + this.depth(n)) * row + 6);
    this.tell(n);
    this.picture.redraw();
  }

  private key(e: KeyboardEvent): void {
    const w = this.m.waits, up = w.parent[this.chosen]!;
    const beside = up >= 0 ? this.children[up]! : [];
    const next: Record<string, number | undefined> = {
      ArrowDown: this.children[this.chosen]![0], ArrowUp: up, ArrowRight: beside[beside.indexOf(this.chosen) + 1], ArrowLeft: beside[beside.indexOf(this.chosen) - 1],
    };
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key in next) {
      const n = next[e.key];
      if (n !== undefined && n >= 0) this.chosen = n;
      if (!this.boxes.some((b) => b.node === this.chosen)) this.root = 0;
      this.picture.tall((this.above().length - 1 + this.depth(this.root)) * row + 6);
      this.tell(this.chosen);
    } else if (e.key === "Enter") this.zoom(this.chosen);
    else if (e.key === "0" || e.key === "Escape") this.zoom(0);
    else return;
    e.preventDefault();
    this.picture.redraw();
  }

  private draw(): void {
    this.boxes = [];
    const above = this.above();
    const whole = this.picture.width - this.picture.left - right;
    above.slice(0, -1).forEach((n, i) => this.box(n, this.picture.left, whole, i));
    const below = (n: number, x: number, width: number, depth: number) => {
      this.box(n, x, width, depth);
      if (depth >= mostRows) return;
      const scale = width / Math.max(1, this.m.waits.ns[n]!);
      for (const c of this.children[n]!) {
        const w = this.m.waits.ns[c]! * scale;
        if (w >= 0.7) below(c, x, w, depth + 1);
        x += w;
      }
    };
    below(this.root, this.picture.left, whole, above.length - 1);
  }

  private box(n: number, x: number, w: number, depth: number): void {
    const g = this.picture.g, y = depth * row;
    this.boxes.push({ node: n, x, w, y });
    g.globalAlpha = n === 0 ? 0.35 : depth % 2 ? 0.92 : 0.78;
    g.fillStyle = n === 0 ? css("soft") : colour(this.m.waits.leaf[n]!);
    g.fillRect(x, y, Math.max(0.5, w - 0.5), row - 1);
    g.globalAlpha = 1;
    if (n === this.chosen && n !== 0) {
      g.strokeStyle = css("ink");
      g.lineWidth = 2;
      g.strokeRect(x + 1, y + 1, Math.max(1, w - 2.5), row - 3);
      g.lineWidth = 1;
    }
    if (w < 34) return;
    g.fillStyle = n === 0 ? css("ink") : css("on");
    g.textAlign = "left";
    g.fillText(fit(g, n === 0 ? "all waiting" : this.m.waits.name[n]!, w - 8), x + 4, y + row / 2);
  }

  private at(x: number, y: number): number | undefined {
    return this.boxes.find((b) => x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + row)?.node;
  }

  private tell(n: number | undefined): void {
    if (n === undefined) return;
    const w = this.m.waits, path: string[] = [];
    for (let i = n; i > 0; i = w.parent[i]!) path.unshift(w.name[i]!);
    this.trail.replaceChildren(h("span", null, h("strong", null, duration(w.ns[n]!) + ", " + percent(w.ns[n]!, w.ns[0]!)), " ", path.join(" \u203a ") || "all waiting"));
  }
}
