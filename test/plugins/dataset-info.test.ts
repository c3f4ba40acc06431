import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import type { DocumentReply, RouteRequest } from "../../src/http/reply.js";
import type { Route } from "../../src/http/router.js";
import { stringifyJson } from "../../src/json/stringify-json.js";
import { coreRoutes } from "../../src/openapi/core-routes.js";
import type { PreviewService } from "../../src/pages/preview-service.js";
import datasetInfoPlugin, {
  groupDict,
  groupSchema,
} from "../../src/plugins/dataset-info/dataset-info-plugin.js";
import { createPageReplies } from "../../src/plugins/page-replies.js";
import { fakeContext } from "../support/datasets/fake-context.js";
import { type FakeService, fakeService } from "../support/datasets/fake-service.js";
import { fakeSnapshot, fakeType } from "../support/datasets/fake-snapshot.js";
import { airTemperature, climateTree, samplePreviews } from "../support/datasets/sample-datasets.js";

async function service(): Promise<FakeService> {
  const snapshots = [climateTree(), airTemperature()];
  const routes: Route[] = [];
  const context = fakeContext({ snapshots, previews: samplePreviews, routes });
  routes.push(...coreRoutes(context), ...(await datasetInfoPlugin.routes(context)));
  return fakeService(routes);
}

t.test("documents are made once per snapshot and carry its cache control", async (t) => {
  const { get } = await service();
  for (const path of ["keys", "dict", "info", "groups"]) {
    const first = (await get(`/datasets/air/${path}`)) as DocumentReply;
    t.equal(((await get(`/datasets/air/${path}`)) as DocumentReply).document, first.document, path);
    t.equal(first.cacheControl, "public, max-age=60");
    t.equal(first.document.contentType, "application/json");
  }
  const ids = (await get("/datasets")) as DocumentReply;
  t.equal(((await get("/datasets")) as DocumentReply).document, ids.document);
});

t.test("links of a page resolve to the same URLs however its path is written", async (t) => {
  const { text } = await service();
  const headers = { host: "data.example" };
  for (const path of ["groups/model-a/fine", "groups//model-a/fine", "groups/model-a/fine/"]) {
    const html = await text(`/datasets/climate/${path}`, headers);
    const links = Array.from(
      html.matchAll(/<a href="([^"]*)"/g),
      ([, link]) => new URL(link as string, `http://data.example/prefix/datasets/climate/${path}`).pathname,
    );
    t.strictSame(
      links,
      [
        "/prefix/",
        "/prefix/datasets/climate/",
        "/prefix/datasets/climate/groups/model-a",
        "/prefix/docs",
        "/prefix/datasets/climate/zarr/model-a/fine/",
        "/prefix/datasets/climate/zarr/model-a/fine/.zmetadata",
        "/prefix/datasets/climate/groups/model-a/fine/keys",
        "/prefix/datasets/climate/groups/model-a/fine/dict",
        "/prefix/datasets/climate/groups/model-a/fine/info",
        "/prefix/datasets/climate/groups",
        "/prefix/datasets/climate/tree",
      ],
      path,
    );
    t.match(html, "http://data.example/datasets/climate/zarr/model-a/fine");
    t.notMatch(html, /[\ufdd0\ufdd1]/);
  }
});

t.test("previews are on the page", async (t) => {
  const { text } = await service();
  t.match(await text("/datasets/air/"), '<span class="v">2014-12-31T18:00:00</span>');
});

const GROUP = fakeSnapshot("x", {
  attrs: { title: "T", count: 9007199254740993n, missing: Number.NaN },
  variables: {
    lat: { dims: ["lat"], shape: [2], type: fakeType("f", 4, ">"), attrs: { units: "degrees" } },
    name: { dims: ["lat"], shape: [2], type: fakeType("U", 16), coordinate: true },
    air: { dims: ["time", "lat"], shape: [3, 2], type: fakeType("i", 2), attrs: { scale_factor: 0.01 } },
    code: { dims: ["lat"], shape: [2], type: fakeType("S", 5) },
  },
}).tree.root;

t.test(
  "a dictionary has coordinates, attributes, dimensions and data variables, types as numpy's str",
  async (t) => {
    t.equal(
      stringifyJson(runNow(groupDict(GROUP))),
      '{"coords":{"lat":{"dims":["lat"],"attrs":{"units":"degrees"},"dtype":">f4","shape":[2]},' +
        '"name":{"dims":["lat"],"attrs":{},"dtype":"<U4","shape":[2]}},' +
        '"attrs":{"title":"T","count":9007199254740993,"missing":"NaN"},' +
        '"dims":{"lat":2,"time":3},' +
        '"data_vars":{"air":{"dims":["time","lat"],"attrs":{"scale_factor":0.01},"dtype":"int16","shape":[3,2]},' +
        `"code":{"dims":["lat"],"attrs":{},"dtype":${JSON.stringify(GROUP.variables.get("code")?.dataType.numpyStr)},"shape":[2]}}}`,
    );
  },
);

t.test("a schema has dimensions, variables and global attributes, types as numpy's name", async (t) => {
  t.equal(
    stringifyJson(runNow(groupSchema(GROUP))),
    '{"dimensions":{"lat":2,"time":3},' +
      '"variables":{"lat":{"type":"float32","dimensions":["lat"],"attributes":{"units":"degrees"}},' +
      '"name":{"type":"str128","dimensions":["lat"],"attributes":{}},' +
      '"air":{"type":"int16","dimensions":["time","lat"],"attributes":{"scale_factor":0.01}},' +
      '"code":{"type":"bytes40","dimensions":["lat"],"attributes":{}}},' +
      '"global_attributes":{"title":"T","count":9007199254740993,"missing":"NaN"}}',
  );
});

t.test("a variable called __proto__ is one like any other", async (t) => {
  const variables = Object.fromEntries([["__proto__", { dims: [], shape: [] }]]);
  const { root } = fakeSnapshot("x", { variables }).tree;
  t.match(stringifyJson(runNow(groupDict(root))), '"data_vars":{"__proto__":{"dims":[]');
  t.match(stringifyJson(runNow(groupSchema(root))), '"variables":{"__proto__":{"type"');
});

function request(host = "h"): RouteRequest {
  return {
    method: "GET",
    params: {},
    rawPath: "/datasets/air/",
    query: "",
    serviceUrl: `http://${host}`,
    header: () => undefined,
    signal: new AbortController().signal,
    reserve: () => undefined,
    body: async () => new Uint8Array(),
  };
}

function pages(values: PreviewService["values"]) {
  return createPageReplies(fakeContext({ previews: values }));
}

async function html(reply: Promise<DocumentReply>): Promise<string> {
  return Buffer.from((await reply).document.bytes).toString();
}

t.test("requests at the same time and soon after make one page", async (t) => {
  let asked = 0;
  const { reply } = pages(async () => {
    asked++;
    return undefined;
  });
  const air = airTemperature();
  const [first, second] = await Promise.all([
    reply(air, air.tree.root, false, request()),
    reply(air, air.tree.root, false, request()),
  ]);
  t.equal(first.document, second.document);
  t.equal((await reply(air, air.tree.root, false, request())).document, first.document);
  t.equal(asked, 4, "each coordinate once");
  const elsewhere = await reply(air, air.tree.root, false, request("other"));
  t.not(elsewhere.document.etag, first.document.etag);
  t.equal(asked, 4, "another address is the same page placed elsewhere");
});

t.test("a new snapshot has a new page at once", async (t) => {
  const { reply } = pages(async () => undefined);
  const before = fakeSnapshot("x", { attrs: { title: "before" } });
  const after = fakeSnapshot("x", { attrs: { title: "after" } });
  t.match(await html(reply(before, before.tree.root, false, request())), "before");
  t.match(await html(reply(after, after.tree.root, false, request())), "after");
});

t.test(
  "a page does not wait for slow previews, nor fail with failing ones, and is not cached for long",
  async (t) => {
    let asked = 0;
    const { reply } = pages(({ variable }) => {
      asked++;
      if (variable.name === "lat") return Promise.resolve({ first: ["75.0"], last: [] });
      if (variable.name === "lon") return Promise.reject(new Error("unreadable"));
      return new Promise(() => {});
    });
    const air = airTemperature();
    const started = performance.now();
    const shown = await reply(air, air.tree.root, false, request());
    t.ok(performance.now() - started < 20_000);
    t.match(Buffer.from(shown.document.bytes).toString(), '<span class="v">75.0</span>');
    t.equal(shown.cacheControl, "public, max-age=0, must-revalidate");
    t.equal(asked, 4);
    await sleep(1_100);
    await reply(air, air.tree.root, false, request());
    t.equal(asked, 8);
  },
);

t.test("a page needs at most 32 previews, and none of large chunks", async (t) => {
  const asked: string[] = [];
  const { reply } = pages(async ({ variable }) => {
    asked.push(variable.name);
    return undefined;
  });
  const coordinate = { dims: ["x"], shape: [5], coordinate: true };
  const many = fakeSnapshot("many", {
    variables: {
      huge: { dims: ["y", "x"], shape: [10_000, 10_000], coordinate: true },
      ...Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`c${index}`, coordinate])),
    },
  });
  await reply(many, many.tree.root, false, request());
  t.equal(asked.length, 32);
  t.notOk(asked.includes("huge"));
});

t.test("previews that never end do not pile up without bound", async (t) => {
  let asked = 0;
  const { reply } = pages(() => {
    asked++;
    return new Promise(() => {});
  });
  const variables = Object.fromEntries(
    Array.from({ length: 32 }, (_, index) => [`c${index}`, { dims: ["x"], shape: [5], coordinate: true }]),
  );
  const snapshots = Array.from({ length: 10 }, (_, index) => fakeSnapshot(`d${index}`, { variables }));
  await Promise.all(snapshots.map((snapshot) => reply(snapshot, snapshot.tree.root, false, request())));
  t.equal(asked, 128);
});
