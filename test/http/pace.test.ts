import t from "tap";
import { createLoad, DEFAULT_LOAD_LIMITS } from "../../src/http/load.js";
import { Pace } from "../../src/http/stream-body.js";

t.test("a client has stalled when it takes nothing, or next to nothing, for long", (t) => {
  const TIMEOUT_MS = 60_000;
  const LOOK_MS = 4_000;
  /** When a client is dropped that takes bytes at this pace; undefined: not within the hour. */
  function droppedAfterMs(takenBy: (ms: number) => number): number | undefined {
    const pace = new Pace(0, 0, TIMEOUT_MS);
    for (let ms = LOOK_MS; ms <= 3_600_000; ms += LOOK_MS) {
      pace.look(Math.floor(takenBy(ms)), ms);
      if (pace.hasStalled(ms)) return ms;
    }
    return undefined;
  }
  const perSecond = (bytes: number) => (ms: number) => (bytes * ms) / 1000;
  t.equal(
    droppedAfterMs(() => 0),
    60_000,
  );
  t.equal(droppedAfterMs(perSecond(1 / 59)), 60_000, "a byte now and then is not enough");
  t.equal(droppedAfterMs(perSecond(1_000)), 60_000);
  t.equal(droppedAfterMs(perSecond(1_100)), undefined);
  t.equal(
    droppedAfterMs((ms) => Math.floor(ms / 50_000) * 100_000),
    undefined,
    "bursts are as good",
  );
  t.equal(
    droppedAfterMs((ms) => 1e6 * Math.min(ms, 300_000)),
    360_000,
    "from when it stops",
  );
  t.end();
});

t.test("how short memory is, is what those need who have waited too long", async (t) => {
  const load = createLoad({ ...DEFAULT_LOAD_LIMITS, maxBodyBytesInFlight: 100 });
  const takers = [80, 30, 40].map((byteLength) => ({ byteLength, bodyBytes: 0 }));
  for (const taker of takers) {
    load.begin();
    void load.reserve(taker, taker.byteLength);
  }
  t.equal(load.shortage(0), 80 + 30 + 40 - 100, "the second is let in with the first, the third waits");
  t.equal(load.shortage(10_000), 0, "nobody has waited for so long");
  for (const taker of takers) load.end(taker);
  t.equal(load.shortage(0), 0);
});
