// The page from its data, the answer first.

import "./style.css";
import { h } from "./dom";
import { about, attached, findings, head, requests, verdict } from "./findings";
import { ledger } from "./ledger";
import { latency } from "./latency";
import { type Model, unpack } from "./model";
import { flame } from "./flame";
import { curves, locks, pauses, threads, uses } from "./process";
import { Openable } from "./opened";
import { slowest } from "./slowest";
import { stories } from "./story";

const m = JSON.parse(document.getElementById("data")!.textContent!) as Model;
for (const s of m.stories) {
  s.chain = unpack(s.chain, 9);
  for (const l of s.lanes) l.spans = unpack(l.spans, 8);
}
const listed = m.slowest.length;
const open = new Openable(m);
const page = document.getElementById("page")!;
const sections = [verdict(m), findings(m), attached(m), about(m), ledger(m), latency(m, open), slowest(m, listed, open), stories(m, open), pauses(m), flame(m), locks(m), curves(m), uses(m), threads(m), requests(m)].filter((e) => e !== null);
const contents = h("nav", { "aria-label": "parts of the page" }, sections.filter((s) => s.id !== "verdict").map((s) => h("a", { href: "#" + s.id }, s.querySelector("h2")?.textContent ?? s.id)));
page.replaceChildren(head(m), contents, ...sections);

// A print has everything.
let opened: HTMLDetailsElement[] = [];
addEventListener("beforeprint", () => {
  opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
  for (const d of opened) d.open = true;
});
addEventListener("afterprint", () => {
  for (const d of opened) d.open = false;
});
