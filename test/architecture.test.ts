import { posix } from "node:path";
import t from "tap";
import { readSources } from "./support/read-sources.js";

/**
 * What each folder of src may import, besides {@link EVERYWHERE}: `errors ← json ← model ← zarr ← codec ← stores ← formats ← open ← join`, then the
 * folders that answer requests. Modules that lie in src itself are named without their ending.
 */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  collections: [],
  "event-loop": [],
  observe: [],
  json: [],
  model: ["json"],
  cf: ["json"],
  colour: [],
  zarr: ["cf", "colour", "json", "model"],
  codec: ["cf", "colour", "json", "model", "zarr"],
  stores: ["codec", "json", "observe", "zarr"],
  "zarr-store": ["codec", "json", "model", "stores", "zarr"],
  formats: ["codec", "json", "model", "stores", "zarr", "zarr-store"],
  open: ["formats", "json", "model", "stores", "zarr", "zarr-store"],
  find: ["json", "stores", "zarr", "zarr-store"],
  join: ["cf", "codec", "find", "formats", "json", "model", "open", "stores", "zarr", "zarr-store"],
  config: ["find", "join", "json", "model", "observe", "stores", "zarr"],
  cache: ["observe"],
  pool: ["codec", "formats", "model", "observe", "open", "stores", "zarr"],
  dataset: [
    "cf",
    "codec",
    "config",
    "find",
    "json",
    "model",
    "observe",
    "open",
    "stores",
    "zarr",
    "zarr-store",
  ],
  http: ["observe"],
  chunk: ["cache", "codec", "dataset", "http", "model", "open", "pool", "stores", "zarr"],
  usage: [],
  pages: ["cf", "codec", "colour", "dataset", "http", "json", "model", "pool", "usage", "zarr"],
  plugins: ["cf", "chunk", "colour", "config", "dataset", "http", "json", "model", "observe", "pages"],
  openapi: ["dataset", "http", "observe", "pages", "plugins"],
  server: [
    "cache",
    "chunk",
    "codec",
    "config",
    "dataset",
    "find",
    "formats",
    "http",
    "join",
    "observe",
    "open",
    "openapi",
    "pages",
    "plugins",
    "pool",
    "stores",
    "zarr",
  ],
  processes: ["config", "dataset", "http", "observe", "server"],
  library: ["config", "dataset", "observe", "plugins", "server", "stores", "zarr"],
  warm: ["cache", "cf", "chunk", "codec", "dataset", "model", "pages", "pool", "zarr"],
  cli: [
    "config",
    "dataset",
    "join",
    "json",
    "model",
    "observe",
    "open",
    "pool",
    "processes",
    "server",
    "stores",
    "warm",
    "zarr",
  ],
  // The public API, listed by hand: re-exports from wherever it is.
  index: [
    "cf",
    "chunk",
    "config",
    "dataset",
    "http",
    "json",
    "library",
    "model",
    "observe",
    "pages",
    "plugins",
    "stores",
    "zarr",
  ],
  // Runs in browsers: what it imports knows nothing of Node.js.
  explore: ["cf", "codec", "colour", "json", "model", "usage"],
  main: ["cli"],
  zpublish: ["main"],
  workers: ["codec", "pool", "stores"],
};

/** Modules without knowledge of anything else here. */
const EVERYWHERE = new Set(["errors", "collections", "event-loop"]);

const MAX_LINES = 600;

const files = readSources(["src", "workers"], /(?<!\.d)\.c?tsx?$/);
const imports = new Map([...files].map(([path, text]) => [path, importsOf(path, text)]));

t.test("imports between folders run one way", async (t) => {
  const wrong = new Set<string>();
  for (const [path, targets] of imports) {
    const from = folderOf(path);
    const allowed = MAY_IMPORT[from] ?? (EVERYWHERE.has(from) ? [] : undefined);
    if (allowed === undefined) wrong.add(`${from} has no row in MAY_IMPORT`);
    for (const target of targets) {
      const to = folderOf(target);
      if (to === from || EVERYWHERE.has(to) || allowed?.includes(to)) continue;
      wrong.add(`${from} may not import ${to}: ${path} imports ${target}`);
    }
  }
  t.same([...wrong], []);
});

t.test("no folders and no files import each other in a circle", async (t) => {
  const folders = new Map<string, Set<string>>();
  for (const [path, targets] of imports) {
    const from = folderOf(path);
    const found = folders.get(from) ?? new Set();
    folders.set(from, found);
    for (const target of targets) if (folderOf(target) !== from) found.add(folderOf(target));
  }
  t.same(circlesOf(folders), []);
  t.same(
    circlesOf(imports).map((circle) => circle.join(" ")),
    [],
  );
});

t.test(`no file has more than ${MAX_LINES} lines`, async (t) => {
  const long = [...files].filter(([, text]) => linesOf(text) > MAX_LINES);
  t.same(
    long.map(([path]) => path),
    [],
  );
});

t.test("every export has a docstring", async (t) => {
  const declaration =
    /^export (?:declare |abstract |async )*(?:function\*?|const|let|class|interface|type|enum) (\w+)/;
  const undocumented: string[] = [];
  for (const [path, text] of files) {
    // Decorators of AssemblyScript stand between both.
    const lines = text.replace(/^\/\/ @ts-ignore: decorator\n@inline\n/gm, "").split("\n");
    lines.forEach((line, index) => {
      const name = declaration.exec(line)?.[1];
      if (name !== undefined && !lines[index - 1]?.endsWith("*/")) undocumented.push(`${path}: ${name}`);
    });
  }
  t.same(undocumented, []);
});

/** `src/zarr/v3/parse-v3.ts` is in `zarr`, `src/errors.ts` in `errors`, `workers/make-chunk.ts` in `workers`. */
function folderOf(path: string): string {
  const [top = "", name = ""] = path.split("/");
  return top === "src" ? name.replace(/\.c?tsx?$/, "") : top;
}

/** Paths that a file imports or exports from, types included. */
function importsOf(path: string, text: string): Set<string> {
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "");
  const specifiers = [...code.matchAll(/\b(?:from|import)\s*\(?\s*"(\.[^"]+)"/g)].map(
    (match) => match[1] as string,
  );
  const targets = specifiers.map((specifier) =>
    posix.join(posix.dirname(path), specifier).replace(/js$/, "ts"),
  );
  // AssemblyScript leaves the ending out.
  return new Set(
    targets
      .map((target) => [target, `${target}x`, `${target}.ts`].find((path) => files.has(path)) ?? target)
      .filter((target) => files.has(target)),
  );
}

/** Groups of nodes that reach each other, each sorted. */
function circlesOf(edges: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const reachedFrom = new Map([...edges.keys()].map((node) => [node, reach(edges, node)]));
  const circles = new Map<string, string[]>();
  for (const [node, reached] of reachedFrom) {
    if (!reached.has(node)) continue;
    const circle = [...reached].filter((other) => reachedFrom.get(other)?.has(node)).sort();
    circles.set(circle.join(), circle);
  }
  return [...circles.values()];
}

function reach(edges: ReadonlyMap<string, ReadonlySet<string>>, start: string): Set<string> {
  const reached = new Set<string>();
  const open = [start];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    for (const next of edges.get(node) ?? []) {
      if (reached.has(next)) continue;
      reached.add(next);
      open.push(next);
    }
  }
  return reached;
}

function linesOf(text: string): number {
  return text.split("\n").length - 1;
}
