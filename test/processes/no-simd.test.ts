import { readFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { decodeSteps } from "../../src/codec/run-steps.js";
import { PROGRAM, runScript } from "../cli/run-program.js";
import { stepOf } from "../codec/step.js";
import { makeDirectory, writeFiles } from "../source/write-store.js";
import { writeStore } from "./start-program.js";

const COMPRESSORS = {
  blosc: { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 },
  zlib: { id: "blosc", cname: "zlib", clevel: 1, shuffle: 2, blocksize: 0 },
  lz4: { id: "lz4", acceleration: 1 },
  shuffled: { id: "blosc", cname: "lz4hc", clevel: 1, shuffle: 2, blocksize: 0 },
};
const CHUNK_BYTES = 2 ** 18;
const skip = process.platform === "linux" ? false : "only Linux spreads connections over processes";

interface Served {
  readonly etag: string | null;
  readonly bytes: Uint8Array;
}

/** One chunk of the store, in every compressor, from the program with such arguments. */
async function serve(t: Test, location: string, args: readonly string[]): Promise<Record<string, Served>> {
  const directory = await makeDirectory(t);
  const datasets = Object.entries(COMPRESSORS).map(([id, compressor]) => [
    id,
    { location, encoding: { compressor } },
  ]);
  await writeFiles(directory, { "config.json": { datasets: Object.fromEntries(datasets) } });
  const config = join(directory, "config.json");
  const run = runScript(PROGRAM, ["serve", "--config", config, "--port", "0", "--no-cache", ...args]);
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const url = run.stdout().trim().split(" ").at(-1) as string;
  const served: Record<string, Served> = {};
  for (const id of Object.keys(COMPRESSORS)) {
    const answer = await fetch(`${url}/datasets/${id}/zarr/noise/3.0`);
    t.equal(answer.status, 200);
    served[id] = { etag: answer.headers.get("etag"), bytes: new Uint8Array(await answer.arrayBuffer()) };
  }
  return served;
}

t.test(
  "without SIMD the arrays are the same, and what may be other bytes has another ETag",
  { skip },
  async (t) => {
    const location = await writeStore(t);
    const stored = await readFile(join(location, "noise/3.0"));
    const [fast, slow, several] = await Promise.all([
      serve(t, location, []),
      serve(t, location, ["--no-simd"]),
      serve(t, location, ["--no-simd", "--processes", "2"]),
    ]);
    for (const [id, compressor] of Object.entries(COMPRESSORS)) {
      for (const served of [fast, slow]) {
        const decoded = await decodeSteps(served[id]!.bytes, [stepOf(compressor, CHUNK_BYTES)], id);
        t.ok(stored.equals(decoded), id);
      }
      t.not(slow[id]!.etag, fast[id]!.etag, id);
      t.same(several[id], slow[id], `${id}: every process does without`);
    }
  },
);
