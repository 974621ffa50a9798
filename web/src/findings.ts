// The answer: the verdict, and each finding with its proof and what to do.

import { Child, h, section, symbol } from "./dom";
import type { Evidence, Finding, Model, Text } from "./model";
import { count, duration } from "./units";

export function head(m: Model): HTMLElement {
  return h("header", null,
    h("h1", null, "whystall: ", m.facts.find((f) => f.name === "service")?.value ?? m.facts.find((f) => f.name === "file")?.value.replace(/^.*\//, "") ?? m.title),
    h("dl", { class: "facts" }, m.facts.filter((f) => f.name !== "service").map((f) => h("div", null, h("dt", null, f.name), h("dd", null, f.value)))));
}

export function verdict(m: Model): HTMLElement {
  const v = m.verdict;
  return h("section", { id: "verdict", class: "verdict " + v.kind, "aria-labelledby": "verdict-title" },
    m.alerts.map((a) => h("div", { class: "alert", role: "note" }, h("strong", null, a.title), " ", a.text)),
    h("h2", { id: "verdict-title" }, v.title),
    v.text.map((s) => h("p", null, s)),
    h("ol", { class: "answers" }, m.findings.filter((f) => f.number > 0).map((f) =>
      h("li", null, h("a", { href: "#finding-" + f.number }, f.cause), " ", f.amount ? f.amount + ", " : "", badge(f), h("br"), f.summary,
        f.remedy[0] ? [h("br"), h("span", { class: "dim" }, "What to do: "), f.remedy[0]] : null))));
}

function badge(f: Finding): HTMLElement {
  return h("span", { class: "badge " + f.confidence, title: f.sure }, f.confidence);
}

export function findings(m: Model): HTMLElement | null {
  if (m.findings.length === 0) return null;
  return section("findings", "Causes, with proof and remedy", "", m.findings.map(finding));
}

function finding(f: Finding): HTMLElement {
  const root = f.number > 0;
  const body: Child[] = [
    f.amount ? h("p", { class: "amount" }, meter(f.share), " ", f.amount) : null,
    h("p", null, f.summary),
    f.remedy.length > 0 && [h("h4", null, "What to do"), h("ul", { class: "remedy" }, f.remedy.map((r) => h("li", null, r)))],
    f.verify && [h("h4", null, "How to verify"), command(f.verify)],
    h("h4", null, "How sure"),
    h("p", null, badge(f), " ", f.sure, "."),
    f.evidence.length > 0 && [h("h4", null, "Proof"), proof(f.evidence.slice(0, open))],
    f.evidence.length > open && h("details", null, h("summary", null, `${f.evidence.length - open} more`), proof(f.evidence.slice(open))),
  ];
  const title = h("h3", null, root ? f.number + ". " : "", h("span", { class: "cause" }, f.cause), " ", h("span", { class: "what" }, f.title));
  if (root) return h("article", { class: "finding", id: "finding-" + f.number }, title, body);
  return h("article", { class: "finding mechanism" }, title, h("p", { class: "because" }, "It shows this way because of ", h("strong", null, f.becauseOf), "."), body);
}

// open is how many lines of proof are not folded.
const open = 3;

function proof(l: Evidence[]): HTMLElement {
  return h("ul", { class: "evidence" }, l.map((e) => h("li", null, e.text, e.source ? h("span", { class: "source" }, e.source) : null)));
}

// meter is a bar of a share of the slow requests' time.
function meter(share: number): HTMLElement {
  const e = h("span");
  e.style.width = 100 * Math.min(1, Math.max(0, share)) + "%";
  return h("span", { class: "meter", "aria-hidden": "true" }, e);
}

// command is what a person may copy.
function command(text: string): HTMLElement {
  return h("div", { class: "command" }, h("code", { tabindex: 0 }, text));
}

export function requests(m: Model): HTMLElement | null {
  const q = m.requests;
  if (q.count === 0) return null;
  return section("requests", "Requests", count(q.count) + " requests; slow: " + q.select + ".",
    h("div", { class: "scroll" }, h("table", null,
      h("thead", null, h("tr", null, ["entry", "count", "p50", "p99", "max", "slow"].map((s, i) => h("th", { scope: "col", class: i ? "n" : "" }, s)))),
      h("tbody", null, q.groups.map((g) => h("tr", null,
        h("th", { scope: "row" }, symbol(g.entry), g.kind ? h("span", { class: "dim" }, " " + g.kind) : null, g.doubt ? h("div", { class: "dim" }, g.doubt) : null),
        h("td", { class: "n" }, count(g.count)), h("td", { class: "n" }, duration(g.p50)), h("td", { class: "n" }, duration(g.p99)), h("td", { class: "n" }, duration(g.max)), h("td", { class: "n" }, count(g.slow))))))),
    q.leftOut ? h("p", { class: "dim" }, "Not counted: " + q.leftOut + ".") : null);
}

// attached is what hung on the ticket, part by part, and what would decide.
export function attached(m: Model): HTMLElement | null {
  const a = m.attached;
  if (!a) return null;
  return section("attached", "What was attached", "", a.parts.map((p) => h("article", { class: "finding" },
    h("h3", null, p.title, " ", h("span", { class: "what" }, symbol(p.place), ": ", p.state)),
    h("ul", { class: "evidence" }, p.figures.map((s) => h("li", null, s))),
    p.means ? h("p", null, p.means) : null,
    p.not ? h("p", null, h("strong", null, "It does not say: "), p.not) : null,
    p.flaws.length > 0 ? h("p", { class: "dim" }, "Not read: ", p.flaws.join("; "), ".") : null)),
    a.notes.map((s) => h("p", null, s)),
    a.unknown.length > 0 ? [h("h4", null, "Of no kind that is known"), h("ul", null, a.unknown.map((s) => h("li", null, s)))] : null,
    a.next.length > 0 ? [h("h4", null, "What would decide"), a.next.map((t) => [command(t.title), h("p", { class: "dim" }, t.text)])] : null);
}

// about is what stands at the end: what was ruled out, what was not seen, what it cost.
export function about(m: Model): HTMLElement {
  const c = m.cost;
  const [first, ...stages] = c.stages;
  return section("about", "What else was looked at", "",
    fold("Ruled out", m.ruledOut.length, list(m.ruledOut)),
    fold("Not checked", m.notChecked.length, list(grouped(m.notChecked))),
    fold("What was looked at", m.looked.length, list(m.looked)),
    fold("What could not be seen", m.unseen.length, h("ul", null, m.unseen.map((s) => h("li", null, s)))),
    fold("What the recording lacks", m.lost.length, h("ul", null, m.lost.map((s) => h("li", null, s)))),
    fold("What the recording cost the service", c.service || c.eased.length ? 1 : 0, [
      c.service ? h("p", null, c.service) : null,
      first ? h("div", { class: "scroll" }, h("table", null,
        h("thead", null, h("tr", null, first.map((s, i) => h("th", { scope: "col", class: i ? "n" : "" }, s)))),
        h("tbody", null, stages.map((row) => h("tr", null, row.map((s, i) => (i ? h("td", { class: "n" }, s) : h("th", { scope: "row" }, s)))))))) : null,
      c.eased.length ? h("ul", null, c.eased.map((s) => h("li", null, s))) : null,
    ], false),
    c.own ? fold("What whystall itself took", 1, h("p", null, c.own), false) : null);
}

function fold(title: string, n: number, body: Child, counted = true): HTMLElement | null {
  if (n === 0) return null;
  return h("details", null, h("summary", null, title + (counted ? " (" + n + ")" : "")), body);
}

function list(ts: Text[]): HTMLElement {
  return h("dl", { class: "causes" }, ts.map((t) => h("div", null, h("dt", null, t.title), h("dd", null, t.text))));
}

// grouped joins the names of what lacks the same.
function grouped(ts: Text[]): Text[] {
  const by = new Map<string, string[]>();
  for (const t of ts) by.set(t.text, [...(by.get(t.text) ?? []), t.title]);
  return [...by].map(([text, titles]) => ({ title: titles.join(", "), text }));
}
