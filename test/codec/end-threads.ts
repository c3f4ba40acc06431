/**
 * A program that ends threads in the midst of encoding and decoding: `node end-threads.js COUNT`. Short chunks, of which the most
 * time goes into what surrounds them. Prints how many threads have been ended.
 */
import { fileURLToPath } from "node:url";
import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { encodeZstd } from "../../src/codec/zstd.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { sampleOf } from "./sample-bytes.js";
import { stepOf } from "./step.js";

/** What goes through streams of Node.js. */
const CODECS: CodecSpec[] = [
  { id: "gzip", level: 1 },
  { id: "zlib", level: 9 },
  ...(encodeZstd === undefined ? [] : [{ id: "zstd", level: 1 }]),
  { id: "blosc", cname: "zlib", clevel: 5, shuffle: 1, blocksize: 0 },
];

/** How long a thread goes on, at most, in milliseconds. */
const MAX_RUN_MS = 4;

async function endThreads(count: number): Promise<void> {
  for (let ended = 0; ended < count; ended++) {
    const thread = new Worker(fileURLToPath(import.meta.url));
    await new Promise((resolve, reject) => {
      thread.once("message", resolve);
      thread.once("error", reject);
    });
    await new Promise((resolve) => setTimeout(resolve, (MAX_RUN_MS * ended) / count));
    await thread.terminate();
  }
  process.stdout.write(`${count} ended\n`);
}

async function goOn(): Promise<never> {
  const bytes = sampleOf("words", 200);
  const steps = CODECS.map((codec) => stepOf(codec, bytes.length));
  for (let round = 0; ; round++) {
    for (const step of steps) {
      const encoded = await encodeSteps(bytes, [step], "x");
      const decoded = await decodeSteps(encoded, [step], "x");
      if (Buffer.compare(decoded, bytes) !== 0) throw new Error(`${step.codec.id}: other bytes`);
    }
    if (round === 0) parentPort?.postMessage("going");
  }
}

await (isMainThread ? endThreads(Number(process.argv[2])) : goOn());
