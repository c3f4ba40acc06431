import t from "tap";
import type { DocumentPieces } from "../../src/http/create-document.js";
import { packageVersion } from "../../src/observe/versions.js";
import datasetInfo from "../../src/plugins/dataset-info-plugin.js";
import { createSnapshotMemo } from "../../src/plugins/documents.js";
import moduleVersion from "../../src/plugins/module-version.js";
import pluginInfo from "../../src/plugins/plugin-info.js";
import { parsePictureQuery, placeAt } from "../../src/plugins/thumbnail-plugin.js";
import zarrPlugin from "../../src/plugins/zarr-plugin.js";
import { fakeContext } from "../support/datasets/fake-context.js";
import { fakeService } from "../support/datasets/fake-service.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";

t.test("/versions is a flat object of strings", async (t) => {
  const { text } = fakeService(await moduleVersion.routes(fakeContext({})));
  t.strictSame(JSON.parse(await text("/versions")), { zpublish: "0.1.0", node: "20.20.2", LANG: "C.UTF-8" });
});

t.test("/plugins has path and version of every loaded plugin", async (t) => {
  const { text } = fakeService(await pluginInfo.routes(fakeContext({ plugins: ["dataset_info"] })));
  t.strictSame(JSON.parse(await text("/plugins")), {
    dataset_info: { path: "zpublish/plugins/dataset_info", version: "0.1.0" },
  });
});

t.test("plugins name themselves, their module and this package's version", async (t) => {
  t.match(packageVersion, /^\d+\.\d+\.\d+/);
  for (const plugin of [datasetInfo, moduleVersion, pluginInfo]) {
    t.match(plugin.name, /^[a-z][a-z0-9_]*$/);
    t.equal(plugin.version, packageVersion);
    t.match(plugin.path, /^zpublish\/plugins\/[a-z-]+$/);
  }
});

const SNAPSHOT = fakeSnapshot("x", {});
const OTHER = fakeSnapshot("x", {});

/** A document that takes longer than one slice of a cooperative task. */
function* slowPieces(made: string[], failure?: Error): DocumentPieces {
  made.push("begun");
  for (let i = 0; i < 20; i++) {
    const end = performance.now() + 1;
    while (performance.now() < end);
    yield i === 10 ? undefined : `${i} `;
  }
  if (failure !== undefined) throw failure;
}

t.test("a document is made once per snapshot and key, at once if it is small", async (t) => {
  const { document } = createSnapshotMemo();
  let made = 0;
  const pieces = () => [String(++made)];
  // On a busy machine this process may wait for a processor for longer than a slice takes.
  const attempts = Array.from({ length: 20 }, (_, i) => document(SNAPSHOT, `${i}`, "text/plain", pieces));
  t.ok(attempts.some((attempt) => !(attempt instanceof Promise)));
  const first = await document(SNAPSHOT, "a", "text/plain", pieces);
  t.equal(document(SNAPSHOT, "a", "text/plain", pieces), first);
  t.equal(made, 21);
  await document(SNAPSHOT, "b", "text/plain", pieces);
  await document(OTHER, "a", "text/plain", pieces);
  t.equal(made, 23);
});

t.test("a large document is made once for all that wait, while the event loop runs", async (t) => {
  const { document } = createSnapshotMemo();
  const made: string[] = [];
  setImmediate(() => made.push("loop"));
  const ask = () => document(SNAPSHOT, "a", "text/plain", () => slowPieces(made));
  const waiting = [ask(), ask()];
  t.ok(waiting[0] instanceof Promise);
  const [first, second] = await Promise.all(waiting);
  t.equal(first, second);
  t.equal(Buffer.from(first?.bytes ?? []).toString(), "0 1 2 3 4 5 6 7 8 9 11 12 13 14 15 16 17 18 19 ");
  t.same(made, ["begun", "loop"]);
  t.equal(ask(), first, "and then in the memo");
});

t.test("a document that fails is made again for the next request", async (t) => {
  const { document } = createSnapshotMemo();
  const made: string[] = [];
  await t.rejects(
    async () => document(SNAPSHOT, "a", "text/plain", () => slowPieces(made, new RangeError("late"))),
    { message: "late" },
  );
  const second = document(SNAPSHOT, "a", "text/plain", () => ["fine"]);
  t.equal(Buffer.from((await second).bytes).toString(), "fine");
});

const ROOT = { variables: { x: { dims: ["x"], shape: [3] } } };

t.test("a chunk of an array that was served and is now refused is a failure, not absent", async (t) => {
  const refused = [
    { path: "g/lost", reason: "half written" },
    { path: "never", reason: "no codec" },
  ];
  const snapshot = { ...fakeSnapshot("d", ROOT, { refused }), withdrawn: new Set(["g/lost"]) };
  const { get } = fakeService(await zarrPlugin.routes(fakeContext({ snapshots: [snapshot] })));
  await t.rejects(get("/datasets/d/zarr/g/lost/0.0"), { code: "source-unreadable", message: /half written/ });
  for (const path of ["g/lost/.zarray", "g/lost/zarr.json", "g/lost", "g/other/0.0", "never/0.0"]) {
    await t.rejects(get(`/datasets/d/zarr/${path}`), { code: "not-found" }, path);
  }
});

t.test("the root's documents have their own routes, and doubled slashes reach them, too", async (t) => {
  const routes = await zarrPlugin.routes(fakeContext({ snapshots: [fakeSnapshot("d", ROOT)] }));
  const store = "/datasets/{dataset_id}/zarr";
  const { text } = fakeService(routes);
  for (const name of [".zmetadata", ".zgroup", ".zattrs", ""]) {
    t.ok(routes.some(({ path }) => path === `${store}/${name}`));
    t.equal(await text(`/datasets/d/zarr/${name}`), await text(`/datasets/d/zarr//${name}`), name);
  }
});

function refusal(run: () => unknown) {
  try {
    run();
    return undefined;
  } catch (error) {
    const { code, message, details } = error as {
      code: string;
      message: string;
      details: { parameter: string };
    };
    return { code, message, parameter: details.parameter };
  }
}

t.test("reads every parameter, and has a default for each", async (t) => {
  t.strictSame(parsePictureQuery(""), {
    size: 320,
    range: undefined,
    scale: undefined,
    isReversed: false,
    indices: new Map(),
  });
  t.strictSame(
    parsePictureQuery(
      "size=64&range=-1.5,2e3&scale=rdbu&reversed=true&index.time=-1&index.a%20b=07&token=secret",
    ),
    {
      size: 64,
      range: [-1.5, 2000],
      scale: "rdbu",
      isReversed: true,
      indices: new Map([
        ["time", -1],
        ["a b", 7],
      ]),
    },
  );
});

t.test("says of a wrong parameter what was expected and received", async (t) => {
  const cases: [query: string, parameter: string, message: RegExp][] = [
    ["size=63", "size", /from 64 to 1024, received '63'/],
    ["size=1025", "size", /received '1025'/],
    ["size=1e2", "size", /received '1e2'/],
    ["size=", "size", /received ''/],
    ["size=+100", "size", /received ' 100'/],
    ["size=100&size=100", "size", /once/],
    ["range=1", "range", /two numbers/],
    ["range=1,1", "range", /less than/],
    ["range=2,1", "range", /less than/],
    ["range=1,2,3", "range", /two numbers/],
    ["range=nan,1", "range", /two numbers/],
    ["range=1,Infinity", "range", /two numbers/],
    ["range=,1", "range", /two numbers/],
    ["range=-1e308,1e308", "range", /two numbers/],
    ["range=0x1,0x2", "range", /two numbers/],
    ["scale=jet", "scale", /viridis, .* received 'jet'/],
    ["scale=__proto__", "scale", /received '__proto__'/],
    ["reversed=1", "reversed", /true or false/],
    ["index.time=a", "index.time", /an integer, received 'a'/],
    ["index.time=1.5", "index.time", /an integer/],
    ["index.time=99999999999999999", "index.time", /an integer/],
    ["index.time=1&index.time=1", "index.time", /once/],
    ["colour=red", "colour", /one of size, range, scale, reversed, index/],
    ["constructor=1", "constructor", /one of size/],
  ];
  for (const [query, parameter, message] of cases)
    t.match(
      refusal(() => parsePictureQuery(query)),
      { code: "invalid-query", parameter, message },
      query,
    );
  const long = refusal(() => parsePictureQuery(`scale=${"x".repeat(5_000)}`));
  t.ok((long?.message.length ?? 0) < 400, "long ones are cut");
});

t.test("indices choose the slice, from the end if they are negative", async (t) => {
  const variable = { dims: ["time", "level", "y", "x"], shape: [10, 3, 4, 5] };
  const place = (indices: [string, number][]) => placeAt([5, 0, 0, 1], variable, [2, 3], new Map(indices));
  t.strictSame(place([]), [5, 0, 0, 1]);
  t.strictSame(
    place([
      ["level", 2],
      ["time", -1],
    ]),
    [9, 2, 0, 1],
  );
  t.strictSame(place([["time", -10]]), [0, 0, 0, 1]);
  t.match(
    refusal(() => place([["time", 10]])),
    { code: "invalid-query", message: /-10 to 9, received '10'/ },
  );
  t.match(
    refusal(() => place([["time", -11]])),
    { message: /received '-11'/ },
  );
  t.match(
    refusal(() => place([["y", 0]])),
    { parameter: "index.y", message: /an index of time, level/ },
  );
  t.match(
    refusal(() => place([["nope", 0]])),
    { message: /an index of time, level, received 'nope'/ },
  );
  const flat = () => placeAt([0, 0], { dims: ["y", "x"], shape: [2, 2] }, [0, 1], new Map([["y", 0]]));
  t.match(refusal(flat), { message: /no index/ });
});
