import { join } from "node:path";
import t from "tap";
import { createRandom } from "../../../bench/random.js";
import { FORMATS } from "../../../src/formats/formats.js";
import { clientMissing } from "../../support/clients/require-client.js";
import { fileSubject, findSeeds } from "./file-fuzz.js";
import { fuzzBatch, fuzzText, runFuzz } from "./fuzz.js";
import { writeGeneratedFiles } from "./generated-files.js";

t.setTimeout(600_000);

const root = t.testdir({});
const notes = writeGeneratedFiles(root);
const seeds = findSeeds([root]);

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
