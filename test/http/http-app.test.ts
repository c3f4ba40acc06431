import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import type { DocumentReply } from "../../src/http/reply.js";
import { createHttpServer } from "../../src/http/server.js";
import { jsonOf, openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { createTestLog, routeOf } from "../support/servers/serve-routes.js";

function page(text: string): DocumentReply {
  return {
    kind: "document",
    document: createDocument(`"${text}"`, "application/json"),
  };
}

t.test("a server may listen before it has an app, and says that it starts", async (t) => {
  const server = createHttpServer({ log: createTestLog().log });
  t.teardown(() => server.close(0));
  const { port } = await server.listen("127.0.0.1", 0);
  const early = await rawRequest(port, "/page");
  t.equal(early.status, 503);
  t.match(early.headers, { "retry-after": "1", "access-control-allow-origin": "*" });
  t.strictSame(jsonOf(early), { detail: "The server is starting; try again later" });
  server.use({ routes: [routeOf("/page", () => page("here"))] });
  t.equal(jsonOf(await rawRequest(port, "/page")), "here");
});

t.test("another app takes over at once; requests in flight keep theirs", async (t) => {
  const server = createHttpServer({ log: createTestLog().log });
  t.teardown(() => server.close(0));
  let go = () => {};
  const waits = new Promise<void>((resolve) => {
    go = resolve;
  });
  const late = async () => {
    await waits;
    return page("old");
  };
  server.use({
    routes: [routeOf("/page", () => page("old")), routeOf("/late", late)],
    cacheControl: "max-age=1",
    corsOrigin: "https://old.example",
  });
  const { port } = await server.listen("127.0.0.1", 0);
  // Often enough for its route to be remembered.
  for (let i = 0; i < 3; i += 1) t.equal(jsonOf(await rawRequest(port, "/page")), "old");
  const began = await openConnection(port);
  began.send(requestText("/late"));
  while (server.stats.requestsInFlight === 0) await delay(5);

  server.use({ routes: [routeOf("/page", () => page("new"))], rootPath: "/data", cacheControl: "max-age=2" });
  t.equal((await rawRequest(port, "/page")).status, 404);
  const answer = await rawRequest(port, "/data/page");
  t.equal(jsonOf(answer), "new");
  t.match(answer.headers, { "cache-control": "max-age=2", "access-control-allow-origin": "*" });
  go();
  const old = await began.answer();
  t.equal(jsonOf(old), "old");
  t.match(old.headers, { "cache-control": "max-age=1", vary: /Origin/ });
  began.send(requestText("/data/page"));
  t.equal(
    jsonOf(await began.answer()),
    "new",
    "the next on the same connection is answered by the present one",
  );
});

t.test("an invalid app changes nothing", async (t) => {
  const server = createHttpServer({ log: createTestLog().log });
  t.teardown(() => server.close(0));
  server.use({ routes: [routeOf("/page", () => page("old"))] });
  const { port } = await server.listen("127.0.0.1", 0);
  t.throws(() => server.use({ routes: [], rootPath: "no" }), {
    code: "invalid-config",
    message: /received 'no'/,
  });
  const route = { ...routeOf("/page", () => page("new")), priority: undefined };
  t.throws(() => server.use({ routes: [route as never] }), {
    code: "invalid-config",
    message: /Route '\/page': expected priority 'page' or 'chunk', received undefined/,
  });
  t.equal(jsonOf(await rawRequest(port, "/page")), "old");
});
