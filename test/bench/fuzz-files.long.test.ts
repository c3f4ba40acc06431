import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { damageFile, type FileDamage } from "../../bench/fuzz/damage-file.js";
import { type FileReading, readWholeFile } from "../../bench/fuzz/file-reading.js";
import {
  createFileTarget,
  type FileSeed,
  type FileTarget,
  findSeeds,
} from "../../bench/fuzz/file-targets.js";
import { fuzzFile, inventedValues } from "../../bench/fuzz/fuzz-file.js";
import { writeGeneratedFiles } from "../../bench/fuzz/generated-files.js";
import { type FileFuzzOptions, runFileFuzz } from "../../bench/fuzz/run-file-fuzz.js";
import { fileFuzzText, writeFileFailure } from "../../bench/fuzz-files.js";
import { createRandom } from "../../bench/random.js";
import { FORMATS } from "../../src/formats/formats.js";
import { clientMissing } from "../require-client.js";

t.setTimeout(280_000);

const root = t.testdir({});
const notes = writeGeneratedFiles(root);
const seeds = findSeeds([root], "");
const netcdf3 = seeds.find(({ name }) => name === "netcdf3 generated_5_3.nc") as FileSeed;

t.test(
  "every format has files to damage",
  { skip: clientMissing("h5py", "netcdf4", "scipy", "rasterio") },
  (t) => {
    t.same(notes, []);
    t.same(new Set(seeds.map(({ format }) => format.id)), new Set(FORMATS.map(({ id }) => id)));
    t.end();
  },
);

t.test("good files are read, and most of their bytes belong to chunks or metadata", async (t) => {
  const target = await createFileTarget(netcdf3);
  t.equal(target.reading.refusal, undefined);
  t.equal(target.reading.arrays.size, 22);
  t.ok(target.extents.length >= 11);
  t.ok(target.metadata.length > 500);
});

t.test("damage of every kind is read or refused", async (t) => {
  for (const seed of seeds) {
    const { failures, inputs } = await fuzzFile(await createFileTarget(seed), 42, 16);
    t.same(failures, [], seed.name);
    t.equal(inputs, 16);
  }
});

/** Returns what is reported if a copy with damage of a scope reads as given. */
function reported(
  target: FileTarget,
  scope: FileDamage["scope"],
  change: (chunks: Map<string, string>) => void,
) {
  const damages = damageFile(target, createRandom(3));
  let damage = damages.next().value;
  while (damage.scope !== scope) damage = damages.next().value;
  const arrays = new Map(target.reading.arrays);
  const path = "double_fixed";
  const array = arrays.get(path)!;
  const chunks = new Map(array.chunks);
  change(chunks);
  arrays.set(path, { ...array, chunks });
  const reading: FileReading = { arrays, refusal: undefined, problems: [] };
  return inventedValues(target, { ...damage, bytes: new Uint8Array(target.bytes) }, reading);
}

t.test("values that no damage explains are reported", async (t) => {
  const target = await createFileTarget(netcdf3);
  const other = (chunks: Map<string, string>) => void chunks.set("0.0", "another hash");
  const absent = (chunks: Map<string, string>) => void chunks.set("0.0", "absent");
  const refused = (chunks: Map<string, string>) => void chunks.set("0.0", "refused");
  for (const scope of ["chunks", "cut"] as const) {
    t.same(
      reported(target, scope, () => {}),
      [],
    );
    t.match(reported(target, scope, other), [/'double_fixed' 0\.0: expected .*, received another hash/]);
    t.match(reported(target, scope, absent), [/received absent/]);
  }
  t.match(reported(target, "chunks", refused), [/received refused/]);
  t.same(reported(target, "cut", refused), []);
  t.same(reported(target, "any", other), []);
});

const OPTIONS: FileFuzzOptions = {
  ...{
    seed: 9,
    seconds: 60,
    maxBatches: 6,
    inputsPerBatch: 8,
    only: "netcdf3 generated",
    seedFolders: [root],
  },
  folder: join(root, "run"),
  batchTimeoutMs: 60_000,
  onProgress: () => {},
};

t.test("a run damages one file after the other", async (t) => {
  const report = await runFileFuzz(OPTIONS);
  t.same(report.failures, []);
  t.equal(report.nextSeed, 15);
  t.match(report.formats.get("netcdf3"), { inputs: 48 });
  const text = fileFuzzText(report, OPTIONS.seed, []);
  t.match(text, "48 damaged files, seeds 9 to 14");
  t.match(text, "- 6 files were damaged.");
  t.match(text, "- Nothing failed.");
  t.notMatch(text, /NaN|undefined/);
});

t.test("a process that dies, is stuck or needs too much memory is a failure with its file", async (t) => {
  const folder = t.testdir({});
  const ends = {
    "ended with 3: dead": 'console.error("dead"); process.exit(3);',
    stuck: "for (;;);",
    "ended with SIGABRT": "const all = []; for (;;) all.push(new Array(1e6).fill(all.length + 0.5));",
  };
  for (const [problem, end] of Object.entries(ends)) {
    const worker = t.testdir({
      "worker.mjs": `
        import { writeFileSync } from "node:fs";
        const { seed, folder } = JSON.parse(process.argv[2]);
        const say = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
        say({ begins: { target: "t" + seed, seed } });
        writeFileSync(folder + "/current", Buffer.from([2, 0, 0, 0, 7, 8, 9]));
        if (seed === 9) { ${end} }
        say({ ends: { format: "f", inputs: 8, refused: 6, decodedChunks: 1, refusedChunks: 0, longestMs: 1,
          failures: [], largestAllocation: 1, rss: 1 } });`,
    });
    const options = { ...OPTIONS, folder: worker, worker: join(worker, "worker.mjs"), maxBatches: 2 };
    const report = await runFileFuzz({ ...options, batchTimeoutMs: problem === "stuck" ? 2_000 : 60_000 });
    t.match(report.failures, [{ target: "t9", seed: 9, problem: new RegExp(problem) }]);
    t.match(report.formats.get("f"), { inputs: 8 });
    const file = writeFileFailure(report.failures[0]!, folder);
    t.ok(existsSync(file));
    t.same([...readFileSync(file)], [7, 8]);
    t.match(fileFuzzText(report, 9, [file]), /\*\*FAILED\*\* t9, seed 9.*kept in /);
  }
});

t.test("errors that say nothing of the file are problems", async (t) => {
  const broken = {
    ...netcdf3.format,
    readIndex: async () => {
      throw new TypeError("expected something else");
    },
  };
  const { problems } = await readWholeFile(broken, netcdf3.bytes);
  t.match(problems, [/TypeError: expected something else/]);
});
