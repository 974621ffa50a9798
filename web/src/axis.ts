// A stretch of time that is zoomed and panned, by mouse, wheel and keys, and its axis.

import { css } from "./colours";

export const right = 14; // room beside a picture

export class View {
  lo: number;
  hi: number;
  private listeners: (() => void)[] = [];
  // The bounds may not be left. least is the shortest stretch that can be shown, ns.
  constructor(public min: number, public max: number, private least = 1000) {
    if (this.max <= this.min) this.max = this.min + 1;
    this.lo = this.min;
    this.hi = this.max;
  }
  on(l: () => void): void {
    this.listeners.push(l);
  }
  get zoomed(): boolean {
    return this.lo > this.min || this.hi < this.max;
  }
  bound(min: number, max: number): void {
    this.min = min;
    this.max = Math.max(max, min + 1);
    this.set(this.min, this.max);
  }
  set(lo: number, hi: number): void {
    const width = Math.min(Math.max(hi - lo, Math.min(this.least, this.max - this.min)), this.max - this.min);
    lo = Math.min(Math.max(lo, this.min), this.max - width);
    this.lo = lo;
    this.hi = lo + width;
    for (const l of this.listeners) l();
  }
  reset(): void {
    this.set(this.min, this.max);
  }
  // zoom makes the stretch f times as long and keeps the moment at where it is.
  zoom(f: number, at = (this.lo + this.hi) / 2): void {
    this.set(at - (at - this.lo) * f, at + (this.hi - at) * f);
  }
  pan(part: number): void {
    const by = (this.hi - this.lo) * part;
    this.set(this.lo + by, this.hi + by);
  }
}

// Picture is a canvas that draws itself when it must, at the resolution of the screen.
export class Picture {
  readonly canvas = document.createElement("canvas");
  readonly g = this.canvas.getContext("2d")!;
  width = 0;
  height = 0;
  private wanted = false;
  // left is the room for names beside the picture.
  constructor(private draw: (p: Picture) => void, readonly label: string, public left: number) {
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute("aria-roledescription", "chart");
    this.canvas.setAttribute("aria-label", label);
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    addEventListener("beforeprint", () => this.now());
    addEventListener("afterprint", () => this.redraw());
  }
  tall(px: number): void {
    this.canvas.style.height = px + "px";
    this.redraw();
  }
  redraw(): void {
    if (this.wanted) return;
    this.wanted = true;
    requestAnimationFrame(() => this.now());
  }
  private now(): void {
    this.wanted = false;
    const ratio = devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    if (this.width === 0 || this.height === 0) return;
    const w = Math.round(this.width * ratio), h = Math.round(this.height * ratio);
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    this.g.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.g.clearRect(0, 0, this.width, this.height);
    this.g.font = "12px system-ui, sans-serif";
    this.g.textBaseline = "middle";
    this.draw(this);
  }
  x(v: View, t: number): number {
    return this.left + ((t - v.lo) / (v.hi - v.lo)) * (this.width - this.left - right);
  }
  time(v: View, x: number): number {
    return v.lo + ((x - this.left) / Math.max(1, this.width - this.left - right)) * (v.hi - v.lo);
  }
}

// wire lets a person zoom and pan: a drag zooms to what it covers, with Shift it pans; the wheel
// zooms with Ctrl; + - 0 and the arrows do the same by keys. hover and click get plain points.
export function wire(p: Picture, v: View, hover: (x: number, y: number, e: MouseEvent | null) => void, click: (x: number, y: number) => void): void {
  const c = p.canvas;
  let from: number | null = null, last = 0, pans = false;
  const at = (e: MouseEvent) => {
    const r = c.getBoundingClientRect();
    return { x: e.clientX - r.left, y: e.clientY - r.top };
  };
  const band = document.createElement("div");
  band.className = "selecting";
  band.hidden = true;
  c.addEventListener("pointerdown", (e) => {
    if (e.button !== 0) return;
    if (c.parentElement && !band.parentElement) c.parentElement.appendChild(band);
    from = last = at(e).x;
    pans = e.shiftKey;
    c.setPointerCapture(e.pointerId);
  });
  c.addEventListener("pointermove", (e) => {
    const { x, y } = at(e);
    if (from === null) return hover(x, y, e);
    if (pans) {
      v.pan((last - x) / Math.max(1, p.width - p.left - right));
      last = x;
      return;
    }
    band.hidden = Math.abs(x - from) < 4;
    band.style.left = c.offsetLeft + Math.min(from, x) + "px";
    band.style.top = c.offsetTop + "px";
    band.style.width = Math.abs(x - from) + "px";
    band.style.height = p.height + "px";
  });
  c.addEventListener("pointerup", (e) => {
    const { x, y } = at(e);
    band.hidden = true;
    if (from !== null && !pans) {
      if (Math.abs(x - from) < 4) click(x, y);
      else v.set(p.time(v, Math.min(from, x)), p.time(v, Math.max(from, x)));
    }
    from = null;
  });
  c.addEventListener("pointercancel", () => ((from = null), (band.hidden = true)));
  c.addEventListener("pointerleave", () => from === null && hover(-1, -1, null));
  c.addEventListener("dblclick", () => v.reset());
  c.addEventListener("wheel", (e) => {
    if (e.ctrlKey || e.metaKey) {
      e.preventDefault();
      v.zoom(Math.exp(e.deltaY / 300), p.time(v, at(e).x));
    } else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
      e.preventDefault();
      v.pan((e.deltaX || e.deltaY) / Math.max(1, p.width));
    }
  }, { passive: false });
  c.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    switch (e.key) {
      case "+": case "=": v.zoom(0.5); break;
      case "-": v.zoom(2); break;
      case "0": case "Home": v.reset(); break;
      case "ArrowLeft": v.pan(-0.2); break;
      case "ArrowRight": v.pan(0.2); break;
      default: return;
    }
    e.preventDefault();
  });
}

// buttons do the same for those who have no wheel.
export function buttons(v: View): HTMLElement {
  const box = document.createElement("div");
  box.className = "buttons";
  for (const [text, title, f] of [["+", "zoom in", () => v.zoom(0.5)], ["\u2212", "zoom out", () => v.zoom(2)], ["\u25c2", "earlier", () => v.pan(-0.3)], ["\u25b8", "later", () => v.pan(0.3)], ["all", "show all", () => v.reset()]] as const) {
    const b = document.createElement("button");
    b.type = "button";
    b.textContent = text;
    b.title = title;
    b.setAttribute("aria-label", title);
    b.addEventListener("click", f);
    box.appendChild(b);
  }
  return box;
}

// axis draws the times below y.
export function axis(p: Picture, v: View, y: number, top: number): void {
  const g = p.g, span = v.hi - v.lo;
  const step = nice(span / Math.max(2, (p.width - p.left - right) / 110));
  g.fillStyle = css("soft");
  g.strokeStyle = css("line");
  g.textAlign = "center";
  g.lineWidth = 1;
  for (let t = Math.ceil(v.lo / step) * step; t <= v.hi; t += step) {
    const x = Math.round(p.x(v, t)) + 0.5;
    g.beginPath();
    g.moveTo(x, top);
    g.lineTo(x, y);
    g.stroke();
    g.fillText(tick(t, step), Math.min(x, p.width - 24), y + 10);
  }
}

export function nice(n: number): number {
  const base = 10 ** Math.floor(Math.log10(Math.max(n, 1)));
  for (const f of [1, 2, 5, 10]) if (base * f >= n) return base * f;
  return base * 10;
}

function tick(t: number, step: number): string {
  const [unit, size] = step >= 1e8 || t === 0 ? ["s", 1e9] as const : step >= 1e5 ? ["ms", 1e6] as const : ["us", 1e3] as const;
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return (t / size).toFixed(t === 0 ? 0 : digits) + " " + unit;
}
