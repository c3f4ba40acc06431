import t from "tap";
import { createLoad } from "../../src/http/load.js";

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

t.test("lets bodies wait for room in order, and forgets nobody", async (t) => {
  const load = createLoad(LIMITS);
  const order: number[] = [];
  load.begin();
  load.addBodyBytes(150);
  for (const number of [1, 2, 3, 4]) {
    load.begin();
    // The second one's client has gone when its turn comes.
    void load.room(() => number !== 2)?.then(() => order.push(number));
  }
  t.equal(load.stats.waiting, 4);
  load.removeBodyBytes(150);
  load.end();
  await Promise.resolve();
  t.strictSame(order.slice(0, 1), [1]);
  // Whoever was let in ends without having had a body, and lets the next in.
  for (let i = 0; i < 4; i += 1) load.end();
  await Promise.resolve();
  t.strictSame(order, [1, 2, 3, 4]);
  t.match(load.stats, { waiting: 0, requestsInFlight: 0, bodyBytesInFlight: 0, requests: 5 });
  t.equal(
    load.room(() => true),
    undefined,
  );
  await load.idle();
});
