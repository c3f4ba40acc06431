import { realpathSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import t from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { ZpublishError } from "../../src/errors.js";

type Env = Record<string, string | undefined>;

const BUILT_IN = [
  "dataset_info",
  "discovery",
  "edr",
  "explore",
  "file",
  "module_version",
  "opendap",
  "plugin_info",
  "references",
  "select",
  "stac",
  "thredds",
  "thumbnail",
  "tiles",
  "wms",
  "zarr",
  "zarr3",
];
const without = (...names: readonly string[]) => BUILT_IN.filter((name) => !names.includes(name));

function problemsOf(run: () => unknown): string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "invalid-config") return error.message.split("\n");
    throw error;
  }
  return [];
}

t.test("defaults hold where nothing is said", async (t) => {
  const config = resolveConfig({ argv: [], env: { HOME: "/home/me" }, cwd: "/" });
  t.strictSame(config, {
    host: "127.0.0.1",
    port: 9000,
    workers: Math.max(1, availableParallelism() - 1),
    processes: 1,
    cache: { directory: "/home/me/.cache/zpublish", maxBytes: 10 * 1024 ** 3 },
    datasets: [],
    plugins: BUILT_IN.map((name) => ({ name })),
    rootPath: "",
    refreshSeconds: 5,
    corsOrigin: "*",
    cacheControl: "public, max-age=0, must-revalidate",
    logLevel: "info",
    skipInvalid: false,
    single: false,
    collections: [],
    title: "zpublish",
    limits: {
      maxConnections: 10_000,
      maxRequests: 16_384,
      maxPages: 8_192,
      maxResponseBytes: 2 ** 30,
      maxQueuedChunks: 16_384,
      maxHeaderBytes: 16 * 1024,
      maxUrlBytes: 8 * 1024,
      requestTimeoutMs: 150_000,
      stallTimeoutMs: 60_000,
      chunkTimeoutMs: 120_000,
      sourceTimeoutMs: 30_000,
      workerHeapBytes: 512 * 1024 ** 2,
      maxOpenDatasets: 1_000,
      maxChunkBytes: 2 ** 30,
      maxSelectionBytes: 2 ** 30,
    },
    drain: { delayMs: 0, timeoutMs: 30_000 },
    access: { trustedProxies: [], tls: null, tokenFile: null, jwt: null, signingKeyFile: null },
    observe: { metrics: true, admin: null, accessLogShare: 0, requestIdHeader: "x-request-id" },
  });
  t.equal(
    resolveConfig({ argv: [], env: { HOME: "/home/me", XDG_CACHE_HOME: "/xdg" }, cwd: "/" }).cache?.directory,
    "/xdg/zpublish",
  );
  t.equal(
    resolveConfig({ argv: [], env: { HOME: "/home/me", XDG_CACHE_HOME: "relative" }, cwd: "/" }).cache
      ?.directory,
    "/home/me/.cache/zpublish",
    "a relative XDG_CACHE_HOME is none",
  );
});

t.test("a flag wins over a variable, a variable over the file, the file over the default", async (t) => {
  const cwd = t.testdir({ "config.json": JSON.stringify({ port: 1, host: "file", refresh: 7, workers: 3 }) });
  const config = resolveConfig({
    argv: ["--config", "config.json", "--port", "3"],
    env: { ZPUBLISH_PORT: "2", ZPUBLISH_HOST: "variable", ZPUBLISH_LOG_LEVEL: "" },
    cwd,
  });
  t.equal(config.port, 3);
  t.equal(config.host, "variable");
  t.equal(config.refreshSeconds, 7);
  t.equal(config.workers, 3);
  t.equal(config.logLevel, "info", "an empty variable is none");
  t.equal(resolveConfig({ argv: [], env: { ZPUBLISH_CONFIG: "config.json" }, cwd }).port, 1);
});

t.test("a certificate is refused without its key, and a key without its certificate", async (t) => {
  const resolve = (...argv: string[]) => resolveConfig({ argv, env: {}, cwd: "/" });
  t.throws(() => resolve("--tls-cert", "a.pem"), /--tls-cert: expected --tls-key with it, received none/);
  t.throws(() => resolve("--tls-key", "a.pem"), /--tls-key: expected --tls-cert with it, received none/);
});

t.test("every single-valued option can be said in all three places", async (t) => {
  const said = {
    host: "::1",
    port: 0,
    workers: 2,
    processes: 3,
    cacheSize: "2GiB",
    rootPath: "a//b/",
    refresh: 0.5,
    corsOrigin: "https://example.org",
    cacheControl: "no-store",
    logLevel: "debug",
    skipInvalid: true,
    title: "Weather",
    maxConnections: 10,
    maxRequests: 11,
    maxPages: 12,
    maxResponseBytes: "13MiB",
    maxQueuedChunks: 14,
    maxHeaderSize: "15KiB",
    maxUrlLength: "16KiB",
    requestTimeout: 17.5,
    stallTimeout: 18,
    chunkTimeout: 19,
    sourceTimeout: 20,
    workerMemory: "64MiB",
    maxChunkSize: "22MiB",
    maxSelection: "21MiB",
    drainDelay: 23,
    drainTimeout: 0.5,
    trustedProxies: "10.0.0.0/8,::1, loopback",
    tlsCert: "/cert.pem",
    tlsKey: "/key.pem",
    tokenFile: "/tokens",
    adminPort: 0,
    adminHost: "0.0.0.0",
    accessLog: 0.25,
    requestIdHeader: "X-Trace",
  };
  const kebab = (key: string) => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const argv = Object.entries({ ...said, cacheDir: "/c" }).flatMap(([key, value]) =>
    value === true ? [`--${kebab(key)}`] : [`--${kebab(key)}`, String(value)],
  );
  const env = Object.fromEntries(
    Object.entries({ ...said, cacheDir: "/c" }).map(([key, value]) => [
      `ZPUBLISH_${kebab(key).replaceAll("-", "_").toUpperCase()}`,
      String(value),
    ]),
  );
  const cwd = t.testdir({ "config.json": JSON.stringify({ ...said, cacheDir: "/c" }) });
  const config = resolveConfig({ argv, env: {}, cwd });
  t.strictSame(resolveConfig({ argv: [], env, cwd }), config, "variables");
  t.strictSame(resolveConfig({ argv: ["--config", "config.json"], env: {}, cwd }), config, "file");
  t.match(config, {
    ...{ host: "::1", port: 0, rootPath: "/a/b", refreshSeconds: 0.5, skipInvalid: true, title: "Weather" },
    cache: { directory: "/c", maxBytes: 2 * 1024 ** 3 },
    limits: { maxRequests: 11, maxHeaderBytes: 15 * 1024, requestTimeoutMs: 17_500, stallTimeoutMs: 18_000 },
    drain: { delayMs: 23_000, timeoutMs: 500 },
    access: {
      trustedProxies: ["10.0.0.0/8", "::1", "127.0.0.0/8", "::1/128"],
      tls: { certFile: "/cert.pem", keyFile: "/key.pem" },
    },
    observe: { admin: { host: "0.0.0.0", port: 0 }, accessLogShare: 0.25, requestIdHeader: "x-trace" },
  });
});

t.test("the cache can be switched off in every place, and on again by a flag", async (t) => {
  const cwd = t.testdir({ "config.json": '{"cache": false}' });
  t.equal(resolveConfig({ argv: ["--no-cache"], env: {}, cwd }).cache, null);
  t.equal(resolveConfig({ argv: [], env: { ZPUBLISH_CACHE: "0" }, cwd }).cache, null);
  t.equal(resolveConfig({ argv: ["--config", "config.json"], env: {}, cwd }).cache, null);
  t.not(resolveConfig({ argv: ["--config", "config.json", "--cache"], env: {}, cwd }).cache, null);
  t.equal(
    resolveConfig({ argv: ["--no-skip-invalid"], env: { ZPUBLISH_SKIP_INVALID: "yes" }, cwd }).skipInvalid,
    false,
  );
});

t.test("paths are relative to the file that says them, or to the working directory", async (t) => {
  const cwd = t.testdir({
    etc: {
      "config.json": JSON.stringify({
        cacheDir: "cache",
        plugins: { mine: { module: "./mine.js" }, theirs: { module: "zpublish-theirs" } },
        datasets: { a: "data/a.zarr", b: "/abs/b.zarr", c: "s3://bucket/c.zarr" },
      }),
    },
  });
  const config = resolveConfig({ argv: ["--config", "etc/config.json", "data/d.zarr"], env: {}, cwd });
  t.equal(config.cache?.directory, join(cwd, "etc/cache"));
  t.strictSame(
    config.datasets.map(({ location }) => location),
    [join(cwd, "etc/data/a.zarr"), "/abs/b.zarr", "s3://bucket/c.zarr", join(cwd, "data/d.zarr")],
  );
  t.match(config.plugins.slice(BUILT_IN.length), [
    { name: "mine", module: join(cwd, "etc/mine.js") },
    { name: "theirs", module: "zpublish-theirs" },
  ]);
  t.equal(resolveConfig({ argv: ["--cache-dir", "c"], env: {}, cwd }).cache?.directory, join(cwd, "c"));
  t.equal(
    resolveConfig({ argv: [], env: { ZPUBLISH_CACHE_DIR: "v" }, cwd }).cache?.directory,
    join(cwd, "v"),
  );
});

t.test("the file says how a dataset is served", async (t) => {
  const cwd = t.testdir({
    "config.json": JSON.stringify({
      port: 9000,
      plugins: { zarr: true },
      datasets: {
        air: "data/air.zarr",
        big: {
          location: "data/big.zarr",
          cacheControl: "public, max-age=31536000, immutable",
          immutable: true,
          encoding: { compressor: { id: "zstd", level: 3 } },
          variables: {
            t2m: {
              chunks: { time: 1, y: 256, x: -1 },
              compressor: { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 },
              filters: null,
            },
            "/a//b/": { chunks: [1, 2], compressor: null, filters: [{ id: "shuffle", elementsize: 4 }] },
          },
        },
      },
    }),
  });
  const { datasets } = resolveConfig({ argv: ["--config", "config.json"], env: {}, cwd });
  t.strictSame(datasets, [
    { id: "air", location: join(cwd, "data/air.zarr"), immutable: false, encoding: {}, variables: {} },
    {
      id: "big",
      location: join(cwd, "data/big.zarr"),
      cacheControl: "public, max-age=31536000, immutable",
      immutable: true,
      encoding: { compressor: { id: "zstd", level: 3 } },
      variables: {
        t2m: {
          chunks: { time: 1, y: 256, x: -1 },
          compressor: { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 },
          filters: null,
        },
        "a/b": { chunks: [1, 2], compressor: null, filters: [{ id: "shuffle", elementsize: 4 }] },
      },
    },
  ]);
});

t.test("overviews are what a dataset says, else what the flag says", async (t) => {
  const auto = { levels: "auto", method: "mean" };
  const datasets = {
    all: { location: "x", overviews: true },
    empty: { location: "x", overviews: {} },
    some: { location: "x", overviews: { levels: 3, method: "mode", metadata: "ome" } },
    none: { location: "x", overviews: false },
    unsaid: "x",
  };
  const cwd = t.testdir({ "config.json": JSON.stringify({ datasets }) });
  const overviews = (argv: readonly string[]) =>
    Object.fromEntries(
      resolveConfig({ argv: ["--config", "config.json", ...argv], env: {}, cwd }).datasets.map((dataset) => [
        dataset.id,
        dataset.overviews,
      ]),
    );
  const said = { all: auto, empty: auto, some: datasets.some.overviews, none: false };
  t.strictSame(overviews(["here=y"]), { ...said, unsaid: undefined, here: undefined });
  t.strictSame(overviews(["--overviews", "here=y"]), { ...said, unsaid: auto, here: auto });
});

t.test("datasets keep the order they are written in, after those whose ids are integers", async (t) => {
  const cwd = t.testdir({ "config.json": '\ufeff{"datasets": {"b": "b", "10": "y", "a": "a"}}' });
  const config = resolveConfig({
    argv: ["--config", "config.json", "z=zz"],
    env: { ZPUBLISH_DATASETS: "v=vv, w.zarr" },
    cwd,
  });
  t.strictSame(
    config.datasets.map(({ id }) => id),
    ["10", "b", "a", "v", "w", "z"],
  );
});

t.test("a location without an id takes its base name without extension", async (t) => {
  const cwd = t.testdir({ "a=b.zarr": {}, "here.zarr": {} });
  const idOf = (argument: string, from = cwd) =>
    resolveConfig({ argv: [argument], env: {}, cwd: from }).datasets.map(({ id, location }) => [
      id,
      location,
    ])[0];
  t.strictSame(idOf("/data/air.zarr"), ["air", "/data/air.zarr"]);
  t.strictSame(idOf("/data/air.zarr/"), ["air", "/data/air.zarr"]);
  t.strictSame(idOf("/data/air.2020.zarr"), ["air.2020", "/data/air.2020.zarr"]);
  t.strictSame(idOf(".", join(cwd, "here.zarr")), ["here", join(cwd, "here.zarr")]);
  t.strictSame(idOf("x=/data/y=z.zarr"), ["x", "/data/y=z.zarr"]);
  t.strictSame(idOf("a=b.zarr"), ["a=b", join(cwd, "a=b.zarr")], "what exists as it stands is a location");
  t.strictSame(idOf("./q=r.zarr"), ["q=r", join(cwd, "q=r.zarr")], "no id has a slash");
  t.strictSame(idOf("http://h/p/c.zarr?a=b"), ["c", "http://h/p/c.zarr?a=b"]);
});

t.test("plugins are switched on and off, the last word said counts", async (t) => {
  const cwd = t.testdir({
    "mine.js": "",
    "config.json": JSON.stringify({
      plugins: {
        module_version: false,
        zarr: { options: { a: 1 } },
        other: { module: "./o.js", enabled: false },
      },
    }),
  });
  const names = (argv: string[], env: Env = {}) =>
    resolveConfig({ argv, env, cwd }).plugins.map(({ name, module }) =>
      module === undefined ? name : `${name}=${module}`,
    );
  t.strictSame(names(["--no-plugin", "zarr"]), without("zarr"));
  t.strictSame(names(["--no-plugin", "zarr", "--plugin", "zarr"]).length, BUILT_IN.length);
  t.strictSame(names(["--plugin", "zarr", "--no-plugin", "zarr"]).length, BUILT_IN.length - 1);
  t.strictSame(names([], { ZPUBLISH_NO_PLUGIN: "zarr,plugin_info" }), without("zarr", "plugin_info"));
  t.strictSame(
    names(["--plugin", "zarr"], { ZPUBLISH_NO_PLUGIN: "zarr" }).length,
    BUILT_IN.length,
    "flag over variable",
  );
  t.strictSame(names(["--plugin", "./mine.js"]).at(-1), `mine=${join(cwd, "mine.js")}`);
  t.strictSame(names(["--plugin", "mine.js"]).at(-1), `mine=${join(cwd, "mine.js")}`, "a file that exists");
  t.strictSame(names(["--plugin", "stats=@org/pkg"]).at(-1), "stats=@org/pkg");
  t.strictSame(names(["--plugin", "@org/pkg"]).at(-1), "@org/pkg=@org/pkg");
  t.strictSame(names([], { ZPUBLISH_PLUGIN: "zpublish-x" }).at(-1), "zpublish-x=zpublish-x");
  t.strictSame(names(["--config", "config.json"]), without("module_version"));
  t.strictSame(names(["--config", "config.json", "--plugin", "other"]).at(-1), `other=${join(cwd, "o.js")}`);
  const { plugins } = resolveConfig({ argv: ["--config", "config.json"], env: {}, cwd });
  t.match(
    plugins.filter(({ options }) => options !== undefined),
    [{ name: "zarr", options: { a: 1 } }],
  );
});

t.test("origins are a star, a list, or none", async (t) => {
  const origin = (text: string) =>
    resolveConfig({ argv: ["--cors-origin", text], env: {}, cwd: "/" }).corsOrigin;
  t.equal(origin("*"), "*");
  t.equal(origin("https://a.example,http://b.example:8080"), "https://a.example, http://b.example:8080");
  t.equal(origin(""), "");
});

t.test("a plugin's package is looked for where it is asked for", async (t) => {
  const cwd = t.testdir({
    node_modules: { "zpublish-x": { "package.json": '{"main": "./lib.js"}', "lib.js": "" } },
  });
  const last = resolveConfig({ argv: ["--plugin", "zpublish-x"], env: {}, cwd }).plugins.at(-1);
  t.strictSame(last, {
    name: "zpublish-x",
    module: realpathSync(join(cwd, "node_modules/zpublish-x/lib.js")),
  });
});

const PORT = "an integer from 0 to 65535";

/** Flags with values that they do not take, and what they expect. */
const BAD_VALUES: readonly (readonly [flag: string, value: string, expected: string])[] = [
  ["--port", "70000", PORT],
  ["--port", "abc", PORT],
  ["--workers", "0", "an integer from 1 to 1024"],
  ["--refresh", "-1", "a number of seconds from 0 (never) to 86400"],
  ["--cache-size", "ten", "a size of at least 1MiB, such as 10GiB, 512MB or 1048576"],
  [
    "--cors-origin",
    "https://example.org/",
    "*, origins such as https://example.org separated by commas (without a path), or nothing",
  ],
  [
    "--cache-control",
    "a\r\nx: y",
    "a Cache-Control value of visible ASCII characters, such as public, max-age=3600",
  ],
  ["--root-path", "/a/../b", "a path of letters, digits and -._~, such as /prefix"],
  ["--log-level", "loud", "one of silent, fatal, error, warn, info, debug, trace"],
  ["--host", "localhost:80", "a host name or an address without scheme and port"],
  ["--cache-dir", "", "a directory"],
  ["--title", "a\nb", "a title of 1 to 200 characters"],
  ["--plugin", "", "a plugin's name or module"],
];

const BAD_ARGUMENTS: readonly (readonly [string[], Env, string])[] = [
  ...BAD_VALUES.map(([flag, value, expected]): [string[], Env, string] => {
    const received = /^-?\d+$/.test(value) ? value : JSON.stringify(value);
    return [[flag, value], {}, `${flag}: expected ${expected}, received ${received}`];
  }),
  [["--port"], {}, "option '--port <port>' argument missing"],
  [[], { ZPUBLISH_PORT: "x" }, `ZPUBLISH_PORT: expected ${PORT}, received "x"`],
  [[], { ZPUBLISH_SKIP_INVALID: "maybe" }, 'ZPUBLISH_SKIP_INVALID: expected true or false, received "maybe"'],
  [["--no-plugin", "zar"], {}, '--no-plugin: unknown plugin "zar"; did you mean zarr?'],
  [["--plugin", "zarr=./x.js"], {}, '--plugin: "zarr" is built in; expected another name for a module'],
  ...(
    [
      ["=x", "expected a non-empty id"],
      ["x=", "expected [ID=]LOCATION, received no location"],
      ["/", "expected a non-empty id; give it one: ID=LOCATION"],
      ["..=x", 'expected an id other than "." and "..", received ".."'],
      ["a\u0001=x", 'expected an id without control characters, received "a\\u0001"'],
    ] as const
  ).map(([text, problem]): [string[], Env, string] => [
    [text],
    {},
    `command line: ${JSON.stringify(text)}: ${problem}`,
  ]),
  [
    [`${"é".repeat(513)}=x`],
    {},
    `command line: "${"é".repeat(76)}…: expected an id of at most 1024 bytes, received one of 1026 bytes`,
  ],
  [
    ["a.zarr", "b/a.zarr"],
    {},
    'command line (b/a.zarr): dataset id "a" is used already by command line (a.zarr)',
  ],
  [
    ["a.zarr"],
    { ZPUBLISH_DATASETS: "a=x" },
    'command line (a.zarr): dataset id "a" is used already by ZPUBLISH_DATASETS (a=x)',
  ],
  [
    ["--config", "absent.json"],
    {},
    "--config: expected a readable UTF-8 file, received \"absent.json\": ENOENT: no such file or directory, open '/absent.json'",
  ],
];

for (const [argv, env, line] of BAD_ARGUMENTS) {
  t.test(`refused in one line: ${JSON.stringify([argv, env]).slice(0, 80)}`, async (t) => {
    t.strictSame(
      problemsOf(() => resolveConfig({ argv, env, cwd: "/" })),
      [line],
    );
  });
}

t.test("an unknown variable is refused, foreign ones are left alone", async (t) => {
  const env = {
    ZPUBLISH_PROT: "1",
    ZPUBLISH_SERVICE_HOST: "10.0.0.1",
    ZPUBLISH_PORT_9000_TCP: "x",
    // Of a service that is called zpublish-admin: the first would be ours otherwise.
    ZPUBLISH_ADMIN_PORT: "tcp://10.0.0.1:9001",
    ZPUBLISH_ADMIN_SERVICE_HOST: "10.0.0.1",
    ZPUBLISH_ADMIN_SERVICE_PORT: "9001",
    ZPUBLISH_ADMIN_SERVICE_PORT_HTTP: "9001",
    ZPUBLISH_ADMIN_PORT_9001_TCP: "tcp://10.0.0.1:9001",
    ZPUBLISH_ADMIN_PORT_9001_TCP_ADDR: "10.0.0.1",
    ZPUBLISH_NODES_PORT: "tcp://10.0.0.2:80",
    ZPUBLISH_REQUIRE_CLIENTS: "1",
  };
  const problems = problemsOf(() => resolveConfig({ argv: [], env, cwd: "/" }));
  t.equal(problems.length, 1);
  t.match(problems[0], /^ZPUBLISH_PROT: unknown variable; did you mean ZPUBLISH_PORT\?$/);
});

/** Settings of the dataset `a`, and the beginning of what is said of them. */
const BAD_DATASETS: readonly (readonly [string, string])[] = [
  ["3", ": expected a location, or an object with one, received 3"],
  ["{}", ".location: expected a location, received nothing"],
  [
    '{"location": "x", "chunk": 1}',
    ': unknown key "chunk"; expected one of location, cacheControl, immutable, freshness, references, zarr3, encoding, encodings, overviews, file, variables, concat, stack',
  ],
  [
    '{"location": "x", "variables": {"t2m": {"chunks": {"time": -3}}}}',
    ".variables.t2m.chunks.time: expected a positive integer, or -1 for the whole axis, received -3",
  ],
  [
    '{"location": "x", "encoding": {"compressor": "zstd"}}',
    '.encoding.compressor: expected an object with an "id", such as {"id": "zstd", "level": 3}, or null, received "zstd"',
  ],
  [
    '{"location": "x", "overviews": "yes"}',
    '.overviews: expected true, false, or an object of levels, method, metadata, received "yes"',
  ],
  ['{"location": "x", "variables": {"v": {}, "/v": {}}}', '.variables["/v"]: the variable v is named twice'],
  [
    '{"location": "x", "cacheControl": "\\u0000"}',
    ".cacheControl: expected a Cache-Control value of visible ASCII characters",
  ],
];

const BAD_FILES: readonly (readonly [text: string, ...lines: string[]])[] = [
  ["", "invalid JSON: expected a JSON value at line 1, column 1, received the end of the document"],
  ['{\n "port": 1,\n}', 'invalid JSON: expected a key in double quotes at line 3, column 1, received "}"'],
  ["[]", "expected a JSON object, received []"],
  ['{"colour": 1}', 'unknown key "colour"; expected one of host, port, workers, processes, cache, cacheDir,'],
  ['{"prot": 1}', 'unknown key "prot"; did you mean port?'],
  ['{"cache-dir": "x"}', 'unknown key "cache-dir"; did you mean cacheDir?'],
  ['{"dataset": {}}', 'unknown key "dataset"; did you mean datasets?'],
  ['{"port": "9000"}', `port: expected ${PORT}, received "9000"`],
  ['{"port": null}', `port: expected ${PORT}, received null`],
  ['{"datasets": []}', "datasets: expected an object of datasets by id, received []"],
  ['{"datasets": {"a/b": "x"}}', 'datasets["a/b"]: expected an id without "/", received "a/b"'],
  ...BAD_DATASETS.map(([a, problem]): [string, string] => [
    `{"datasets": {"a": ${a}}}`,
    `datasets.a${problem}`,
  ]),
  [
    '{"datasets": {"a": {"location": "x", "overviews": {"levels": 17, "method": "min", "metadata": "cf"}}}}',
    'datasets.a.overviews.levels: expected an integer from 1 to 16, or "auto", received 17',
    'datasets.a.overviews.method: expected one of mean, nearest, max, mode, received "min"',
    'datasets.a.overviews.metadata: expected one of geo, ome, received "cf"',
  ],
  [
    '{"plugins": {"zarr": 1}}',
    "plugins.zarr: expected true, false, or an object of enabled, module, options, received 1",
  ],
  ['{"plugins": {"zar": true}}', 'plugins.zar: unknown plugin "zar"; did you mean zarr?'],
  ['{"plugins": {"gopher": true}}', 'plugins.gopher: unknown plugin "gopher"; built in are'],
  ['{"plugins": {"mine": {"modul": "x"}}}', 'plugins.mine: unknown key "modul"; did you mean module?'],
  [
    '{"prot": 1, "titel": "x", "stores": [], "datasets": {"a": {"loc": 1}}, "collections": {"c": {}}, "workers": 0}',
    "stores: expected an object of stores by name, received []",
    'unknown key "prot"; did you mean port?',
    'unknown key "titel"; did you mean title?',
    "datasets.a.location: expected a location, received nothing",
    'datasets.a: unknown key "loc"; expected one of location,',
    "collections.c.root: expected a folder, received nothing",
    "workers: expected an integer",
  ],
  ['{"port": -1, "workers": 0}', `port: expected ${PORT}, received -1`, "workers: expected an integer"],
];

for (const [text, ...lines] of BAD_FILES) {
  t.test(`a file is refused with its place: ${JSON.stringify(text).slice(0, 90)}`, async (t) => {
    const cwd = t.testdir({ "config.json": text });
    const problems = problemsOf(() => resolveConfig({ argv: ["--config", "config.json"], env: {}, cwd }));
    t.ok(problems.length >= lines.length, problems.join("\n"));
    for (const [index, line] of lines.entries()) {
      t.ok(problems[index]?.startsWith(`config.json: ${line}`), `${problems[index]} begins with ${line}`);
    }
  });
}

t.test("what Kubernetes puts into ZPUBLISH_PORT beside a service called zpublish is no port", async (t) => {
  for (const address of ["tcp://10.0.0.1:80", "udp://[fd00::1]:9000"]) {
    const config = resolveConfig({ argv: [], env: { ZPUBLISH_PORT: address }, cwd: "/" });
    t.equal(config.port, 9000);
  }
});

t.test("a file that is not UTF-8 is refused", async (t) => {
  const cwd = t.testdir({ "config.json": Buffer.from([0x7b, 0xff, 0x7d]) });
  t.match(
    problemsOf(() => resolveConfig({ argv: ["--config", "config.json"], env: {}, cwd })),
    [/^--config: expected a readable UTF-8 file, received "config\.json": /],
  );
});

t.test("a mistake in the file is found although a flag wins", async (t) => {
  const cwd = t.testdir({ "config.json": '{"port": "x"}' });
  const problems = problemsOf(() =>
    resolveConfig({ argv: ["--config", "config.json", "--port", "1"], env: {}, cwd }),
  );
  t.strictSame(problems, ['config.json: port: expected an integer from 0 to 65535, received "x"']);
});
