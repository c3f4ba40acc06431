import { type ChildProcess, spawn } from "node:child_process";
import { randomFillSync } from "node:crypto";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { bloscFrame, FLAG, flagsOf, INNER as INNER_CODEC } from "../support/codec/blosc-frame.js";
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

t.setTimeout(500_000);

const MIB = 2 ** 20;
/** Inner chunks along each axis: 256 of them, of a mebibyte each. */
const SIDE = 16;
const INNER = 1_024;
const REQUESTS = 100;
const MAX_RESIDENT_BYTES = 600 * MIB;
/**
 * Bound of the processor's time in one turn of the server's event loop, for which `/healthz` waits. Twice what it may wait, since
 * threads that share a core take longer.
 */
const MAX_TURN_MS = 200;

/** A shard, and what is in it. @param content Bytes of all inner chunks, in C order. */
function shardOf(content: Uint8Array): Buffer {
  const index = Buffer.alloc((content.length / MIB) * 16);
  for (let at = 0; at < content.length / MIB; at++) {
    index.writeBigUInt64LE(BigInt(at * MIB), at * 16);
    index.writeBigUInt64LE(BigInt(MIB), at * 16 + 8);
  }
  return Buffer.concat([content, index]);
}

function documentOf(shape: readonly number[]) {
  const bytes = { name: "bytes", configuration: { endian: "little" } };
  return {
    ...{ ...v3Array, shape, dimension_names: ["y", "x"] },
    chunk_grid: { name: "regular", configuration: { chunk_shape: shape } },
    codecs: [
      {
        name: "sharding_indexed",
        configuration: { chunk_shape: [INNER, INNER], codecs: [{ name: "bytes" }], index_codecs: [bytes] },
      },
    ],
  };
}

/** Writes an archive with one deflated shard. @param level 0 for deflated bytes that are as many as those of the shard. */
async function writeShard(
  directory: string,
  name: string,
  content: Uint8Array,
  level: number,
): Promise<string> {
  const location = join(directory, `${name}.zip`);
  const shape = [(content.length / MIB / SIDE) * INNER, SIDE * INNER];
  const archive = writeZip([
    { name: "zarr.json", content: JSON.stringify(v3Group) },
    { name: "v/zarr.json", content: JSON.stringify(documentOf(shape)) },
    { name: "v/c/0/0", content: shardOf(content), isDeflated: true, level },
  ]);
  await writeFile(location, archive);
  return location;
}

/**
 * Runs before the program: writes down the processor's time of turns of the event loop. Unlike time that passes, it does not depend on
 * what else the machine does.
 */
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

/** A request, and the bytes of its answer. Default: any. */
interface Ask {
  readonly path: string;
  readonly range?: string;
  readonly expected?: Uint8Array;
}

/** Sends requests at once, and asserts what holds for each kind of request that reads much. */
async function check(t: Test, name: string, stage: Stage, asks: readonly Ask[]): Promise<void> {
  const { url, pid, turnsFile, asking } = stage;
  // Resets the peak of resident memory.
  writeFileSync(`/proc/${pid}/clear_refs`, "5");
  writeFileSync(turnsFile, "0");
  await healthOf(asking);
  const began = performance.now();
  const answers = await Promise.all(
    asks.map(async ({ path, range, expected }) => {
      const answer = await fetch(url + path, { headers: range === undefined ? {} : { range } });
      const bytes = Buffer.from(await answer.arrayBuffer());
      if (answer.status === 503) return "503";
      const isRight = answer.ok && (expected === undefined ? bytes.length > 0 : bytes.equals(expected));
      return isRight ? "right" : `${path}: ${answer.status} with ${bytes.length} bytes`;
    }),
  );
  const seconds = (performance.now() - began) / 1_000;
  const healthMs = await healthOf(asking);
  const [, peak] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  const peakMib = Math.round(Number(peak) / 1_024);
  const turnMs = Math.max(...readFileSync(turnsFile, "utf8").split("\n").map(Number));
  const right = answers.filter((answer) => answer === "right").length;
  t.same(
    answers.filter((answer) => answer !== "right" && answer !== "503"),
    [],
    `${name}: all answers are right, or 503`,
  );
  t.ok(right > 0, `${name}: some answers are right`);
  t.ok(peakMib * MIB < MAX_RESIDENT_BYTES, `${name}: ${peakMib} MiB resident`);
  t.ok(turnMs < MAX_TURN_MS, `${name}: ${turnMs.toFixed(0)} ms of the processor in one turn`);
  t.ok(healthMs.length > 0 && !healthMs.includes(Infinity), `${name}: /healthz is answered`);
  t.comment(
    `${name}: ${right} right of ${answers.length} in ${seconds.toFixed(1)} s, ${peakMib} MiB, turn ${turnMs.toFixed(0)} ms, ` +
      `/healthz ${healthMs.length} times, median ${healthMs[healthMs.length >> 1]?.toFixed(0)} ms, last ${healthMs.at(-1)?.toFixed(0)} ms`,
  );
}

/** A hundred inner chunks of a shard, spread over it. */
function innerChunks(content: Uint8Array, dataset: string) {
  const count = content.length / MIB;
  return Array.from({ length: REQUESTS }, (_, index) => {
    const number = (index * 37) % count;
    const key = `${Math.floor(number / SIDE)}.${number % SIDE}`;
    const expected = content.subarray(number * MIB, (number + 1) * MIB);
    return { path: `/datasets/${dataset}/zarr/v/${key}`, number, expected };
  });
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

t.test("a hundred requests of a deflated shard at once take little memory", async (t) => {
  const directory = await makeDirectory(t);
  const content = randomFillSync(new Uint8Array(256 * MIB));
  const short = content.subarray(0, 32 * MIB);
  const overviews = { levels: 2 };
  const stage = await startStage(t, directory, {
    long: { location: await writeShard(directory, "long", content, 0), overviews },
    // One that compresses, and is kept.
    short: { location: await writeShard(directory, "short", short, 1), overviews },
  });
  const rangesOf = (bytes: Uint8Array, dataset: string) =>
    innerChunks(bytes, dataset).map(({ number, expected }) => ({
      path: `/datasets/${dataset}/zarr3/v/c/0/0`,
      range: `bytes=${number * MIB}-${(number + 1) * MIB - 1}`,
      expected,
    }));
  const levels = (dataset: string, rows: number) =>
    Array.from({ length: REQUESTS }, (_, index) => ({
      path: `/datasets/${dataset}/overviews/zarr/1/v/${index % (rows / 2)}.${Math.floor(index / (rows / 2)) % (SIDE / 2)}`,
    }));
  const pictures = (dataset: string) =>
    Array.from({ length: REQUESTS }, (_, index) => ({
      path: `/datasets/${dataset}/thumbnail/v.png?size=${64 + index}`,
    }));
  for (const [dataset, bytes] of [
    ["short", short],
    ["long", content],
  ] as const) {
    await check(t, `inner chunks of ${dataset}`, stage, innerChunks(bytes, dataset));
    await check(t, `ranges of the shard of ${dataset}`, stage, rangesOf(bytes, dataset));
    await check(t, `overviews of ${dataset}`, stage, levels(dataset, bytes.length / MIB / SIDE));
    // Of the long one, each takes a minute without a cache.
    if (dataset === "short") await check(t, `pictures of ${dataset}`, stage, pictures(dataset));
  }
});

t.test("a hundred small chunks of a large one at once take little memory", async (t) => {
  const directory = await makeDirectory(t);
  /** Of each served chunk, all values are its number. */
  const contentOf = (mib: number) => {
    const content = new Uint8Array(mib * MIB);
    for (let at = 0; at < content.length; at += INNER)
      content.fill(Math.floor(at / (SIDE * MIB)) * SIDE + ((at / INNER) % SIDE), at, at + INNER);
    return content;
  };
  const large = contentOf(64);
  const datasets: Record<string, object> = {};
  const add = async (name: string, compressor: object | null, chunk: Uint8Array, isDeflated = false) => {
    const shape = [(large.length / MIB / SIDE) * INNER, SIDE * INNER];
    const array = { ...zarray, shape, chunks: shape, compressor };
    const zip = join(directory, `${name}.zip`);
    const entries = { ".zgroup": zgroup, "v/.zarray": array };
    if (isDeflated) {
      const documents = Object.entries(entries).map(([key, value]) => ({
        name: key,
        content: JSON.stringify(value),
      }));
      await writeFile(zip, writeZip([...documents, { name: "v/0.0", content: chunk, isDeflated, level: 1 }]));
    } else await writeFiles(join(directory, name), { ...entries, "v/0.0": chunk });
    datasets[name] = {
      location: isDeflated ? zip : join(directory, name),
      encoding: { compressor: null, chunks: [INNER, INNER] },
    };
  };
  await add("raw", null, large);
  await add("gzip", { id: "gzip", level: 1 }, gzipSync(large, { level: 1 }));
  const frame = { flags: flagsOf(INNER_CODEC.lz4, FLAG.copied), byteLength: large.length, body: large };
  const blosc = { id: "blosc", cname: "lz4", clevel: 5, shuffle: 0, blocksize: 0 };
  await add("blosc", blosc, bloscFrame(frame));
  await add("zipped", null, large, true);
  for (const [name, dataset] of Object.entries(datasets)) {
    // A program for each: what it keeps of one is not counted for the next.
    await t.test(name, async (t) => {
      const stage = await startStage(t, directory, { [name]: dataset });
      const asks = Array.from({ length: REQUESTS }, (_, index) => {
        const number = (index * 37) % (large.length / MIB);
        const path = `/datasets/${name}/zarr/v/${Math.floor(number / SIDE)}.${number % SIDE}`;
        return { path, expected: new Uint8Array(MIB).fill(number) };
      });
      await check(t, `small chunks of one of ${name}`, stage, asks);
    });
  }
});
