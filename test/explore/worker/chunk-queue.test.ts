import t from "tap";
import { type ChunkOwner, ChunkQueue } from "../../../src/explore/worker/chunk-queue.js";

interface Reading {
  readonly key: string;
  readonly signal: AbortSignal;
  resolve(value: string): void;
  reject(error: unknown): void;
}

t.test("a few chunks are read at a time, those of the first owner first", async (t) => {
  const { queue, readings, owner } = setUp(2);
  const second = owner(["c", "d"], 2);
  const first = owner(["a", "b"], 1);
  queue.want(second.owner);
  queue.want(first.owner);
  t.same(keys(readings), ["c", "d"], "what runs is not given up for others");
  await finish(readings, "c");
  await finish(readings, "d");
  t.same(keys(readings), ["a", "b"]);
  t.same(second.read, ["c", "d"]);
  t.same(first.read, []);
});

t.test("what no owner wants is cancelled, what another one wants goes to it", async (t) => {
  const { queue, readings, owner } = setUp(3);
  const one = owner(["a", "b"], 1);
  const other = owner(["b", "c"], 1);
  queue.want(one.owner);
  const [a] = readings;
  queue.want(other.owner, one.owner);
  t.ok(a?.signal.aborted);
  t.same(keys(readings), ["b", "c"]);
  await finish(readings, "b");
  t.same([one.read, other.read], [[], ["b"]]);
  queue.release(other.owner);
  t.same(keys(readings), []);
});

t.test(
  "a chunk that is cancelled and wanted again is read again; the former reading is not heard",
  async (t) => {
    const { queue, readings, owner } = setUp(3);
    const one = owner(["a"], 1);
    queue.want(one.owner);
    const former = readings[0]!;
    queue.release(one.owner);
    const again = owner(["a"], 1);
    queue.want(again.owner);
    former.resolve("old");
    await former.signal.aborted;
    await finish(readings, "a");
    t.same(again.read, ["a"]);
    t.match(queue.get("a"), { chunk: "a" });
  },
);

t.test("both owners of a chunk are told of it, and of its failure", async (t) => {
  const { queue, readings, owner } = setUp(3);
  const one = owner(["a", "b"], 1);
  const other = owner(["a", "b"], 2);
  queue.want(one.owner);
  queue.want(other.owner);
  t.same(keys(readings), ["a", "b"], "each once");
  await finish(readings, "a");
  await finish(readings, "b", new Error("damaged"));
  t.same([one.read, other.read, one.failed, other.failed], [["a"], ["a"], ["b"], ["b"]]);
  t.notOk(queue.has("b"));
});

t.test("the least recently used chunks are forgotten", async (t) => {
  const { queue, readings, owner } = setUp(9, 3);
  queue.want(owner(["a", "b", "c"], 1).owner);
  for (const key of ["a", "b", "c"]) await finish(readings, key);
  t.equal(queue.bytes, 3);
  queue.get("a");
  queue.want(owner(["d", "a"], 1).owner);
  t.same(keys(readings), ["d"], "what is cached is not read");
  await finish(readings, "d");
  t.same(
    ["a", "b", "c", "d"].filter((key) => queue.has(key)),
    ["a", "c", "d"],
  );
  t.equal(queue.bytes, 3);
});

t.test("a single chunk is a promise, which its signal ends", async (t) => {
  const { queue, readings } = setUp(1);
  const job = (key: string) => ({ key, read: (signal: AbortSignal) => begin(readings, key, signal) });
  const a = queue.read(job("a"), 0);
  await finish(readings, "a");
  t.equal(await a, "a");
  t.equal(await queue.read(job("a"), 0), "a");
  const controller = new AbortController();
  const b = queue.read(job("b"), 0, controller.signal);
  controller.abort(new Error("enough"));
  await t.rejects(b, { message: "enough" });
  t.same(keys(readings), []);
  await t.rejects(queue.read(job("c"), 0, controller.signal), { message: "enough" });
  const rejected = t.rejects(queue.read(job("d"), 0), { message: "damaged" });
  await finish(readings, "d", new Error("damaged"));
  await rejected;
});

function setUp(maxInFlight: number, maxBytes = 100) {
  const readings: Reading[] = [];
  const queue = new ChunkQueue<string>({ maxInFlight, maxBytes }, () => 1);
  const owner = (wanted: readonly string[], priority: number) => {
    const read: string[] = [];
    const failed: string[] = [];
    const owner: ChunkOwner<string> = {
      jobs: wanted.map((key) => ({ key, read: (signal) => begin(readings, key, signal) })),
      priority,
      onRead: (key) => read.push(key),
      onFailed: (key) => failed.push(key),
    };
    return { owner, read, failed };
  };
  return { queue, readings, owner };
}

function begin(readings: Reading[], key: string, signal: AbortSignal): Promise<string> {
  return new Promise((resolve, reject) => {
    const reading = { key, signal, resolve, reject };
    readings.push(reading);
    signal.addEventListener("abort", () => {
      readings.splice(readings.indexOf(reading), 1);
    });
  });
}

/** Ends a reading, and waits until the queue has heard of it. */
async function finish(readings: Reading[], key: string, error?: Error): Promise<void> {
  const [reading] = readings.splice(
    readings.findIndex((each) => each.key === key),
    1,
  );
  if (error === undefined) reading?.resolve(key);
  else reading?.reject(error);
  await new Promise((resolve) => setImmediate(resolve));
}

function keys(readings: readonly Reading[]): string[] {
  return readings.map(({ key }) => key);
}
