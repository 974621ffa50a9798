// The data of the page, as internal/report/webpage/model.go writes them. Moments and durations are
// ns, moments from the start of the recording.

export interface Fact { name: string; value: string }
export interface Text { title: string; text: string }
export interface Evidence { text: string; source: string }

export interface Finding {
  number: number;
  cause: string;
  title: string;
  amount: string;
  share: number;
  confidence: string;
  sure: string;
  becauseOf: string;
  summary: string;
  evidence: Evidence[];
  remedy: string[];
  verify: string;
}

export interface Group { entry: string; kind: string; doubt: string; count: number; p50: number; p99: number; max: number; slow: number }

export interface Row {
  leaf: string;
  label: string;
  share: string;
  slow: string;
  usual: string;
  slowNs: number;
  usualNs: number;
  largest: number;
  more: Fact[];
}

export interface Ledger { rows: Row[]; unit: string; slow: number; usual: number; slowNs: number; usualNs: number; total: [string, string]; note: string }

// leaf is known where the part has no row of its own.
export interface Part { row: number; label: string; ns: number; leaf?: string }
export interface Request { at: number; wall: number; when: string; name: string; entry: string; g: number; why: string; parts: Part[] }

export interface Latency {
  dots: { at: number[]; ns: number[]; actor: number[]; entry: number[]; largest: number[]; slow: number[] };
  whole: boolean;
  notShown: number;
  entries: string[];
  largest: { row: number; leaf: string; label: string }[];
  density: { begin: number; width: number; cells: [number, number, number, number][] };
  bands: { kind: string; begin: number; end: number; detail: string; ours: boolean }[];
  levels: { name: string; points: [number, number, number][] }[];
  length: number;
}

export interface Frame { f: string; at: string }
export interface Lane { kind: string; id: number; name: string; spans: number[][] }
export interface Story {
  request: number; // of the slowest; -1: it is that of a dot
  dot: number;
  length: number;
  names: string[];
  leaves: string[];
  stacks: number[][];
  chain: number[][];
  lanes: Lane[];
  cut: boolean;
}

// Sketches are slow requests in short. The last five lists have one field for each.
export interface Sketches {
  accounts: { row: number; leaf: string; label: string }[];
  lanes: Lane[];
  names: string[];
  leaves: string[];
  stacks: number[][];
  titles: string[];
  left: number;
  dots: number[];
  title: number[];
  when: string[];
  parts: number[][];
  chains: number[][][];
}

export interface Amount { name: string; leaf: string; ns: number }
export interface Lock { name: string; slowNs: number; waits: number; waitNs: number; maxQueue: number; holders: Amount[]; doing: Amount[]; stack: Frame[] }
export interface Curve { name: string; bytes: boolean; points: [number, number][] }
export interface Use { title: string; text: string; parts: { name: string; share: number; amount: string }[] }

// unpack turns what a file keeps short into begin, end and all figures of each stretch.
export function unpack(l: number[][], width: number): number[][] {
  let at = 0;
  return l.map((x) => {
    const begin = at + (x[0] ?? 0);
    at = begin + (x[1] ?? 0);
    return Array.from({ length: width }, (_, i) => (i === 0 ? begin : i === 1 ? at : (x[i] ?? 0)));
  });
}

export interface Model {
  title: string;
  facts: Fact[];
  alerts: Text[];
  verdict: { kind: "found" | "nothing" | "blind"; title: string; text: string[] };
  findings: Finding[];
  requests: { count: number; select: string; groups: Group[]; leftOut: string };
  ledger: Ledger | null;
  latency: Latency | null;
  slowest: Request[];
  stories: Story[];
  sketches: Sketches;
  frames: Frame[];
  pauses: { which: string; list: { words: string; spent: Amount[]; hops: string[] }[]; fair: string };
  waits: { parent: number[]; name: string[]; leaf: string[]; ns: number[] };
  locks: Lock[];
  curves: Curve[];
  uses: Use[];
  threads: { text: string; list: { tid: number; name: string; on: number; queued: number; throttled: number; blocked: number }[] };
  ruledOut: Text[];
  notChecked: Text[];
  looked: Text[];
  unseen: string[];
  lost: string[];
  cost: { service: string; stages: string[][]; eased: string[]; own: string };
  attached: { parts: { place: string; title: string; state: string; figures: string[]; means: string; not: string; flaws: string[] }[]; notes: string[]; unknown: string[]; next: Text[] } | null;
}
