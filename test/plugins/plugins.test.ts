import t from "tap";
import type { DocumentPieces } from "../../src/http/create-document.js";
import { createSnapshotMemo } from "../../src/plugins/documents.js";
import { parsePictureQuery } from "../../src/plugins/thumbnail-plugin.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";

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
