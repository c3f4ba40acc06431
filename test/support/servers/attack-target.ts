import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Test } from "tap";
import { makeDemoData } from "../../../scripts/demo/demo-data.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../write-store.js";
import { openConnection, type RawAnswer, rawRequest, requestText } from "./raw-request.js";
import { startSmall } from "./start-program.js";

/** What lies beside the stores, where nobody may read it. */
export const SECRET = "what lies beside the store";
/** Bytes of one chunk of `big/field`, which no socket takes at once. */
export const BIG_BYTES = 4 * 2 ** 20;
/** How many chunks it has. */
export const BIG_CHUNKS = 4;

/** What an attack may leave behind: pages that the allocator keeps, compiled code, replies kept within their bounds. */
const MEMORY_BOUND_BYTES = 160 * 2 ** 20;
const DESCRIPTOR_BOUND = 6;
/**
 * How long leftovers are waited for to go. Bodies that were let go stay until V8's idle collection, which comes 8 s
 * after the last work, and again 8 s later where the machine was too busy for it.
 */
const SETTLE_MS = 60_000;
/** A client that has to wait longer is not served promptly by anybody's standards. */
const PATIENCE_MS = 10_000;

/** What a process holds. */
interface Holdings {
  readonly memoryBytes: number;
  readonly descriptors: number;
}

/** The real program with data worth attacking. */
export type Target = Awaited<ReturnType<typeof startTarget>>;

const TRUTH = [
  "/datasets",
  "/datasets/air/info",
  "/datasets/air/zarr/.zmetadata",
  "/datasets/air/zarr/air/0.0.0",
  "/datasets/again/zarr/air/.zarray",
  "/datasets/again/zarr/air/0.0.0",
  "/datasets/climate/zarr/.zmetadata",
  "/datasets/big/zarr/field/0",
];

/** Starts it with the demonstration's data (`air`, `climate`), one of them rechunked (`again`), and `big`. */
export async function startTarget(t: Test, args: readonly string[] = []) {
  const directory = await makeDirectory(t);
  const { air, climate } = await makeDemoData(join(directory, "demo"));
  await writeBig(join(directory, "big.zarr"));
  await writeFiles(directory, { "secret.txt": SECRET });
  const config = {
    datasets: {
      air,
      climate,
      again: {
        location: air,
        variables: { air: { chunks: [1, -1, -1], compressor: { id: "zstd", level: 1 } } },
      },
      big: join(directory, "big.zarr"),
    },
  };
  const { run, port, pid } = await startSmall(t, {
    directory,
    args: ["--log-level", "info", ...args],
    config,
  });

  /** Paths that a normal client reads, with what it gets. */
  const truth = new Map<string, RawAnswer>();
  for (const path of TRUTH) {
    const answer = await rawRequest(port, path);
    if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${answer.body}`);
    truth.set(path, answer);
  }
  const before = holdingsOf(pid);
  let logged = run.stderr().length;

  /** Checks that a normal client on a connection of its own still gets the right bytes, promptly. */
  async function isServed(t: Test): Promise<void> {
    const connection = await openConnection(port);
    try {
      for (const [path, { body, headers }] of truth) {
        connection.send(requestText(path));
        const answer = await Promise.race([
          connection.answer(),
          delay(PATIENCE_MS, undefined, { ref: false }),
        ]);
        if (answer === undefined) throw new Error(`a normal client waits for ${path}`);
        const isRight =
          answer.status === 200 && answer.body.equals(body) && answer.headers.etag === headers.etag;
        t.ok(isRight, `a normal client gets ${path}`, { status: answer.status });
      }
    } finally {
      connection.socket.destroy();
    }
  }

  return {
    port,
    run,
    truth,
    isServed,
    /** Checks that, and that the attack has left no more memory and descriptors than the bounds allow, and logged no failure. */
    async isUnharmed(t: Test): Promise<void> {
      await isServed(t);
      const deadline = Date.now() + SETTLE_MS;
      let held = holdingsOf(pid);
      while (isMore(held, before) && Date.now() < deadline) {
        await delay(100);
        held = holdingsOf(pid);
      }
      t.notOk(isMore(held, before), "memory and descriptors are within their bounds", { before, held });
      const lines = run.stderr().slice(logged).split("\n").filter(Boolean);
      logged = run.stderr().length;
      const failures = lines.filter((line) => Number(/"level":(\d+)/.exec(line)?.[1] ?? 60) >= 50);
      t.same(failures.slice(0, 5), [], "nothing failed");
      t.equal(run.child.exitCode, null, "the program runs on");
    },
    isSmall(t: Test): void {
      const grown = holdingsOf(pid).memoryBytes - before.memoryBytes;
      // Attacks without a bound take a gigabyte.
      t.ok(grown <= 2 * MEMORY_BOUND_BYTES, "memory is within its bound", { grown });
    },
    /** What a text shows of this machine. */
    revealed(text: string): string | undefined {
      const paths = [directory, air, climate, process.cwd(), "node_modules", "/dist/", "/.build/"];
      return [...paths, SECRET, ".js:"].find((each) => text.includes(each));
    },
  };
}

function isMore(held: Holdings, before: Holdings): boolean {
  return (
    held.descriptors > before.descriptors + DESCRIPTOR_BOUND ||
    held.memoryBytes > before.memoryBytes + MEMORY_BOUND_BYTES
  );
}

function holdingsOf(pid: number): Holdings {
  const resident = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return { memoryBytes: Number(resident) * 1024, descriptors: readdirSync(`/proc/${pid}/fd`).length };
}

/** One variable of chunks of {@link BIG_BYTES}, served as they are stored. */
async function writeBig(location: string): Promise<void> {
  const chunks = Array.from({ length: BIG_CHUNKS }, (_, i): [string, Uint8Array] => [
    `field/${i}`,
    // The same block again and again is told apart by the chunk it is of.
    Buffer.alloc(BIG_BYTES, randomBytes(4_093)),
  ]);
  await writeFiles(location, {
    ".zgroup": zgroup,
    "field/.zarray": arrayDocument(BIG_CHUNKS * BIG_BYTES, BIG_BYTES),
    "field/.zattrs": { _ARRAY_DIMENSIONS: ["byte"] },
    ...Object.fromEntries(chunks),
  });
}

function arrayDocument(length: number, chunkLength: number): object {
  return { ...zarray, shape: [length], chunks: [chunkLength] };
}
