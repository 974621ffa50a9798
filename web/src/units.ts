// Numbers as the text report prints them: three figures and a unit.

export function duration(ns: number): string {
  const f = Math.abs(ns);
  const sign = ns < 0 ? "-" : "";
  if (f >= 999.5e6) return sign + figures(f / 1e9) + " s";
  if (f >= 999.5e3) return sign + figures(f / 1e6) + " ms";
  if (f >= 999.5) return sign + figures(f / 1e3) + " us";
  return sign + Math.round(f) + " ns";
}

export function bytes(n: number): string {
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]] as const) {
    if (Math.abs(n) >= size) return figures(n / size) + " " + unit;
  }
  return Math.round(n) + " B";
}

function figures(f: number): string {
  if (f >= 99.95) return f.toFixed(0);
  if (f >= 9.995) return f.toFixed(1);
  return f.toFixed(2);
}

export function count(n: number): string {
  return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? ((100 * part) / whole).toFixed(1) + " %" : "0.0 %";
}
