import t, { type Test } from "tap";
import { encodeSteps } from "../../src/codec/run-steps.js";
import { clientMissing } from "../require-client.js";
import {
  type BloscCase,
  bytesOfCase,
  hugeBloscCases,
  labelOfCase,
  largeBloscCases,
  smallBloscCases,
} from "./blosc-cases.js";
import { streamNative } from "./native-numcodecs.js";
import { reportFailures } from "./report-failures.js";
import { stepOf } from "./step.js";

t.setTimeout(240_000);

const skip = clientMissing("numcodecs");

const MAX_RATIO = 1.05;
/** Below this many bytes a header more or less is more than five percent. */
const MIN_COMPARED_BYTES = 4096;

/** Blosc copies what it cannot make shorter, and a hair's breadth may decide that: so much of the input, and so many bytes. */
const CLOSE_SHARE = 0.01;
const CLOSE_BYTES = 64;

const FLAG_COPIED = 0x02;
const HEADER_BYTES = 16;

/** Those the kernel encodes itself; what zlib and zstd make of a block is up to the library and its version. */
const KERNEL_CNAMES = ["lz4", "lz4hc", "blosclz"];

for (const cname of KERNEL_CNAMES) {
  t.test(`a chunk of Blosc and ${cname} has native's header and, within 5 %, its size`, { skip }, (t) =>
    compareChunks(t, cname),
  );
}

async function compareChunks(t: Test, cname: string): Promise<void> {
  const wrongHeaders: string[] = [];
  const tooLong: string[] = [];
  let ourBytes = 0;
  let nativeBytes = 0;
  let count = 0;
  for await (const { job, bytes: native, refusal } of streamNative(jobsOf(casesOf(cname)))) {
    const { label, ours, bytes } = job;
    count++;
    if (native === undefined) {
      tooLong.push(`refused by native: ${label}: ${refusal}`);
      continue;
    }
    const [received, expected] = [headerOf(ours), headerOf(native)];
    const isClose = Math.min(ours.length, native.length) > bytes.length * (1 - CLOSE_SHARE) - CLOSE_BYTES;
    if (isClose) received.flags = (received.flags & ~FLAG_COPIED) | (expected.flags & FLAG_COPIED);
    if (JSON.stringify(received) !== JSON.stringify(expected)) {
      wrongHeaders.push(
        `${label}: expected ${JSON.stringify(expected)}, received ${JSON.stringify(received)}`,
      );
    }
    if (bytes.length < MIN_COMPARED_BYTES) continue;
    ourBytes += ours.length;
    nativeBytes += native.length;
    if (ours.length > native.length * MAX_RATIO) {
      tooLong.push(`${label}: expected about ${native.length} bytes, received ${ours.length}`);
    }
  }
  reportFailures(t, wrongHeaders, count);
  reportFailures(t, tooLong, count);
  t.ok(
    ourBytes <= nativeBytes * MAX_RATIO,
    `all together ${ourBytes} bytes, of native ${nativeBytes}: ${(ourBytes / nativeBytes).toFixed(4)}`,
  );
}

function* casesOf(cname: string): Generator<BloscCase> {
  yield* smallBloscCases([cname]);
  yield* largeBloscCases([cname]);
  yield* hugeBloscCases([cname]);
}

async function* jobsOf(cases: Iterable<BloscCase>) {
  for (const one of cases) {
    const { codec, itemSize } = one;
    const all = bytesOfCase(one);
    // Native takes whole items only.
    const bytes = all.subarray(0, all.length - (all.length % itemSize));
    const label = labelOfCase(one);
    const ours = await encodeSteps(bytes, [stepOf(codec, bytes.length, itemSize)], label);
    yield { operation: "encode" as const, codec, dtype: `V${itemSize}`, bytes, ours, label };
  }
}

/** All of a header but the length of the chunk. */
function headerOf(chunk: Uint8Array) {
  const view = new DataView(chunk.buffer, chunk.byteOffset, HEADER_BYTES);
  return {
    version: view.getUint8(0),
    innerVersion: view.getUint8(1),
    flags: view.getUint8(2),
    typeSize: view.getUint8(3),
    byteLength: view.getUint32(4, true),
    blockSize: view.getUint32(8, true),
  };
}
