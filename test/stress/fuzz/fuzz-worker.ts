/**
 * A process of its own: `node fuzz-worker.js JSON` tries damaged inputs until its time is over, as a `FuzzOrder` says, and prints a
 * line of JSON before and after every batch. The input that is about to be tried is always in the file `current`, in case the
 * process dies or is stuck.
 */
import { mkdirSync } from "node:fs";
import { createRandom } from "../../../bench/random.js";
import { codecFuzz } from "./codec-fuzz.js";
import { fileFuzz } from "./file-fuzz.js";
import { createInputKeeper, type FuzzKind, type FuzzLine, type FuzzOrder, fuzzBatch } from "./fuzz.js";

const KINDS: Readonly<Record<string, FuzzKind>> = { codecs: codecFuzz, files: fileFuzz };

/** Bytes of an item of each buffer's constructor. */
const BUFFERS: Readonly<Record<string, number>> = {
  ...{ ArrayBuffer: 1, SharedArrayBuffer: 1, Uint8Array: 1, Int8Array: 1, Uint16Array: 2, Int16Array: 2 },
  ...{ Uint32Array: 4, Int32Array: 4, Float32Array: 4, Float64Array: 8, BigInt64Array: 8, BigUint64Array: 8 },
};
/** Page of WebAssembly's memory. */
const PAGE_BYTES = 65_536;

const order = JSON.parse(process.argv[2]!) as FuzzOrder;
mkdirSync(order.folder, { recursive: true });
const kind = KINDS[order.kind]!;
const { subjects: all, notes } = await kind.open(order.folder);
const subjects = all.filter(({ name }) => name.startsWith(order.only));
if (subjects.length === 0) {
  const names = all.map(({ name }) => name).join("; ");
  throw new Error(`expected the beginning of one of ${names}, received ${order.only}`);
}
for (const note of notes) print({ note });
const keepCurrent = createInputKeeper(order.folder);
const takeLargest = watchAllocations();
const end = performance.now() + order.seconds * 1_000;

for (let i = 0; performance.now() < end && i < order.maxBatches; i++) {
  const subject = subjects[(order.first + i) % subjects.length]!;
  const seed = order.seed + i;
  print({ begins: { subject: subject.name, seed } });
  keepCurrent(subject.good);
  const batch = await subject.begin(createRandom(seed));
  const { context } = batch;
  print({ begins: { subject: subject.name, seed, context } });
  takeLargest();
  const result = await fuzzBatch(subject, batch, seed, order.inputsPerBatch, keepCurrent);
  const largestAllocation = takeLargest();
  const { rss } = process.memoryUsage();
  const failures = [...result.failures];
  for (const [what, received, most] of [
    ["allocations", largestAllocation, kind.maxAllocationBytes],
    ["resident memory", rss, kind.maxResidentBytes],
  ] as const) {
    if (received <= most) continue;
    const problem = `${what}: expected at most ${most} bytes, received ${received}`;
    const where = { subject: subject.name, seed, number: -1, kind: "any of the batch", problem, context };
    failures.push({ ...where, bytes: subject.good });
  }
  print({
    ends: {
      ...{ ...result, row: subject.row, largestAllocation, rss },
      failures: failures.map((each) => ({ ...each, bytes: Buffer.from(each.bytes).toString("base64") })),
    },
  });
  if (kind.isWornOut?.()) break;
}

function print(line: FuzzLine): void {
  console.log(JSON.stringify(line));
}

/**
 * Replaces the constructors of buffers and of WebAssembly's memory in this process, to see how large they are: a decoder that
 * believes a header of 4 GB is found although the memory is never touched. Buffers that Node.js makes itself are not seen, nor
 * memory that grows.
 * @returns A function that returns the largest size in bytes since its last call.
 */
function watchAllocations(): () => number {
  let largest = 0;
  const scope = globalThis as unknown as Record<string, new (...args: unknown[]) => object>;
  for (const [name, itemSize] of Object.entries(BUFFERS)) {
    const proxy: (typeof scope)[string] = new Proxy(scope[name]!, {
      construct(original, args: unknown[], asked): object {
        if (typeof args[0] === "number") largest = Math.max(largest, args[0] * itemSize);
        return Reflect.construct(original, args, asked === proxy ? original : asked);
      },
    });
    scope[name] = proxy;
  }
  type MemoryConstructor = new (size: { initial: number }) => object;
  const { WebAssembly } = globalThis as unknown as { readonly WebAssembly: { Memory: MemoryConstructor } };
  WebAssembly.Memory = new Proxy(WebAssembly.Memory, {
    construct(original, [size]: [{ initial: number }]): object {
      largest = Math.max(largest, size.initial * PAGE_BYTES);
      return new original(size);
    },
  });
  return () => {
    const taken = largest;
    largest = 0;
    return taken;
  };
}
