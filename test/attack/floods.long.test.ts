import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { startTarget } from "../support/servers/attack-target.js";
import { openConnection, requestText } from "../support/servers/raw-request.js";
import { inLots, openSocket } from "./raw-exchange.js";

const BOUND = 300;
const target = await startTarget(t, ["--max-connections", String(BOUND)]);
const { port } = target;

/** Asks for all of them on a few connections. @returns How often each status came. */
async function flood(paths: readonly string[], headers: (i: number) => Record<string, string> = () => ({})) {
  const statuses = new Map<number, number>();
  const lanes = Array.from({ length: 8 }, (_, lane) => lane);
  await Promise.all(
    lanes.map(async (lane) => {
      const connection = await openConnection(port);
      for (let i = lane; i < paths.length; i += lanes.length) {
        connection.send(requestText(paths[i]!, { headers: headers(i) }));
        const { status } = await connection.answer();
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
      connection.socket.destroy();
    }),
  );
  return Object.fromEntries(statuses);
}

function many(count: number, pathOf: (i: number) => string): string[] {
  return Array.from({ length: count }, (_, i) => pathOf(i));
}

t.test("thousands of paths that lead nowhere are 404 and harm nobody", async (t) => {
  const filler = "z".repeat(400);
  t.same(await flood(many(4_000, (i) => `/datasets/air/zarr/${filler}${i}/0.0.0`)), { 404: 4_000 });
  t.same(await flood(many(2_000, (i) => `/datasets/${filler}${i}/info`)), { 404: 2_000 });
  t.same(await flood(many(2_000, (i) => `/datasets/air/zarr/air/${i + 100_000}.0.0`)), { 404: 2_000 });
  await target.isUnharmed(t);
});

t.test("the same name in thousands of spellings is answered for each of them", async (t) => {
  // Each letter as it is or percent-encoded: every path is asked for twice, so that it would be worth keeping.
  const spell = (text: string, bits: number) =>
    [...text]
      .map((letter, i) => ((bits >> i) & 1 ? `%${letter.charCodeAt(0).toString(16)}` : letter))
      .join("");
  const paths = many(
    3_000,
    (i) => `/datasets/${spell("air", i & 7)}/zarr/${spell("air/0.0.0", (i >> 3) & 7)}`,
  );
  const spelled = await flood(paths.map((path) => path.replaceAll("%2f", "/")));
  t.same(spelled, { 200: 3_000 });
  await target.isUnharmed(t);
});

t.test("headers made up anew for each request harm nobody", async (t) => {
  const filler = "e".repeat(150);
  const paths = many(3_000, () => "/datasets/air/info");
  t.same(await flood(paths, (i) => ({ "Accept-Encoding": `${filler}${i}, x;q=0.5` })), { 200: 3_000 });
  t.same(await flood(paths, (i) => ({ Origin: `https://${filler}${i}.example` })), { 200: 3_000 });
  t.same(
    await flood(paths, (i) => ({ "X-Request-Id": `${filler}${i}`, "X-Forwarded-Host": `${i}.example` })),
    {
      200: 3_000,
    },
  );
  await target.isUnharmed(t);
});

t.test(
  "connections beyond the bound are closed, the others served, and all of it is over when they go",
  async (t) => {
    const sockets: Socket[] = [];
    t.teardown(() => {
      for (const socket of sockets) socket.destroy();
    });
    sockets.push(...(await inLots(Array.from({ length: BOUND + 150 }), 50, () => openSocket(port))));
    await delay(500);
    const open = sockets.filter(({ destroyed }) => !destroyed);
    for (const socket of open) socket.write(requestText("/datasets"));
    const served = await Promise.all(
      open.map(async (socket) => {
        const [data] = (await Promise.race([once(socket, "data"), once(socket, "close")])) as [unknown];
        return data instanceof Buffer && data.toString("latin1").startsWith("HTTP/1.1 200");
      }),
    );
    const count = served.filter(Boolean).length;
    t.ok(count > BOUND - 20 && count <= BOUND, "as many as the bound allows are served", { count });
    for (const socket of sockets) socket.destroy();
    await delay(200);
    await target.isUnharmed(t);
  },
);
