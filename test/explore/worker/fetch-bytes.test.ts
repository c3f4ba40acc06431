import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import t from "tap";
import { fetchBytes } from "../../../src/explore/worker/chunk-queue.js";

t.test("a request asks for bytes rather than a redirect, and has the token", async (t) => {
  const asked: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    asked.push(request.headers);
    response.end("bytes");
  });
  t.teardown(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/0.0`;
  const bytes = await fetchBytes(url, { token: "secret", what: "chunk 0.0" });
  t.equal(Buffer.from(bytes ?? []).toString(), "bytes");
  await fetchBytes(url, { token: undefined, what: "chunk 0.0" });
  t.match(asked, [
    { prefer: "respond-direct", authorization: "Bearer secret" },
    { prefer: "respond-direct" },
  ]);
  t.notOk("authorization" in (asked[1] ?? {}));
});
