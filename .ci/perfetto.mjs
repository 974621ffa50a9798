// perfetto.mjs FOLDER FILE...: loads each FILE into Perfetto's own trace processor and fails where that
// reports an error or lost data, or where a slice has no end or an arrow does not go from one slice
// to a later one. FOLDER has the trace processor as Perfetto's UI ships it: its engine, which starts
// it as a worker of a browser, and the classes that talk to it.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { runInThisContext } from "node:vm";

const [folder, ...files] = process.argv.slice(2);

// What the engine looks for in a browser.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: pathToFileURL(folder + "/").href };
globalThis.XMLHttpRequest = class {
  open(_, url) {
    this.file = join(folder, basename(url));
  }
  send() {
    this.response = new Uint8Array(readFileSync(this.file)).buffer;
  }
};

const { EngineBase } = await import(pathToFileURL(join(folder, "engine.mjs")).href);

class Engine extends EngineBase {
  constructor(port) {
    super();
    this.port = port;
    port.onmessage = (m) => this.onRpcResponseBytes(m.data);
  }
  rpcSendRequestBytes(data) {
    this.port.postMessage(data);
  }
}

const questions = {
  "errors of the trace processor": "select coalesce(group_concat(name || ' ' || value, ', '), '') as x from stats where severity in ('error', 'data_loss') and value > 0",
  "slices without an end": "select iif(count(*) = 0, '', count(*)) as x from slice where dur < 0",
  "arrows that go nowhere": "select iif(count(*) = 0, '', count(*)) as x from flow f left join slice a on a.id = f.slice_out left join slice b on b.id = f.slice_in where a.id is null or b.id is null or b.ts < a.ts",
  "no slice": "select iif(count(*) > 0, '', 'none') as x from slice",
};

async function check(file) {
  runInThisContext(readFileSync(join(folder, "engine_bundle.node.js"), "utf8")); // a worker of its own
  const { port1, port2 } = new MessageChannel();
  globalThis.onmessage({ data: port1 });
  const engine = new Engine(port2), bytes = new Uint8Array(readFileSync(file));
  for (let at = 0; at < bytes.length; at += 1 << 20) await engine.parse(bytes.slice(at, at + (1 << 20)));
  await engine.notifyEof();
  let bad = 0;
  for (const [name, query] of Object.entries(questions)) {
    const x = (await engine.query(query)).iter({}).get("x");
    if (String(x) === "") continue;
    console.error(`${file}: ${name}: ${x}`);
    bad++;
  }
  const n = (await engine.query("select (select count(*) from slice) || ' slices, ' || (select count(*) from flow) || ' arrows' as x")).iter({}).get("x");
  console.log(`${file}: ${n}`);
  return bad;
}

let bad = 0;
for (const f of files) bad += await check(f);
process.exit(bad > 0 ? 1 : 0);
