import { type ChildProcess, spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, crc32, deflateRawSync } from "node:zlib";
import t, { type Test } from "tap";
import { blosc } from "../../src/codec/blosc/blosc.js";
import { streamStep } from "../../src/codec/blosc/inner-encoders.js";
import { uint32 } from "../support/codec/blosc-frame.js";
import { choose } from "../support/effort.js";
import { startProgram } from "../support/servers/start-program.js";
import {
  makeDirectory,
  type Teardown,
  v3Array,
  v3Group,
  writeFiles,
  zarray,
  zgroup,
} from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

t.setTimeout(600_000);

const MIB = 2 ** 20;
/** Of the large chunk or shard, in pieces of a mebibyte. */
const PIECES = 256;
/** Of the short shard. */
const FEW_PIECES = 32;
/** Inner chunks of a shard along each axis. */
const SIDE = 16;
const INNER = 1_024;
const REQUESTS = 100;
const MAX_RESIDENT_BYTES = 600e6;
/**
 * Bound of the processor's time in one turn of the server's event loop, for which `/healthz` waits. Unlike the time that passes, it does
 * not depend on what else the machine does.
 */
const MAX_TURN_MS = 100;

/** Bytes of all pieces: each begins with the same noise, which hardly compresses, and its number fills the rest. */
function makeContent(): Uint8Array {
  const noise = randomFillSync(new Uint8Array(MIB / 4));
  const content = new Uint8Array(PIECES * MIB);
  for (let piece = 0; piece < PIECES; piece++) {
    content.set(noise, piece * MIB);
    content.fill(piece, piece * MIB + noise.length, (piece + 1) * MIB);
  }
  return content;
}

/** Deflates bytes, so that more deflated bytes can follow. */
function deflatePart(bytes: Uint8Array): Buffer {
  return deflateRawSync(bytes, { level: 1, finishFlush: constants.Z_FULL_FLUSH });
}

/** The last bytes of what `deflatePart` began. */
const DEFLATED_END = deflateRawSync(new Uint8Array(0));

/** One frame of Zstandard (RFC 8878) of bytes that are multiples of a block, as they are or of one value. */
function zstdFrame(content: Uint8Array): Buffer {
  const block = MIB / 8;
  const parts: Uint8Array[] = [uint32(0xfd2fb528), Uint8Array.of(0xa0), uint32(content.length)];
  for (let at = 0; at < content.length; at += block) {
    const bytes = content.subarray(at, at + block);
    const isEqual = at % MIB >= MIB / 4;
    const isLast = at + block === content.length;
    const header = uint32((block << 3) | (isEqual ? 2 : 0) | (isLast ? 1 : 0)).subarray(0, 3);
    parts.push(header, isEqual ? bytes.subarray(0, 1) : bytes);
  }
  return Buffer.concat(parts);
}

/** The index of a shard that has its inner chunks one after the other. */
function indexOf(pieces: number): Buffer {
  const index = Buffer.alloc(pieces * 16);
  for (let piece = 0; piece < pieces; piece++) {
    index.writeBigUInt64LE(BigInt(piece * MIB), piece * 16);
    index.writeBigUInt64LE(BigInt(MIB), piece * 16 + 8);
  }
  return index;
}

function shardDocument(pieces: number, ...others: readonly object[]) {
  const shape = [(pieces / SIDE) * INNER, SIDE * INNER];
  const bytes = { name: "bytes", configuration: { endian: "little" } };
  const configuration = {
    ...{ chunk_shape: [INNER, INNER], codecs: [{ name: "bytes" }], index_codecs: [bytes] },
  };
  return {
    ...{ ...v3Array, shape, dimension_names: ["y", "x"] },
    chunk_grid: { name: "regular", configuration: { chunk_shape: shape } },
    codecs: [{ name: "sharding_indexed", configuration }, ...others],
  };
}

/** Writes an archive with one deflated shard. */
function writeShard(directory: string, name: string, content: Uint8Array, deflated: Uint8Array): string {
  const pieces = content.length / MIB;
  const index = indexOf(pieces);
  const archive = writeZip([
    { name: "zarr.json", content: JSON.stringify(v3Group) },
    { name: "v/zarr.json", content: JSON.stringify(shardDocument(pieces)) },
    {
      ...{ name: "v/c/0/0", content: Buffer.concat([content, index]) },
      deflated: Buffer.concat([deflated, deflatePart(index), DEFLATED_END]),
    },
  ]);
  writeFileSync(join(directory, `${name}.zip`), archive);
  return join(directory, `${name}.zip`);
}

/** Writes a store with one large chunk, of which pieces are served. @param deflated If it lies in a deflated entry. */
async function writeLarge(
  directory: string,
  name: string,
  compressor: object | null,
  chunk: Uint8Array,
  deflated?: Uint8Array,
) {
  const shape = [SIDE * INNER, (PIECES / SIDE) * INNER];
  const documents = { ".zgroup": zgroup, "v/.zarray": { ...zarray, shape, chunks: shape, compressor } };
  const encoding = { compressor: null, chunks: [INNER / SIDE, SIDE * INNER] };
  const location = join(directory, name);
  if (deflated === undefined) {
    await writeFiles(location, { ...documents, "v/0.0": chunk });
    return { location, encoding };
  }
  const entries = Object.entries(documents).map(([key, value]) => ({
    name: key,
    content: JSON.stringify(value),
  }));
  writeFileSync(`${location}.zip`, writeZip([...entries, { name: "v/0.0", content: chunk, deflated }]));
  return { location: `${location}.zip`, encoding };
}

/** Writes stores with one large chunk each, and returns the configuration of their datasets. */
async function writeLargeChunks(directory: string): Promise<Record<string, object>> {
  const gzipped = Buffer.concat([
    ...[Buffer.from("1f8b08000000000000ff", "hex"), deflated, DEFLATED_END],
    ...[uint32(crc32(content)), uint32(content.length)],
  ]);
  const lz4 = { id: "blosc", cname: "lz4", clevel: 1, shuffle: 0, blocksize: 0 };
  const frame = await blosc.encode!(content, streamStep(lz4, content.length));
  const raw = await writeLarge(directory, "raw", null, content);
  const location = join(directory, "references.json");
  const refs = {
    ".zgroup": JSON.stringify(zgroup),
    "v/.zarray": readFileSync(join(directory, "raw/v/.zarray"), "utf8"),
    "v/0.0": [join(directory, "raw/v/0.0"), 0, content.length],
  };
  writeFileSync(location, JSON.stringify({ version: 1, refs }));
  return {
    raw,
    gzip: await writeLarge(directory, "gzip", { id: "gzip", level: 1 }, gzipped),
    zstd: await writeLarge(directory, "zstd", { id: "zstd", level: 1 }, zstdFrame(content)),
    blosc: await writeLarge(directory, "blosc", lz4, frame),
    zipped: await writeLarge(directory, "zipped", null, content, Buffer.concat([deflated, DEFLATED_END])),
    references: { ...raw, location },
  };
}

/** Writes a store with an array that is refused, and another. */
async function writeShardInsideGzip(directory: string): Promise<string> {
  const location = join(directory, "around");
  await writeFiles(location, {
    "zarr.json": v3Group,
    "v/zarr.json": shardDocument(FEW_PIECES, { name: "gzip", configuration: { level: 1 } }),
    "w/zarr.json": shardDocument(FEW_PIECES),
  });
  return location;
}

/** Runs before the program: writes down the processor's time of turns of the event loop. */
const WATCH_TURNS = `
import { appendFileSync, readFileSync } from "node:fs";
import { isMainThread } from "node:worker_threads";
const used = () => Number(readFileSync("/proc/thread-self/schedstat", "utf8").split(" ")[0]) / 1e6;
if (isMainThread) {
  let before = used();
  setInterval(() => {
    const now = used();
    if (now - before > 10) appendFileSync(process.env.TURNS_FILE, (now - before) + "\\n");
    before = used();
  }, 1).unref();
}`;

/** Asks for `/healthz` again and again, in a process that does nothing else, until it is told to end. Writes the milliseconds of each. */
const ASK_HEALTH = `
import { get } from "node:http";
const ms = [];
const ask = () => {
  const began = performance.now();
  get(process.argv[1], (answer) => answer.resume().on("end", () => {
    ms.push(answer.statusCode === 200 ? performance.now() - began : Infinity);
    setTimeout(ask, 10);
  }));
};
process.on("message", () => process.send(ms.splice(0)));
ask();`;

function startAsking(t: Teardown, url: string): ChildProcess {
  const child = spawn(process.execPath, ["--input-type=module", "--eval", ASK_HEALTH, `${url}/healthz`], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  t.teardown(() => child.kill());
  return child;
}

/** Takes the milliseconds of `/healthz` since the last time, in ascending order. */
async function healthOf(asking: ChildProcess): Promise<number[]> {
  asking.send("now");
  const [ms] = (await once(asking, "message")) as [number[]];
  return ms.sort((a, b) => a - b);
}

/** The program, and who asks for `/healthz`. */
interface Stage {
  readonly url: string;
  readonly pid: number;
  readonly turnsFile: string;
  readonly asking: ChildProcess;
}

/** A request, and what answers it. */
interface Ask {
  readonly path: string;
  readonly range?: string;
  /** Default: any bytes. A number is the status of what is refused when it is opened. */
  readonly expected?: Uint8Array | number;
}

async function ask({ url }: Stage, { path, range, expected }: Ask): Promise<string> {
  const answer = await fetch(url + path, { headers: range === undefined ? {} : { range } });
  const bytes = Buffer.from(await answer.arrayBuffer());
  if (answer.status === 503 && answer.headers.has("retry-after")) return "503";
  const hasBytes = () =>
    expected instanceof Uint8Array ? bytes.equals(expected) : expected === undefined && bytes.length > 0;
  const isRight = answer.status === expected || (answer.ok && hasBytes());
  return isRight ? "right" : `${path}: ${answer.status} with ${bytes.length} bytes`;
}

/** Sends requests at once, and asserts what holds for each kind of request that reads much. */
async function check(t: Test, name: string, stage: Stage, asks: readonly Ask[]): Promise<void> {
  const { pid, turnsFile, asking } = stage;
  // Resets the peak of resident memory.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  writeFileSync(turnsFile, "0");
  await healthOf(asking);
  const began = performance.now();
  const answers = await Promise.all(asks.map((each) => ask(stage, each)));
  const seconds = (performance.now() - began) / 1_000;
  const healthMs = await healthOf(asking);
  const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  const residentBytes = Number(peak) * 1_024;
  const resident = `${Math.round(residentBytes / 1e6)} MB resident`;
  const turnMs = Math.max(...readFileSync(turnsFile, "utf8").split("\n").map(Number));
  const right = answers.filter((answer) => answer === "right").length;
  t.same(
    answers.filter((answer) => answer !== "right" && answer !== "503"),
    [],
    `${name}: all answers are right, or 503`,
  );
  t.ok(right > 0, `${name}: some answers are right`);
  t.ok(residentBytes < MAX_RESIDENT_BYTES, `${name}: ${resident}`);
  t.ok(turnMs < MAX_TURN_MS, `${name}: ${turnMs.toFixed(0)} ms of the processor in one turn`);
  t.ok(healthMs.length > 0 && !healthMs.includes(Infinity), `${name}: /healthz is answered`);
  t.comment(
    `${name}: ${right} right of ${answers.length} in ${seconds.toFixed(1)} s, ${resident}, turn ${turnMs.toFixed(0)} ms, ` +
      `/healthz ${healthMs.length} times, median ${healthMs[healthMs.length >> 1]?.toFixed(0)} ms, last ${healthMs.at(-1)?.toFixed(0)} ms`,
  );
}

/** Starts the program, and asks it for `/healthz`. */
async function startStage(t: Teardown, directory: string, datasets: object): Promise<Stage> {
  const turnsFile = join(directory, "turns");
  writeFileSync(turnsFile, "");
  const { url, pid } = await startProgram(t, {
    directory,
    args: ["--workers", "2", "--no-cache", "--no-plugin", "explore"],
    env: {
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(WATCH_TURNS)}`,
      TURNS_FILE: turnsFile,
    },
    config: { datasets },
  });
  return { url, pid, turnsFile, asking: startAsking(t, url) };
}

/** A hundred pieces, spread over a chunk or shard. */
function piecesOf(content: Uint8Array) {
  const count = content.length / MIB;
  return Array.from({ length: REQUESTS }, (_, index) => {
    const piece = (index * 37) % count;
    return { piece, expected: content.subarray(piece * MIB, (piece + 1) * MIB) };
  });
}

const content = makeContent();
const deflated = deflatePart(content);

/** Sends the same kind of request again and again. */
function repeat(make: (index: number) => Ask): Ask[] {
  return Array.from({ length: REQUESTS }, (_, index) => make(index));
}

const few = content.subarray(0, FEW_PIECES * MIB);

for (const [dataset, bytes] of [
  ["short", few],
  ["long", content],
] as const)
  t.test(`a hundred small requests of a ${dataset} deflated shard at once take little memory`, async (t) => {
    const directory = await makeDirectory(t);
    const location = writeShard(directory, dataset, bytes, dataset === "long" ? deflated : deflatePart(few));
    const stage = await startStage(t, directory, { [dataset]: { location, overviews: { levels: 2 } } });
    const base = `/datasets/${dataset}`;
    const inner = piecesOf(bytes).map(({ piece, expected }) => ({
      path: `${base}/zarr/v/${Math.floor(piece / SIDE)}.${piece % SIDE}`,
      expected,
    }));
    const ranges = piecesOf(bytes).map(({ piece, expected }) => ({
      path: `${base}/zarr3/v/c/0/0`,
      range: `bytes=${piece * MIB}-${(piece + 1) * MIB - 1}`,
      expected,
    }));
    const rows = bytes.length / MIB / SIDE / 2;
    const level = (at: number) => ({
      path: `${base}/overviews/zarr/1/v/${at % rows}.${Math.floor(at / rows) % (SIDE / 2)}`,
    });
    const picture = (at: number) => ({ path: `${base}/thumbnail/v.png?size=${64 + at}` });
    const kinds = [
      ["inner chunks", inner],
      ["ranges of the shard", ranges],
      ["overviews", repeat(level)],
      ["pictures", repeat(picture)],
    ] as const;
    for (const [name, asks] of choose(t, kinds)) await check(t, `${name} of ${dataset}`, stage, asks);
  });

t.test("a hundred small requests of a shard inside gzip at once take little memory", async (t) => {
  const directory = await makeDirectory(t);
  const stage = await startStage(t, directory, {
    around: { location: await writeShardInsideGzip(directory) },
  });
  const refused = (at: number) => ({ path: `/datasets/around/zarr/v/${at % 2}.0`, expected: 404 });
  await check(t, "inner chunks of a shard inside gzip", stage, repeat(refused));
});

t.test("a hundred pieces of a large chunk at once take little memory", async (t) => {
  const directory = await makeDirectory(t);
  const stage = await startStage(t, directory, await writeLargeChunks(directory));
  for (const dataset of choose(t, ["raw", "gzip", "zstd", "blosc", "zipped", "references"])) {
    const pieces = piecesOf(content).map(({ piece, expected }) => ({
      path: `/datasets/${dataset}/zarr/v/${piece}.0`,
      expected,
    }));
    await check(t, `pieces of one chunk of ${dataset}`, stage, pieces);
  }
});
