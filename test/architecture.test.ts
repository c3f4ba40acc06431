import { posix } from "node:path";
import t from "tap";
import ts from "typescript";
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
  cf: ["json", "model"],
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
  values: ["cf", "codec", "dataset", "json", "model", "open", "pool", "zarr"],
  export: ["cf", "codec", "dataset", "event-loop", "http", "json", "model", "values", "zarr"],
  chunk: ["cache", "codec", "dataset", "http", "model", "open", "pool", "stores", "zarr"],
  references: ["chunk", "codec", "dataset", "json", "model", "open", "zarr"],
  maps: ["cache", "cf", "chunk", "codec", "colour", "dataset", "http", "observe", "open", "values", "zarr"],
  usage: [],
  pages: ["cf", "codec", "colour", "dataset", "http", "json", "model", "pool", "usage", "values", "zarr"],
  plugins: [
    "cf",
    "chunk",
    "colour",
    "config",
    "dataset",
    "http",
    "json",
    "maps",
    "model",
    "observe",
    "pages",
    "references",
    "values",
  ],
  catalog: [
    "cf",
    "config",
    "dataset",
    "find",
    "formats",
    "join",
    "json",
    "observe",
    "pages",
    "plugins",
    "values",
  ],
  openapi: ["catalog", "dataset", "http", "observe", "pages", "plugins"],
  server: [
    "cache",
    "catalog",
    "chunk",
    "codec",
    "config",
    "dataset",
    "find",
    "formats",
    "http",
    "join",
    "maps",
    "observe",
    "open",
    "openapi",
    "pages",
    "plugins",
    "pool",
    "stores",
    "values",
    "zarr",
  ],
  processes: ["config", "dataset", "http", "observe", "server"],
  library: ["config", "dataset", "observe", "plugins", "server", "stores", "zarr"],
  warm: ["cache", "cf", "chunk", "codec", "dataset", "model", "pages", "pool", "values", "zarr"],
  cli: [
    "config",
    "dataset",
    "http",
    "join",
    "json",
    "model",
    "observe",
    "open",
    "pool",
    "processes",
    "references",
    "server",
    "stores",
    "warm",
    "zarr",
  ],
  // The public API, listed by hand: re-exports from wherever it is.
  "plugin-api": [
    "cf",
    "chunk",
    "codec",
    "colour",
    "config",
    "dataset",
    "export",
    "http",
    "json",
    "maps",
    "model",
    "observe",
    "openapi",
    "pages",
    "plugins",
    "stores",
    "usage",
    "values",
    "zarr",
  ],
  index: ["dataset", "library", "plugin-api"],
  // Runs in browsers: what it imports knows nothing of Node.js.
  explore: ["cf", "codec", "colour", "json", "model", "usage"],
  main: ["cli"],
  zpublish: ["main"],
  workers: ["codec", "pool", "stores"],
};

/** Modules without knowledge of anything else here. */
const EVERYWHERE = new Set(["errors", "collections", "event-loop"]);

/** Built-in plugins that import more than other people's can, and why. */
const FACES = new Map([
  ["explore-plugin", "has the page and the files of the explorer, which are built with the package"],
  ["file-plugin", "serves stored bytes with the memory and the bounds of those of chunks"],
  ["references-plugin", "says where the core finds stored chunks"],
  [
    "thumbnail-plugin",
    "plans pictures as chunks, so that they have the cache, ETag and single flight of chunks",
  ],
  ["zarr-plugin", "serves the documents and chunks that the core plans: its face in Zarr v2"],
  ["zarr3-plugin", "the same in Zarr v3"],
]);

const MAX_LINES = 600;
/** A shorter file has more than one importer, or a reason to be one. */
const MIN_LINES = 80;
const MAX_FILES = 15;
const MAX_FUNCTION_LINES = 60;
/** Of a `create…` or `open…`, whose closures share its state. */
const MAX_FACTORY_LINES = 120;

/** Short files with one importer, and why they are files. */
const SHORT = new Map([
  [/^src\/codec\/([a-z]+\/)*[a-z0-9-]+\.ts$/, "one file per codec, and their table"],
  [/^src\/explore\/(main\.tsx|explore-worker\.ts)$/, "entry points of the explorer"],
  [/^src\/(index|main|plugin-api)\.ts$/, "entry points of library and program"],
  [/^src\/zpublish\.cts$/, "the program of the package"],
  [/^src\/pages\/(docs|explore)-page\.ts$/, "one page to a file"],
  [/^src\/plugins\/references-plugin\.ts$/, "one file per plugin, loaded on demand"],
  [/^src\/plugins\/service-info\/[a-z-]+\.ts$/, "one file per plugin, loaded on demand"],
  [/^src\/plugins\/file-plugin\.ts$/, "one file per plugin, loaded on demand"],
  [/^src\/export\/[a-z0-9-]+-writer\.ts$/, "one file per format"],
  [/^src\/plugins\/opendap\/ascii-text\.ts$/, "runs in the pool"],
  [/^src\/maps\/draw-map\.ts$/, "runs in the pool"],
  [/^workers\/make-chunk\.ts$/, "entry point of workers"],
]);

const files = readSources(["src", "workers"], /(?<!\.d)\.c?tsx?$/);
const imports = new Map([...files].map(([path, text]) => [path, importsOf(path, text)]));

/** Declarations that a file exports by their own name. */
const EXPORT =
  /^export (?:declare |abstract |async )*(?:function\*?|const|let|class|interface|type|enum) (\w+)/gm;

t.test("imports between folders run one way", async (t) => {
  const wrong = new Set<string>();
  for (const [path, targets] of imports) {
    const from = folderOf(path);
    if (isPlugin(from)) continue;
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

t.test(
  "built-in plugins import the public API and their own folder only, but for faces of the core",
  async (t) => {
    const wrong: string[] = [];
    for (const [path, targets] of imports) {
      if (!isPlugin(folderOf(path))) continue;
      for (const target of targets)
        if (folderOf(target) !== folderOf(path) && folderOf(target) !== "plugin-api")
          wrong.push(`${path} imports ${target}`);
    }
    t.same(wrong, []);
    const loaded = (files.get("src/plugins/load-plugins.ts") ?? "").matchAll(
      /import\("\.\/([^/"]+)(\/[^"]+)?\.js"\)/g,
    );
    const besides = [...loaded].filter(([, , inFolder]) => inFolder === undefined).map(([, name]) => name);
    t.same(besides, [...FACES.keys()], "each is in a folder of its own, or has a reason");
  },
);

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

t.test(`a file of fewer than ${MIN_LINES} lines has more than one importer, or a reason`, async (t) => {
  const importers = new Map<string, number>();
  for (const targets of imports.values()) {
    for (const target of targets) importers.set(target, (importers.get(target) ?? 0) + 1);
  }
  const short = [...files].filter(
    ([path, text]) => linesOf(text) < MIN_LINES && (importers.get(path) ?? 0) <= 1 && !hasReason(SHORT, path),
  );
  t.same(
    short.map(([path]) => path),
    [],
  );
});

t.test(`no folder has more than ${MAX_FILES} files`, async (t) => {
  const counts = new Map<string, number>();
  for (const path of files.keys()) {
    const folder = posix.dirname(path);
    counts.set(folder, (counts.get(folder) ?? 0) + 1);
  }
  t.same(
    [...counts].filter(([, count]) => count > MAX_FILES),
    [],
  );
});

t.test(
  `no function has more than ${MAX_FUNCTION_LINES} lines, or ${MAX_FACTORY_LINES} if its closures share its state`,
  async (t) => {
    const long = [...files].flatMap(([path, text]) =>
      path.includes("/assembly/") ? [] : longFunctions(path, text),
    );
    t.same(long, []);
  },
);

t.test("no name is exported twice", async (t) => {
  const exporters = new Map<string, string[]>();
  for (const [path, text] of files) {
    if (path.includes("/assembly/")) continue;
    for (const [, name = ""] of text.matchAll(EXPORT)) {
      exporters.set(name, [...(exporters.get(name) ?? []), path]);
    }
  }
  t.same(
    [...exporters].filter(([, paths]) => paths.length > 1),
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

/** `path: name: lines` of functions that are too long. */
function longFunctions(path: string, text: string): string[] {
  const kind = path.endsWith("x") ? ts.ScriptKind.TSX : ts.ScriptKind.TS;
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true, kind);
  const lineOf = (position: number) => source.getLineAndCharacterOfPosition(position).line;
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      const named = ts.isVariableDeclaration(node.parent) ? node.parent.name : node.name;
      const name = named?.getText(source) ?? "anonymous";
      const lines = lineOf(node.end) - lineOf(node.getStart(source)) + 1;
      const limit = /^(?:create|open)[A-Z]/.test(name) ? MAX_FACTORY_LINES : MAX_FUNCTION_LINES;
      if (lines > limit) found.push(`${path}: ${name}: ${lines}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

/** `src/zarr/v3/parse-v3.ts` is in `zarr`, `src/errors.ts` in `errors`, `workers/make-chunk.ts` in `workers`. */
function folderOf(path: string): string {
  const [top = "", name = "", inner = "", ...rest] = path.split("/");
  if (name === "plugins" && rest.length > 0) return `plugins/${inner}`;
  return top === "src" ? name.replace(/\.c?tsx?$/, "") : top;
}

/** Whether a folder is a plugin that other people could have written. */
function isPlugin(folder: string): boolean {
  return folder.startsWith("plugins/");
}

/** Paths that a file imports or exports from, types included. */
function importsOf(path: string, text: string): Set<string> {
  // Built-in plugins are loaded by name, like those of other people.
  const plugin = path === "src/plugins/load-plugins.ts" ? /import\("\.\/[a-z-]+\/.*?"\)/g : /$^/;
  const code = text.replace(/\/\*[\s\S]*?\*\//g, "").replace(plugin, "");
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

function hasReason(reasons: ReadonlyMap<RegExp, string>, path: string): boolean {
  return [...reasons.keys()].some((pattern) => pattern.test(path));
}
