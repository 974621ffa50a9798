// One colour for each cause, the same in every report: a reader of several learns them. Causes of
// one family share a hue. The sheet has the values, for light and for dark.

const hues: Record<string, string> = {
  "on CPU": "run",
  "runnable in Go": "runnable",
  throttled: "throttled",
  "no CPU": "nocpu",
  "stop-the-world": "stw",
  "stop-the-world work": "stw",
  "stop-the-world, queued": "stw",
  "mark assist": "gc",
  "mark assist (waiting for credit)": "gc",
  sweep: "gc",
  "mark termination, queued": "gc",
  "GC start, queued": "gc",
  "stack scan": "gc",
  network: "outside",
  timer: "timer",
  syscall: "syscall",
  "lock, between holders": "lock",
  lock: "lock",
  "kernel lock": "lock",
  asleep: "asleep",
  "late poll": "late",
  "unread in its socket": "late",
  "unread in its socket, behind a long turn": "late",
  fault: "memory",
  "direct reclaim": "memory",
  "memory cgroup reclaim": "memory",
  compaction: "memory",
  mmap_lock: "memory",
  "TLB flush": "memory",
  "NUMA migration": "memory",
  disk: "disk",
  pipe: "disk",
  other: "other",
  "another goroutine": "other",
  "previous request's end": "behind",
  "runtime idle": "late",
};

// What Ps, CPUs and memory were used for, in the colours of the causes that are akin.
const uses: Record<string, string> = {
  "running the program": "run", "garbage collection": "gc", "in a syscall": "syscall", "world stopped": "stw", "idle while work waited": "late",
  "running the target": "run", "taken by others": "nocpu", "taken by the host": "disk", "unused while its work waited": "late",
  "live heap": "run", "idle heap": "timer", "released, still resident": "asleep", stacks: "syscall", "the runtime's own": "gc",
};

// useHue is the hue of the i-th part of a use: what nobody used recedes.
export function useHue(name: string, i: number): string {
  if (name === "idle" || name === "the rest") return "other";
  if (hue(name) !== "other") return hue(name);
  return uses[name] ?? rest[i % rest.length]!;
}

const rest = ["outside", "memory", "lock", "disk", "behind", "runnable"];

let cache = new Map<string, string>();

function value(name: string): string {
  let v = cache.get(name);
  if (v === undefined) {
    v = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    cache.set(name, v);
  }
  return v;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (cache = new Map()));
addEventListener("beforeprint", () => (cache = new Map()));
addEventListener("afterprint", () => (cache = new Map()));

// Names of the sheet by leaf, kept: a picture asks for thousands.
const hueOf = new Map<string, string>();

// css is a colour of the sheet, for a canvas.
export function css(name: string): string {
  return value(name);
}

export function hue(leaf: string): string {
  return hues[leaf] ?? (leaf.startsWith("unexplained") ? "unknown" : "other");
}

export function colour(leaf: string): string {
  let name = hueOf.get(leaf);
  if (name === undefined) hueOf.set(leaf, (name = "c-" + hue(leaf)));
  return value(name);
}

// shade tells rows of one hue apart: the n-th of them is a little nearer to the background.
export function shade(rows: { leaf: string }[], i: number): string {
  const h = hue(rows[i]?.leaf ?? "other");
  let n = 0;
  for (let j = 0; j < i; j++) if (hue(rows[j]!.leaf) === h) n++;
  return n === 0 ? `var(--c-${h})` : `color-mix(in oklab, var(--c-${h}) ${Math.max(40, 100 - 20 * n)}%, var(--panel))`;
}
