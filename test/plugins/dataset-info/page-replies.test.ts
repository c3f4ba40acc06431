import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import type { DocumentReply, RouteRequest } from "../../../src/http/reply.js";
import type { PreviewService } from "../../../src/pages/preview-service.js";
import { createPageReplies } from "../../../src/plugins/page-replies.js";
import { fakeContext } from "../../support/datasets/fake-context.js";
import { fakeSnapshot } from "../../support/datasets/fake-snapshot.js";
import { airTemperature } from "../../support/datasets/sample-datasets.js";

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

t.test("the Zarr URL has the address that the client uses", async (t) => {
  const { reply } = pages(async () => undefined);
  const air = airTemperature();
  t.match(await html(reply(air, air.tree.root, false, request("h/root"))), "http://h/root/datasets/air/zarr");
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
    t.ok(performance.now() - started < 3_000);
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
