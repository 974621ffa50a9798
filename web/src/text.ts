// Names that must fit into a picture.

import { flat } from "./dom";

// Widths by text, as all pictures have one font. Bounded: a page has few names.
const widths = new Map<string, number>();

function width(g: CanvasRenderingContext2D, s: string): number {
  let w = widths.get(s);
  if (w === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(s, (w = g.measureText(s).width));
  }
  return w;
}

// plain leaves out the directories of import paths: "net/http.(*conn).serve" is "http.(*conn).serve".
export function plain(s: string): string {
  return s.replace(/(^|[ :])[^ ()[\]]*\//g, "$1");
}

// fit shortens a name to the room: first its directories go, then its middle.
export function fit(g: CanvasRenderingContext2D, s: string, room: number): string {
  s = flat(s.length > 300 ? s.slice(0, 300) : s);
  if (width(g, s) <= room) return s;
  s = plain(s);
  const w = width(g, s);
  if (w <= room) return s;
  for (let most = Math.floor((s.length * room) / w); most >= least; most--) {
    const tail = Math.floor((most - 1) / 2), shorter = s.slice(0, most - 1 - tail) + "\u2026" + s.slice(-tail);
    if (width(g, shorter) <= room) return shorter;
  }
  return "";
}

// least is how many letters of a name still say something.
const least = 6;
