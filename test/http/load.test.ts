import t from "tap";
import { type BodyTaker, createLoad } from "../../src/http/load.js";

const LIMITS = { maxRequestsInFlight: 3, maxPagesInFlight: 1, maxBodyBytesInFlight: 100 };

t.test("sheds pages before chunks", async (t) => {
  const load = createLoad(LIMITS);
  load.begin();
  load.admit("page");
  load.begin();
  t.throws(() => load.admit("page"), { code: "overloaded" });
  load.admit("chunk");
  load.begin();
  load.admit("chunk");
  load.begin();
  t.throws(() => load.admit("chunk"), { code: "overloaded" });
});

function begin(load: ReturnType<typeof createLoad>): BodyTaker {
  load.begin();
  return { bodyBytes: 0 };
}

t.test("lets bodies wait for room in order, and forgets nobody", async (t) => {
  const load = createLoad(LIMITS);
  const order: number[] = [];
  const first = begin(load);
  load.setBodyBytes(first, 150);
  const takers = [1, 2, 3, 4].map((number) => {
    const taker = begin(load);
    void load.reserve(taker, 60)?.then(() => order.push(number));
    return taker;
  });
  t.equal(load.stats.waiting, 4);
  load.end(takers[1] as BodyTaker);
  t.equal(load.stats.waiting, 3, "whoever goes away leaves nothing behind");
  load.end(first);
  await Promise.resolve();
  t.strictSame(order, [2, 1, 3], "the one that went away goes on to find that it is over");
  t.match(load.stats, { waiting: 1, bodyBytesInFlight: 120 });
  for (const index of [0, 2]) load.end(takers[index] as BodyTaker);
  await Promise.resolve();
  t.strictSame(order, [2, 1, 3, 4]);
  load.end(takers[3] as BodyTaker);
  t.match(load.stats, { waiting: 0, requestsInFlight: 0, bodyBytesInFlight: 0, requests: 5 });
  await load.idle();
});

t.test("keeps room for bodies that are being made", async (t) => {
  const load = createLoad(LIMITS);
  const [a, b, c] = [begin(load), begin(load), begin(load)];
  t.equal(load.reserve(a, 60), undefined);
  t.equal(load.reserve(b, 60), undefined);
  let letIn = false;
  void load.reserve(c, 60)?.then(() => {
    letIn = true;
  });
  t.equal(load.reserve(a, 60), undefined, "a request that is begun again has its room still");
  load.setBodyBytes(a, 40);
  await Promise.resolve();
  t.notOk(letIn, "100 bytes are taken");
  load.setBodyBytes(b, 1);
  await Promise.resolve();
  t.ok(letIn, "bodies that turn out smaller make room");
  t.equal(load.stats.bodyBytesInFlight, 101);
});
