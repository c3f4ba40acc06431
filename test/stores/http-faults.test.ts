import { setMaxListeners } from "node:events";
import t, { type Test } from "tap";
import type { ZpublishError } from "../../src/errors.js";
import type { ByteStore, ReadObjectOptions } from "../../src/stores/byte-store.js";
import { setSourceTimeout } from "../../src/stores/file-calls.js";
import { openByteStore } from "../../src/stores/open-byte-store.js";
import type { Fault } from "../support/origins/fault.js";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";

const TEXT = "0123456789";
/** Milliseconds: longer than any test here, on a busy machine as well. */
const LIMIT_MS = 60_000;
setSourceTimeout(LIMIT_MS);

/** Sets the time limit of a test that waits for its end. */
function setLimit(t: Test, ms: number): void {
  setSourceTimeout(ms);
  t.teardown(() => setSourceTimeout(LIMIT_MS));
}

/** A signal for many readers. */
function abortable(): { readonly signal: AbortSignal; readonly abort: () => void } {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return { signal: controller.signal, abort: () => controller.abort() };
}

/** Ways to ask for an object, each with one of its own, and the right answer. */
const WAYS = {
  whole: { options: {}, right: TEXT },
  range: { options: { range: { offset: 2, byteLength: 4 } }, right: "2345" },
  suffix: { options: { range: { last: 3 } }, right: "789" },
  stat: { options: undefined, right: "10 bytes" },
} as const satisfies Record<string, { options: ReadObjectOptions | undefined; right: string }>;

type Way = keyof typeof WAYS;

/** What comes of a request: the right answer, or an error's code, followed by `again` if it was sent more than once. */
type Outcome = "right" | "refused" | "refused again";
type Expected = Readonly<Record<Way, Outcome>>;

const all = (one: Outcome): Expected => ({ whole: one, range: one, suffix: one, stat: one });
const RIGHT = all("right");
const REFUSED = all("refused");
const RETRIED = all("refused again");
const PARTS_REFUSED: Expected = { ...RIGHT, range: "refused", suffix: "refused" };

const FAULTS: readonly (readonly [Fault, Expected])[] = [
  ...[408, 425, 429, 500, 502, 503, 504].map((status) => [{ status }, RETRIED] as const),
  [{ code: "SlowDown" }, RETRIED],
  [{ disconnect: true }, RETRIED],
  [{ cutAfter: 2 }, { ...RETRIED, stat: "right" }],
  [
    { chunked: true, cutAfter: 0 },
    { ...RETRIED, stat: "refused" },
  ],
  // A HEAD that says a wrong length cannot be told from one that is right.
  [{ lengthError: 3 }, { ...RETRIED, stat: "refused" }],
  ...[400, 401, 403, 418].map((status) => [{ status }, REFUSED] as const),
  // HEAD is tried again as GET.
  [{ status: 501 }, REFUSED],
  [{ status: 304 }, REFUSED],
  [{ status: 412 }, REFUSED],
  [{ redirect: "https://elsewhere.example/a?token=secret" }, REFUSED],
  [{ html: true }, REFUSED],
  [{ gzip: true }, REFUSED],
  [{ gzip: true, chunked: true }, REFUSED],
  [{ ignoreRange: true }, RIGHT],
  [{ ignoreRange: true, chunked: true }, RIGHT],
  [{ shortRange: { bytes: 1 } }, RIGHT],
  [{ shortRange: { bytes: 2 }, chunked: true }, RIGHT],
  [{ shortRange: { bytes: 2, from: "end" } }, { ...RIGHT, range: "refused", suffix: "refused again" }],
  [{ contentRange: "bytes 0-3/10" }, PARTS_REFUSED],
  [{ contentRange: "bytes 2-5/*" }, PARTS_REFUSED],
  [{ contentRange: "bytes */10" }, PARTS_REFUSED],
  [{ contentRange: "items 2-5/10" }, PARTS_REFUSED],
  [{ contentRange: null }, PARTS_REFUSED],
  [{ chunked: true }, RIGHT],
  [{ trickle: { bytes: 1, ms: 1 } }, RIGHT],
  [{ delay: 20 }, RIGHT],
  [{ etag: null, lastModified: null }, RIGHT],
  [{ etag: 'W/"weak"' }, RIGHT],
];

async function ask(store: ByteStore, way: Way): Promise<string> {
  const { options } = WAYS[way];
  if (options === undefined) {
    const found = await store.stat(way);
    return found === undefined ? "absent" : `${found.byteLength} bytes`;
  }
  const found = await store.read(way, options);
  return found === undefined ? "absent" : Buffer.from(found.bytes).toString();
}

async function startOrigin(t: Test): Promise<FaultyOrigin> {
  return startFaultyOrigin(t, { objects: { whole: TEXT, range: TEXT, suffix: TEXT, stat: TEXT } });
}

async function outcomeOf(origin: FaultyOrigin, store: ByteStore, way: Way): Promise<string> {
  const answer = await ask(store, way).catch((error: ZpublishError) => {
    const isNamed = error.message.includes(`'${way}'`) && !error.message.includes("secret");
    return error.code === "source-unreadable" && isNamed ? "refused" : `${error.code}: ${error.message}`;
  });
  if (answer === WAYS[way].right) return "right";
  const method = way === "stat" ? "HEAD" : "GET";
  return answer === "refused" && origin.count({ key: way, method }) > 1 ? "refused again" : answer;
}

t.test("a fault never yields wrong bytes, nor absence, and is retried if that may help", async (t) => {
  await Promise.all(
    FAULTS.map(async ([fault, expected]) => {
      const origin = await startOrigin(t);
      const store = openByteStore(origin.url, []);
      origin.setFault(() => fault);
      const found = await Promise.all(
        (Object.keys(WAYS) as Way[]).map(async (way) => [way, await outcomeOf(origin, store, way)] as const),
      );
      // A wrong length of HEAD is believed: the reads that follow have the right one.
      const actual = Object.fromEntries(found);
      if (fault.lengthError !== undefined) actual.stat = "refused";
      t.same(actual, expected, JSON.stringify(fault));
    }),
  );
});

t.test(
  "a server that answers a range with fewer bytes is asked for the rest of the same version",
  async (t) => {
    const origin = await startOrigin(t);
    const store = openByteStore(origin.url, []);
    const shortRange = { bytes: 2 };
    const whole = { offset: 1, byteLength: 5 };
    origin.setFault(() => ({ shortRange }));
    const memory = new Uint8Array(5);
    const found = await store.read("range", { range: whole, allocate: () => memory });
    t.equal(found?.bytes, memory, "into the memory of its reader");
    t.equal(Buffer.from(memory).toString(), "12345");
    t.same(
      origin.requests.map(({ headers }) => headers.range),
      ["bytes=1-5", "bytes=3-5", "bytes=5-5"],
    );
    t.same(
      origin.requests.map(({ headers }) => headers["if-match"]),
      [undefined, found?.version.etag, found?.version.etag],
    );
    origin.setFault(({ before }) =>
      before === 0 ? { shortRange: { ...shortRange, from: "end" } } : undefined,
    );
    t.equal(await ask(store, "suffix"), "789", "also if the beginning is missing");
    for (const change of [{ etag: '"other"' }, { status: 404 }, { status: 412 }]) {
      origin.resetCounts();
      origin.setFault(({ before }) => (before === 0 ? { shortRange } : { shortRange, ...change }));
      await t.rejects(
        store.read("range", { range: whole }),
        { code: "source-changed" },
        JSON.stringify(change),
      );
    }
    origin.put("long", new Uint8Array(5_000));
    origin.setFault(() => ({ shortRange: { bytes: 1 } }));
    await t.rejects(store.read("long", { range: { last: 4_000 } }), {
      code: "source-unreadable",
      message: "'long': expected 4000 bytes, received 1024 in 1024 answers",
    });
  },
);

t.test("an object is read whole for a part of it, up to 64 MiB, if a server ignores ranges", async (t) => {
  const origin = await startFaultyOrigin(t);
  const store = openByteStore(origin.url, []);
  const longest = 64 * 2 ** 20;
  const bytes = new Uint8Array(longest + 1).fill(1);
  bytes.set(Buffer.from("here"), 40_000_000);
  bytes.set(Buffer.from("end"), longest - 3);
  origin.put("longest", bytes.subarray(0, longest));
  origin.put("longer", bytes);
  const here = { offset: 40_000_000, byteLength: 4 };
  for (const chunked of [undefined, true] as const) {
    origin.setFault(() => ({ ignoreRange: true, ...(chunked && { chunked }) }));
    const found = await store.read("longest", { range: here, maxByteLength: 4 });
    t.same([Buffer.from(found!.bytes).toString(), found!.objectByteLength], ["here", longest]);
    const last = await store.read("longest", { range: { last: 3 } });
    t.equal(Buffer.from(last!.bytes).toString(), "end");
    await t.rejects(store.read("longest", { range: { offset: longest, byteLength: 1 } }), {
      code: "corrupt-chunk",
      message: `'longest': expected at least ${longest + 1} bytes, received ${longest}`,
    });
    await t.rejects(store.read("longer", { range: here }), {
      code: "source-unreadable",
      message:
        "'longer': expected bytes 40000000-40000003 (206), received the whole object (200), above 64 MiB",
    });
  }
});

t.test("a fault that passes is not noticed", async (t) => {
  const passing: Fault[] = [
    { status: 503, retryAfter: "0" },
    { status: 429 },
    { status: 500, retryAfter: new Date(0).toUTCString() },
    { status: 503, retryAfter: "soon" },
    { code: "InternalError" },
    { disconnect: true },
    { cutAfter: 2 },
    { lengthError: 3 },
  ];
  await Promise.all(
    passing.map(async (fault) => {
      const origin = await startOrigin(t);
      const store = openByteStore(origin.url, []);
      origin.setFault(({ before }) => (before === 0 ? fault : undefined));
      for (const way of ["whole", "range", "suffix"] as const) {
        t.equal(await ask(store, way), WAYS[way].right, `${JSON.stringify(fault)} ${way}`);
        t.equal(origin.count({ key: way }), 2, "two requests");
      }
    }),
  );
});

t.test("Retry-After is honoured: no other request comes before", async (t) => {
  const origin = await startOrigin(t);
  const store = openByteStore(origin.url, []);
  const times: number[] = [];
  origin.setFault(() => {
    times.push(performance.now());
    return times.length === 1 ? { status: 503, retryAfter: "1" } : undefined;
  });
  t.equal(await ask(store, "whole"), TEXT);
  const [first = 0, second = 0] = times;
  t.ok(second - first >= 990, `${second - first} ms between both`);
});

t.test("a server that asks to come back after the time limit is not waited for", async (t) => {
  const origin = await startOrigin(t);
  origin.setFault(() => ({ status: 503, retryAfter: "3600" }));
  const began = performance.now();
  await t.rejects(ask(openByteStore(origin.url, []), "whole"), { code: "source-unreadable", message: /503/ });
  t.ok(performance.now() - began < LIMIT_MS);
  t.equal(origin.count(), 1);
});

t.test("a hang ends within the time limit, and its connection is closed", async (t) => {
  setLimit(t, 1_000);
  const faults: Fault[] = [
    { hang: "before-headers" },
    { hang: "after-headers" },
    { trickle: { bytes: 1, ms: 300 } },
  ];
  await Promise.all(
    faults.map(async (fault) => {
      const origin = await startOrigin(t);
      origin.setFault(() => fault);
      const answer = ask(openByteStore(origin.url, []), "whole");
      const message = /no answer within 1 s/;
      await t.rejects(answer, { code: "source-unreadable", message }, JSON.stringify(fault));
      t.equal(origin.count(), 1);
      await origin.requests[0]?.closed;
    }),
  );
});

t.test("requests that wait for others which hang fail within the time limit, too", async (t) => {
  const origin = await startOrigin(t);
  const store = openByteStore(origin.url, []);
  origin.setFault(() => ({ hang: "before-headers" }));
  const limitMs = 3_000;
  setLimit(t, limitMs);
  const began = performance.now();
  const answers = await Promise.allSettled(Array.from({ length: 100 }, () => store.read("whole")));
  t.match(answers, Array(100).fill({ status: "rejected", reason: { code: "source-unreadable" } }));
  // In turns of 32 they would take four times the limit.
  t.ok(performance.now() - began < 3 * limitMs, `${performance.now() - began} ms`);
  setSourceTimeout(LIMIT_MS);
  origin.setFault(() => undefined);
  t.equal(await ask(store, "whole"), TEXT, "places are free again");
});

t.test("another store is not held up by one that hangs", async (t) => {
  const [hanging, sound] = [await startOrigin(t), await startOrigin(t)];
  hanging.setFault(() => ({ hang: "before-headers" }));
  const store = openByteStore(hanging.url, []);
  const { signal, abort } = abortable();
  const waiting = Promise.allSettled(Array.from({ length: 200 }, () => store.read("whole", { signal })));
  await hanging.requested({ key: "whole" }, 32);
  for (let i = 0; i < 20; i++) t.equal(await ask(openByteStore(sound.url, []), "whole"), TEXT);
  t.equal(hanging.count(), 32, "the first ones have no answer yet");
  abort();
  await waiting;
});

t.test("a reader that goes ends its request, also while it waits or pauses", async (t) => {
  const faults: Fault[] = [
    { hang: "before-headers" },
    { hang: "after-headers" },
    { status: 503, retryAfter: "0" },
  ];
  for (const fault of faults) {
    const origin = await startOrigin(t);
    const store = openByteStore(origin.url, []);
    origin.setFault(() => fault);
    const controller = new AbortController();
    const reading = store.read("whole", { signal: controller.signal });
    await origin.requested({ key: "whole" });
    controller.abort();
    await t.rejects(reading, { code: "cancelled" }, JSON.stringify(fault));
    await origin.requests[0]?.closed;
    await t.rejects(store.read("whole", { signal: controller.signal }), { code: "cancelled" });
  }
  const origin = await startOrigin(t);
  const store = openByteStore(origin.url, []);
  origin.setFault(() => ({ hang: "before-headers" }));
  const { signal, abort } = abortable();
  const running = Array.from({ length: 32 }, () => store.read("whole", { signal }));
  const settled = Promise.allSettled(running);
  await origin.requested({ key: "whole" }, 32);
  const one = new AbortController();
  const queued = store.read("whole", { signal: one.signal });
  one.abort();
  await t.rejects(queued, { code: "cancelled" });
  t.equal(origin.count(), 32, "it was never sent");
  abort();
  await settled;
});

t.test("an origin that is gone is a failure", async (t) => {
  const origin = await startOrigin(t);
  const store = openByteStore(origin.url, []);
  await origin.stop();
  const refused = { code: "source-unreadable", message: /ECONNREFUSED/ };
  await Promise.all((Object.keys(WAYS) as Way[]).map((way) => t.rejects(ask(store, way), refused, way)));
});
