// Elements are made here and nowhere else. Text becomes text nodes, so that data cannot be markup.

export type Child = Node | string | number | null | undefined | false | Child[];
type Props = Record<string, string | number | boolean | undefined | ((e: never) => void)>;

// h makes an element. A property that is a function listens; "class" and the like are attributes.
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props | null = null, ...children: Child[]): HTMLElementTagNameMap[K] {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") e.addEventListener(name, value as EventListener);
    else e.setAttribute(name, value === true ? "" : flat(String(value)));
  }
  append(e, children);
  return e;
}

export function append(to: Node, children: Child[]): void {
  for (const c of children) {
    if (Array.isArray(c)) append(to, c);
    else if (c instanceof Node) to.appendChild(c);
    else if (c !== null && c !== undefined && c !== false) marked(to, String(c));
  }
}

const marks = /\uf8f0([^\uf8f0\uf8f1]*)\uf8f1/;

// marked adds text. Escapes that Go wrote stand between two private characters, and look unlike a
// backslash that was in the name.
function marked(to: Node, s: string): void {
  const parts = s.split(marks);
  parts.forEach((part, i) => {
    if (i % 2 === 0) {
      if (part) to.appendChild(document.createTextNode(part));
      return;
    }
    const e = document.createElement("span");
    e.className = "escape";
    e.title = "a character that cannot be shown";
    e.textContent = part;
    to.appendChild(e);
  });
}

// flat shows marks where there can be no element: in attributes and on a canvas.
export function flat(s: string): string {
  return s.replaceAll("\uf8f0", "‹").replaceAll("\uf8f1", "›");
}

// section is one part of the page, with its place in the table of contents.
export function section(id: string, title: string, lead: Child, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": id + "-title" }, h("h2", { id: id + "-title" }, title), lead ? h("p", { class: "lead" }, lead) : null, children);
}

// label is text in which a long symbol may break after dots and slashes.
export function symbol(s: string): Child[] {
  return s.split(/(?<=[./(,])/).flatMap((part, i) => (i === 0 ? [part] : [h("wbr"), part]));
}

// chip is a small field of a colour; the value is one of ours, never of the data.
export function chip(background: string): HTMLElement {
  const e = h("span", { class: "chip", "aria-hidden": "true" });
  e.style.background = background;
  return e;
}

// keys is a list of keys, which stays on one line.
export function keys(s: string): HTMLElement {
  return h("span", { class: "keys" }, s);
}
