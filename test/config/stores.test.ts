import { join } from "node:path";
import t, { type Test } from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { ZpublishError } from "../../src/errors.js";

/** Resolves a file's configuration. */
function resolved(t: Test, file: object) {
  const cwd = t.testdir({ "c.json": JSON.stringify(file) });
  return { cwd, config: () => resolveConfig({ argv: ["--config", "c.json"], env: { HOME: "/" }, cwd }) };
}

/** Resolves a file's configuration, and returns the lines of its error. */
function problemsOf(t: Test, file: object): string[] {
  try {
    resolved(t, file).config();
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "invalid-config") return error.message.split("\n");
    throw error;
  }
  return [];
}

const KEYS =
  "url, endpoint, region, forcePathStyle, anonymous, profile, credentials, requesterPays, missing, headers, redirect";

t.test("stores, freshness and references are settings of datasets", (t) => {
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
    datasets: {
      a: { location: "s3://bucket/prefix/a.zarr", freshness: "always" },
      b: { location: "https://data.example/b.zarr", freshness: 60, references: { allow: [] } },
      c: { location: "c.zarr", freshness: "immutable" },
      d: { location: "d.zarr", freshness: 0 },
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
  t.end();
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
  ["another scheme", { url: "gs://b/" }, 'received "gs://b/"'],
  ["a user", { url: "https://me:SEKRET@host/a" }, 'received "https://…@host/a"'],
  ["a query", { url: "https://host/a?token=SEKRET" }, 'received "https://host/a?…"'],
  [
    "an endpoint of S3",
    { url: "s3://b/", endpoint: "s3://b" },
    "stores.x.endpoint: expected an https:// or http:// URL without user, query and fragment",
  ],
  ["a secret of the endpoint", { url: "s3://b/", endpoint: "https://k:SEKRET@h" }, 'received "https://…@h"'],
  [
    "missing",
    { url: "s3://b/", missing: 403 },
    'stores.x.missing: expected "404" or "404+403", received 403',
  ],
  [
    "keys in place of their variables",
    { url: "s3://b/", credentials: { accessKeyId: "SEKRET", secretAccessKey: { env: "S" } } },
    'stores.x.credentials.accessKeyId: expected an object with "env", received "…"',
  ],
  [
    "half of the keys",
    { url: "s3://b/", credentials: { accessKeyId: { env: "K" } } },
    'stores.x.credentials.secretAccessKey: expected an object with "env", received nothing',
  ],
  [
    "a header that is no text",
    { url: "s3://b/", headers: { Authorization: ["Bearer SEKRET"] } },
    'stores.x.headers.Authorization: expected a text of one line, or {"env": "NAME"} with the name of a variable, received ["…"]',
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
  ["redirect", { url: "s3://b/", redirect: "yes" }, "stores.x.redirect: expected true or false"],
  ["a region", { url: "s3://b/", region: "" }, "stores.x.region: expected the name of a region"],
];

for (const [name, store, problem] of REFUSED) {
  t.test(`a store is refused for ${name}`, (t) => {
    const problems = problemsOf(t, { stores: { x: store } });
    t.equal(problems.length, 1, problems.join("\n"));
    const [received = ""] = problems;
    t.ok(received.startsWith("c.json: stores.x"), received);
    t.ok(received.includes(problem), received);
    t.notMatch(received, "SEKRET");
    t.end();
  });
}

t.test("freshness and references are refused by name", (t) => {
  const expected = 'datasets.a.freshness: expected "always", "immutable", or a number of seconds, received';
  for (const freshness of [-1, "never", true, null, "60"]) {
    const problems = problemsOf(t, { datasets: { a: { location: "a", freshness } } });
    t.same(problems, [`c.json: ${expected} ${JSON.stringify(freshness)}`]);
  }
  const dataset = (references: unknown) => ({ datasets: { a: { location: "a", references } } });
  t.match(problemsOf(t, dataset(["/data"])), [
    /^c\.json: datasets\.a\.references: expected an object with "allow", received/,
  ]);
  t.match(problemsOf(t, dataset({ allow: "/data" })), [
    /^c\.json: datasets\.a\.references\.allow: expected an array of URLs and paths, received "\/data"$/,
  ]);
  t.match(problemsOf(t, dataset({ allow: ["/data", 5] })), [
    /^c\.json: datasets\.a\.references\.allow\[1\]: expected a URL or a path, received 5$/,
  ]);
  t.match(problemsOf(t, dataset({ allow: [], deny: [] })), [/unknown key "deny"; expected one of allow/]);
  t.match(problemsOf(t, { references: { allow: [""] } }), [
    /^c\.json: references\.allow\[0\]: expected a URL/,
  ]);
  t.match(problemsOf(t, { stores: [] }), [/^c\.json: stores: expected an object of stores by name/]);
  t.end();
});
