import t from "tap";
import type { DocumentPieces } from "../../src/http/create-document.js";
import { createSnapshotMemo } from "../../src/plugins/documents.js";
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
