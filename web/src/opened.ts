// The slow requests that can be opened: the slowest, as Go lists them, then all others that have a
// dot, the longest first. Of some the joined timeline is kept, of the others what their time
// consists of and the chain of those they waited for.

import { type Model, type Request, type Story, unpack } from "./model";

export class Openable {
  readonly requests: Request[];
  private of = new Map<string, number>(); // by key
  private full = new Map<number, Story>();
  private short = new Map<number, number>(); // the place among the sketches

  constructor(private m: Model) {
    const k = m.sketches, d = m.latency?.dots;
    this.requests = m.slowest;
    this.requests.forEach((q, i) => this.of.set(key(q.at, q.wall, q.g), i));
    k.dots.forEach((dot, i) => {
      const q: Request = { at: d!.at[dot]!, wall: d!.ns[dot]!, g: d!.actor[dot]!, when: k.when[i]!, name: k.titles[k.title[i]!]!, entry: m.latency!.entries[d!.entry[dot]!] ?? "", why: "", parts: [] };
      for (let p = 0; p + 1 < k.parts[i]!.length; p += 2) {
        const a = k.accounts[k.parts[i]![p]!]!;
        q.parts.push({ row: a.row, label: a.label, leaf: a.leaf, ns: k.parts[i]![p + 1]! });
      }
      const listed = this.ofDot(dot);
      this.short.set(listed >= 0 ? listed : this.requests.length, i);
      if (listed >= 0) return;
      this.of.set(key(q.at, q.wall, q.g), this.requests.length);
      this.requests.push(q);
    });
    for (const s of m.stories) {
      const i = s.request >= 0 ? s.request : this.ofDot(s.dot);
      if (i >= 0) this.full.set(i, s);
    }
  }

  // ofDot is the request of a dot, -1 if it cannot be opened.
  ofDot(dot: number): number {
    const d = this.m.latency?.dots;
    return d && d.slow[dot] ? this.of.get(key(d.at[dot]!, d.ns[dot]!, d.actor[dot]!)) ?? -1 : -1;
  }

  // isFull reports whether the joined timeline of a request is kept.
  isFull(request: number): boolean {
    return this.full.has(request);
  }
  get fulls(): number {
    return this.full.size;
  }
  has(request: number): boolean {
    return this.full.has(request) || this.short.has(request);
  }

  // story is what is shown of a request. Of one in short each actor of the chain has a lane with
  // the time that counts, and no other.
  story(request: number): Story | null {
    const s = this.full.get(request), i = this.short.get(request);
    if (s || i === undefined) return s ?? null;
    const k = this.m.sketches, chain = unpack(k.chains[i]!, 9), met: number[] = [];
    for (const c of chain) if (c[4]! >= 0 && !met.includes(c[4]!)) met.push(c[4]!);
    const g = this.requests[request]!.g;
    met.sort((a, b) => Number(k.lanes[b]!.id === g) - Number(k.lanes[a]!.id === g));
    const lanes = met.map((n) => ({ ...k.lanes[n]!, spans: chain.filter((c) => c[4] === n).map((c) => [c[0]!, c[1]!, c[2]!, c[6]!, 0, 0, c[7]!, c[8]!]) }));
    return { request, dot: -1, length: this.requests[request]!.wall, names: k.names, leaves: k.leaves, stacks: k.stacks, lanes, cut: false,
      chain: chain.map((c) => [...c.slice(0, 4), met.indexOf(c[4]!), ...c.slice(5)]) };
  }
}

function key(at: number, wall: number, g: number): string {
  return at + " " + wall + " " + g;
}
