import { join } from "node:path";
import t, { type Test } from "tap";
import type { Config } from "../../src/config/config.js";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { formatByteSize, parseByteSize } from "../../src/config/value-schemas.js";
import { ZpublishError } from "../../src/errors.js";

const AS_STORED = { immutable: false, encoding: {}, variables: {} };

function resolve(argv: readonly string[], env: Record<string, string> = {}, cwd = "/"): Config {
  return resolveConfig({ argv, env, cwd });
}

/** What is wrong, line by line. */
function problemsOf(run: () => unknown): readonly string[] {
  try {
    run();
    return [];
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "invalid-config") return error.message.split("\n");
    throw error;
  }
}

t.test("a pattern on the command line is a collection of the files that match", async (t) => {
  t.strictSame(resolve(["/data/**/*.nc"]).datasets, []);
  t.strictSame(resolve(["/data/**/*.nc"]).collections, [
    { name: "", root: "/data", include: ["**/*.nc"], ...AS_STORED },
  ]);
  const rootOf = (text: string) =>
    resolve([text]).collections.map(({ name, root, include }) => [name, root, ...(include ?? [])])[0];
  t.strictSame(rootOf("days=data/2024/sst-??.nc"), ["days", "/data/2024", "sst-??.nc"]);
  t.strictSame(rootOf("/*.nc"), ["", "/", "*.nc"]);
  t.strictSame(rootOf("/data/{a,b}/x.nc"), ["", "/data", "{a,b}/x.nc"]);
  t.strictSame(rootOf("s3://bucket/x/[ab]*.zarr"), ["", "s3://bucket/x/", "[ab]*.zarr"]);
});

t.test("with --concat or --stack, the files of a pattern or a folder are one dataset", async (t) => {
  t.strictSame(resolve(["/data/sst-*.nc", "--concat", "time"]).datasets, [
    { id: "sst", location: "/data/sst-*.nc", join: { kind: "concat", dimension: "time" }, ...AS_STORED },
  ]);
  t.strictSame(resolve(["x=data/daily", "--stack", "run"], {}, "/home").datasets, [
    { id: "x", location: "/home/data/daily", join: { kind: "stack", dimension: "run" }, ...AS_STORED },
  ]);
  t.strictSame(resolve(["/data/*.nc", "--stack", "run"]).collections, []);
  const idOf = (location: string) => resolve([location, "--concat", "t"]).datasets[0]?.id;
  t.equal(idOf("/data/sst_2024.*.nc"), "sst_2024");
  t.equal(idOf("/data/daily/*.nc"), "daily");
  t.equal(idOf("/data/daily/**/*.nc"), "daily");
  t.equal(idOf("/data/20??/sst.nc"), "sst");
  t.equal(idOf("/data/a\\*b-*.nc"), "a*b");
  t.equal(idOf("/data/{a,b}/*.nc"), "data");
  t.equal(idOf("s3://bucket/*.nc"), "bucket");
  t.equal(idOf("/data/daily"), "daily");
});

t.test("a location may say which state of a repository is meant", async (t) => {
  const datasetOf = (text: string) =>
    resolve([text], {}, "/home").datasets.map(({ id, location }) => [id, location])[0];
  t.strictSame(datasetOf("icechunk:/data/repo?tag=v1"), ["repo", "icechunk:/data/repo?tag=v1"]);
  t.strictSame(datasetOf("v1=icechunk:/data/repo?tag=v1"), ["v1", "icechunk:/data/repo?tag=v1"]);
  t.strictSame(datasetOf("icechunk:repo.icechunk/?branch=a*b"), [
    "repo",
    "icechunk:/home/repo.icechunk?branch=a*b",
  ]);
  t.strictSame(datasetOf("icechunk:data"), ["data", "icechunk:/home/data"]);
  t.strictSame(datasetOf("x=icechunk:s3://b/repo?snapshot=S1"), ["x", "icechunk:s3://b/repo?snapshot=S1"]);
  const sides = ["v1=icechunk:/data/repo?tag=v1", "v2=icechunk:/data/repo?tag=v2"];
  t.same(resolve(sides).collections, []);
  t.same(
    resolve(sides).datasets.map(({ id }) => id),
    ["v1", "v2"],
  );
});

t.test("variables say the same, and flags win over them", async (t) => {
  const env = { ZPUBLISH_DATASETS: "a=/d/{x,y}/*.nc, b=/e/*.nc", ZPUBLISH_CONCAT: "time" };
  const locations = (config: Config) =>
    config.datasets.map(({ id, location, join }) => [id, location, join?.kind, join?.dimension]);
  t.strictSame(locations(resolve([], env)), [
    ["a", "/d/{x,y}/*.nc", "concat", "time"],
    ["b", "/e/*.nc", "concat", "time"],
  ]);
  t.strictSame(locations(resolve(["--stack", "run"], env))[0], ["a", "/d/{x,y}/*.nc", "stack", "run"]);
  t.strictSame(
    resolve([], { ZPUBLISH_DATASETS: "/d/{x,y}/*.nc,/data" }).collections.map(({ include }) => include),
    [["{x,y}/*.nc"]],
  );
});

t.test("a location that may be a folder has the name of the collection that it would be", async (t) => {
  const found = (text: string) =>
    resolve([text]).datasets.map(({ id, asCollection }) => [id, asCollection])[0];
  t.strictSame(found("/data"), ["data", ""]);
  t.strictSame(found("x=/data"), ["x", "x"]);
  t.strictSame(found("s3://bucket/data"), ["data", ""]);
  t.strictSame(found("https://host/data"), ["data", undefined]);
});

t.test("what exists as it stands is no pattern, nor is the query of a URL", async (t) => {
  const cwd = t.testdir({ "sst[1].nc": "", "a{b,c}.nc": "" });
  for (const name of ["sst[1].nc", "a{b,c}.nc"])
    t.strictSame(resolve([name], {}, cwd).datasets[0]?.location, join(cwd, name));
  t.equal(resolve(["https://host/a.nc?x=[1]"]).datasets.length, 1);
});

t.test("what has brackets in its name in a bucket or on a web server is a dataset of the file", async (t) => {
  const locations = ["s3://bucket/a[1]{b,c}?.zarr", "https://host/*.zarr"];
  const datasets = Object.fromEntries(locations.map((location, index) => [index, location]));
  const cwd = t.testdir({ "config.json": JSON.stringify({ datasets }) });
  t.same(
    resolve(["--config", "config.json"], {}, cwd).datasets.map(({ location }) => location),
    locations,
  );
});

t.test("the file says how files are joined", async (t) => {
  const cwd = t.testdir({
    "config.json": JSON.stringify({
      datasets: {
        a: { location: "data/sst-*.nc", concat: "time" },
        b: { location: "data/run", stack: "run" },
        c: { location: "data/run-*.nc", stack: { dimension: "run", coordinate: "run-(\\d+)" } },
      },
    }),
  });
  const { datasets } = resolve(["--config", "config.json"], {}, cwd);
  t.strictSame(
    datasets.map(({ location, join }) => [location, join]),
    [
      [join(cwd, "data/sst-*.nc"), { kind: "concat", dimension: "time" }],
      [join(cwd, "data/run"), { kind: "stack", dimension: "run" }],
      [join(cwd, "data/run-*.nc"), { kind: "stack", dimension: "run", coordinate: "run-(\\d+)" }],
    ],
  );
});

t.test("the file has collections, with what holds for all of their datasets", async (t) => {
  const cwd = t.testdir({
    "config.json": JSON.stringify({
      stores: { x: { url: "https://host/" } },
      references: { allow: ["refs"] },
      collections: {
        archive: "data",
        second: {
          root: "s3://bucket/a",
          include: ["**/*.nc"],
          exclude: ["old/**"],
          groups: false,
          immutable: true,
          encoding: { compressor: null },
          overviews: true,
          cacheControl: "no-store",
          freshness: "always",
          references: { allow: ["here"] },
        },
        "": "/other",
      },
    }),
  });
  const shared = { variables: {}, stores: [{ name: "x", url: "https://host/" }] };
  t.strictSame(resolve(["--config", "config.json"], {}, cwd).collections, [
    {
      name: "archive",
      root: join(cwd, "data"),
      immutable: false,
      encoding: {},
      references: { allow: [join(cwd, "refs")] },
      ...shared,
    },
    {
      name: "second",
      root: "s3://bucket/a/",
      include: ["**/*.nc"],
      exclude: ["old/**"],
      groups: false,
      cacheControl: "no-store",
      immutable: true,
      freshness: "always",
      references: { allow: [join(cwd, "here")] },
      encoding: { compressor: null },
      overviews: { levels: "auto", method: "mean" },
      ...shared,
    },
    {
      name: "",
      root: "/other",
      immutable: false,
      encoding: {},
      references: { allow: [join(cwd, "refs")] },
      ...shared,
    },
  ]);
});

t.test("files that the shell has put in the place of a pattern are refused", async (t) => {
  const cwd = t.testdir({ "a.nc": "", "b.nc": "", "c.nc": "", days: {} });
  const end = "without quotes, the shell replaces a pattern by the files";
  const start = "--concat: expected a folder, or a pattern in quotes such as 'sst=/data/sst-*.nc', received";
  const problems = (...argv: string[]) => problemsOf(() => resolve([...argv, "--concat", "time"], {}, cwd));
  t.strictSame(problems("a.nc", "b.nc", "c.nc"), [`${start} "a.nc" and 2 more; ${end}`]);
  t.strictSame(problems("a.nc"), [`${start} "a.nc"; ${end}`]);
  t.strictSame(problems("x=a.nc"), [`${start} "x=a.nc"; ${end}`]);
  t.strictSame(problems("a.zarr", "b.zarr"), [`${start} "a.zarr" and 1 more; ${end}`], "stores are folders");
  t.strictSame(problems("days"), []);
  t.strictSame(problems("x=days", "y=days", "*.nc"), []);
});

const BAD_LOCATIONS: readonly (readonly [readonly string[], Record<string, string>, string])[] = [
  [["--concat", "time"], {}, "--concat: expected a pattern or a folder with it, received no location"],
  [["/a/*.nc", "--concat", "t", "--stack", "r"], {}, "--concat: expected --concat or --stack, received both"],
  [["/a/*.nc", "--concat", ""], {}, '--concat: expected the name of a dimension, received ""'],
  [
    ["/a/x*.nc"],
    { ZPUBLISH_CONCAT: "t", ZPUBLISH_STACK: "r" },
    "ZPUBLISH_CONCAT: expected ZPUBLISH_CONCAT or ZPUBLISH_STACK, received both",
  ],
  [
    ["/*.nc", "--concat", "t"],
    {},
    'command line: "/*.nc": expected a non-empty id; give it one: ID=LOCATION',
  ],
  [
    ["https://host/*.nc"],
    {},
    "command line (https://host/*.nc): expected a pattern of files or of s3:// objects, which can be listed",
  ],
  [["a~b=/d/*.nc"], {}, 'command line (a~b=/d/*.nc): expected a name without "~", received "a~b"'],
  [
    ["a=/d/*.nc", "a=/e/*.nc"],
    {},
    'command line (a=/e/*.nc): collection name "a" is used already by command line (a=/d/*.nc)',
  ],
  [
    ["a=/d", "a=/e/*.nc"],
    {},
    'command line (a=/e/*.nc): collection name "a" is used already by command line (a=/d)',
  ],
];

for (const [argv, env, line] of BAD_LOCATIONS) {
  t.test(`refused in one line: ${JSON.stringify([argv, env])}`, async (t) => {
    t.strictSame(
      problemsOf(() => resolve(argv, env)),
      [line],
    );
  });
}

const ALONE =
  ': expected "concat" or "stack" with a pattern, for one dataset of its files, or the pattern in "include" of a collection, received the pattern alone';
const GROUP = "expected a regular expression with one group, such as run-(\\d+), received";

/** The dataset `a`, and what is said of it. */
const BAD_DATASETS: readonly (readonly [unknown, string])[] = [
  [{ location: "x", concat: "t", stack: "r" }, ": expected concat or stack, received both"],
  [{ location: "x", concat: 3 }, ".concat: expected the name of a dimension, received 3"],
  [{ location: "x", stack: "" }, '.stack: expected the name of a dimension, received ""'],
  [
    { location: "x", stack: [] },
    ".stack: expected the name of a dimension, or an object of dimension, coordinate, received []",
  ],
  [
    { location: "x", stack: { dimension: "r", coordinates: "x" } },
    '.stack: unknown key "coordinates"; did you mean coordinate?',
  ],
  ...["run", "(a)(b)", "(", "(a)\\", 3].map((coordinate): [unknown, string] => [
    { location: "x", stack: { dimension: "r", coordinate } },
    `.stack.coordinate: ${GROUP} ${JSON.stringify(coordinate)}`,
  ]),
  ["x/*.nc", ALONE],
  ["s3://bucket/*.nc", ALONE],
];

/** The collection `a`, and what is said of it. */
const BAD_COLLECTIONS: readonly (readonly [unknown, string])[] = [
  [3, ": expected a folder, or an object with one as its root, received 3"],
  [{}, ".root: expected a folder, received nothing"],
  ["https://host/x/", '.root: expected a folder, or s3://bucket/prefix/, received "https://host/x/"'],
  [
    { root: "x", variables: {} },
    ': unknown key "variables"; expected one of root, include, exclude, groups, cacheControl, immutable, freshness, references, zarr3, encoding, encodings, overviews, file',
  ],
  [{ root: "x", include: "*.nc" }, '.include: expected an array of patterns, received "*.nc"'],
  [{ root: "x", include: [] }, ".include: expected at least one pattern, received []"],
  [
    { root: "x", exclude: ["/x/*.nc"] },
    '.exclude[0]: expected a pattern of paths below the root, such as "**/*.nc", received "/x/*.nc"',
  ],
];

const BAD_FILES: readonly (readonly [object, string])[] = [
  ...BAD_DATASETS.map(([a, problem]) => [{ datasets: { a } }, `datasets.a${problem}`] as const),
  ...BAD_COLLECTIONS.map(([a, problem]) => [{ collections: { a } }, `collections.a${problem}`] as const),
  [{ collections: [] }, "collections: expected an object of collections by name, received []"],
  [{ collections: { "a~b": "/x" } }, 'collections["a~b"]: expected a name without "~", received "a~b"'],
  [{ collections: { "a/b": "/x" } }, 'collections["a/b"]: expected a name without "/", received "a/b"'],
  [
    { datasets: { a: "x" }, collections: { a: "y" } },
    'collections.a: collection name "a" is used already by config.json: datasets.a',
  ],
];

for (const [file, line] of BAD_FILES) {
  t.test(`a file is refused with its place: ${JSON.stringify(file)}`, async (t) => {
    const cwd = t.testdir({ "config.json": JSON.stringify(file) });
    t.strictSame(
      problemsOf(() => resolve(["--config", "config.json"], {}, cwd)),
      [`config.json: ${line}`],
    );
  });
}

/** Resolves a file's configuration. */
function resolved(t: Test, file: object) {
  const cwd = t.testdir({ "c.json": JSON.stringify(file) });
  return { cwd, config: () => resolve(["--config", "c.json"], { HOME: "/" }, cwd) };
}

/** Resolves a file's configuration, and returns the lines of its error. */
function problemsOfStores(t: Test, file: object): readonly string[] {
  return problemsOf(resolved(t, file).config);
}

const KEYS =
  "url, endpoint, region, forcePathStyle, anonymous, profile, credentials, requesterPays, missing, headers, redirect";

t.test("stores, freshness and references are settings of datasets", async (t) => {
  const archive = {
    ...{ url: "s3://bucket/prefix/", endpoint: "https://s3.example", region: "eu-central-1" },
    ...{ forcePathStyle: true, anonymous: false, profile: "archive", requesterPays: false },
    ...{ missing: "404+403", redirect: true },
    credentials: { accessKeyId: { env: "KEY" }, secretAccessKey: { env: "SECRET" } },
    headers: { Authorization: { env: "TOKEN" }, "X-Client": "zpublish" },
  };
  const { config, cwd } = resolved(t, {
    stores: { archive, plain: { url: "https://data.example/" } },
    references: { allow: ["s3://bucket/", "data", "/data/"] },
    zarr3: { portable: true },
    datasets: {
      a: { location: "s3://bucket/prefix/a.zarr", freshness: "always" },
      b: { location: "https://data.example/b.zarr", freshness: 60, references: { allow: [] } },
      c: { location: "c.zarr", freshness: "immutable" },
      d: { location: "d.zarr", freshness: 0, zarr3: { portable: false } },
    },
  });
  const { datasets } = config();
  t.same(
    datasets.map(({ location, freshness, immutable }) => [location, freshness, immutable]),
    [
      ["s3://bucket/prefix/a.zarr", "always", false],
      ["https://data.example/b.zarr", 60, false],
      [join(cwd, "c.zarr"), "immutable", true],
      [join(cwd, "d.zarr"), 0, false],
    ],
  );
  t.same(datasets[0]?.stores, [
    { name: "archive", ...archive },
    { name: "plain", url: "https://data.example/" },
  ]);
  const shared = { allow: ["s3://bucket/", join(cwd, "data"), "/data"] };
  t.match(datasets[0]?.references, shared);
  t.same(datasets[1]?.references, { allow: [] }, "a dataset's own win");
  t.same(
    datasets.map(({ zarr3 }) => zarr3?.portable),
    [true, true, true, false],
  );
});

const REFUSED: readonly (readonly [name: string, store: unknown, problem: string])[] = [
  ["no object", "s3://b/", 'stores.x: expected an object with a url, received "s3://b/"'],
  [
    "no url",
    {},
    "stores.x.url: expected an https://, http:// or s3:// URL without user, query and fragment, received nothing",
  ],
  [
    "an unknown key",
    { url: "s3://b/", secretAccessKey: "SEKRET" },
    `stores.x: unknown key "secretAccessKey"; expected one of ${KEYS}`,
  ],
  ["a user", { url: "https://me:SEKRET@host/a" }, 'received "https://…@host/a"'],
  ["a query", { url: "https://host/a?token=SEKRET" }, 'received "https://host/a?…"'],
  [
    "an endpoint of S3",
    { url: "s3://b/", endpoint: "s3://b" },
    "stores.x.endpoint: expected an https:// or http:// URL without user, query and fragment",
  ],
  ["a secret of the endpoint", { url: "s3://b/", endpoint: "https://k:SEKRET@h" }, 'received "https://…@h"'],
  [
    "keys in place of their variables",
    { url: "s3://b/", credentials: { accessKeyId: "SEKRET", secretAccessKey: { env: "S" } } },
    'stores.x.credentials.accessKeyId: expected an object with "env", received "…"',
  ],
  [
    "a header with a mistake in env",
    { url: "s3://b/", headers: { Authorization: { Env: "SEKRET" } } },
    'stores.x.headers.Authorization: expected a text of one line, or {"env": "NAME"}',
  ],
  [
    "a header of two lines",
    { url: "s3://b/", headers: { A: "SEKRET\r\nB: c" } },
    "stores.x.headers.A: expected",
  ],
  ["a name of a header", { url: "s3://b/", headers: { "A b": "SEKRET" } }, "expected names of headers"],
];

for (const [name, store, problem] of REFUSED) {
  t.test(`a store is refused for ${name}`, async (t) => {
    const problems = problemsOfStores(t, { stores: { x: store } });
    t.equal(problems.length, 1, problems.join("\n"));
    const [received = ""] = problems;
    t.ok(received.startsWith("c.json: stores.x"), received);
    t.ok(received.includes(problem), received);
    t.notMatch(received, "SEKRET");
  });
}

t.test("freshness and references are refused by name", async (t) => {
  const expected = 'datasets.a.freshness: expected "always", "immutable", or a number of seconds, received';
  for (const freshness of [-1, "never", true, null, "60"]) {
    const problems = problemsOfStores(t, { datasets: { a: { location: "a", freshness } } });
    t.same(problems, [`c.json: ${expected} ${JSON.stringify(freshness)}`]);
  }
  const dataset = (references: unknown) => ({ datasets: { a: { location: "a", references } } });
  for (const [file, problem] of [
    [dataset(["/data"]), 'datasets.a.references: expected an object with "allow", received'],
    [
      dataset({ allow: "/data" }),
      'datasets.a.references.allow: expected an array of URLs and paths, received "',
    ],
    [
      dataset({ allow: ["/data", 5] }),
      "datasets.a.references.allow[1]: expected a URL or a path, received 5",
    ],
    [dataset({ allow: [], deny: [] }), 'datasets.a.references: unknown key "deny"; expected one of allow'],
    [{ references: { allow: [""] } }, "references.allow[0]: expected a URL"],
    [{ stores: [] }, "stores: expected an object of stores by name"],
  ] as const) {
    const problems = problemsOfStores(t, file);
    t.ok(problems.length === 1 && problems[0]?.startsWith(`c.json: ${problem}`), problems.join("\n"));
  }
});

t.test("sizes are read with decimal and binary units", async (t) => {
  t.equal(parseByteSize("1048576"), 1_048_576);
  t.equal(parseByteSize("10GiB"), 10 * 1024 ** 3);
  t.equal(parseByteSize("512 MB"), 512_000_000);
  t.equal(parseByteSize("1.5 tib"), 1.5 * 1024 ** 4);
  for (const text of ["", "GiB", "-1", "1e3", "10XB", "1 0", "99999999TiB", "Infinity"]) {
    t.equal(parseByteSize(text), undefined, JSON.stringify(text));
  }
});

t.test("sizes are written for people", async (t) => {
  t.equal(formatByteSize(0), "0 B");
  t.equal(formatByteSize(1023), "1023 B");
  t.equal(formatByteSize(1536), "1.5 KiB");
  t.equal(formatByteSize(10 * 1024 ** 3), "10 GiB");
});
