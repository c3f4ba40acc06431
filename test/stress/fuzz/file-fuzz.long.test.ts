import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../../bench/random.js";
import { FORMATS } from "../../../src/formats/formats.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { damageFile, type FileDamage } from "./file-damage.js";
import {
  createFileTarget,
  type FileReading,
  type FileSeed,
  type FileTarget,
  fileSubject,
  findSeeds,
  inventedValues,
} from "./file-fuzz.js";
import { fuzzBatch, fuzzText, runFuzz } from "./fuzz.js";
import { writeGeneratedFiles } from "./generated-files.js";

t.setTimeout(280_000);

const root = t.testdir({});
const notes = writeGeneratedFiles(root);
const seeds = findSeeds([root]);
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

t.test("damage of every kind is read or refused", async (t) => {
  for (const seed of new Set(seeds)) {
    const subject = fileSubject(seed);
    const { failures, counts } = await fuzzBatch(subject, await subject.begin(createRandom(42)), 42, 16);
    t.same(failures, [], seed.name);
    t.equal(counts.inputs, 16);
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

t.test("a run damages one file after the other", async (t) => {
  const report = await runFuzz({
    ...{ kind: "files", seed: 9, seconds: 60, maxBatches: 6, inputsPerBatch: 8, only: "netcdf3 generated" },
    folder: join(root, "run"),
    batchTimeoutMs: 60_000,
    onProgress: () => {},
  });
  t.same(report.failures, []);
  t.equal(report.nextSeed, 15);
  t.match(report.rows.get("netcdf3"), { inputs: 48 });
  const text = fuzzText(report, 9, []);
  t.match(text, "48 damaged inputs, seeds 9 to 14");
  t.match(text, "- Nothing failed.");
  t.notMatch(text, /NaN|undefined/);
});
