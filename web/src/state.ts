// What the reader chose: which account filters the page, and which request is open.

type Listener = () => void;

class State {
  row = -1; // of the ledger; -1: no filter
  open = -1; // index of the request that is shown
  private listeners: Listener[] = [];

  on(l: Listener): void {
    this.listeners.push(l);
  }
  filter(row: number): void {
    this.row = this.row === row ? -1 : row;
    this.tell();
  }
  // show opens a request, and brings its story into view if the reader asked for it elsewhere.
  show(request: number, look = false): void {
    this.open = request;
    if (look) document.getElementById("story")?.scrollIntoView({ block: "start" });
    this.tell();
  }
  private tell(): void {
    for (const l of this.listeners) l();
  }
}

export const state = new State();
