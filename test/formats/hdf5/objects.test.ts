import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import t from "tap";
import { createRandom } from "../../../bench/random.js";
import { ZpublishError } from "../../../src/errors.js";
import { lookup3 } from "../../../src/formats/hdf5/bytes.js";
import { readHdf5 } from "../../../src/formats/hdf5/groups.js";
import { isHdf5 } from "../../../src/formats/hdf5/objects.js";
import { effort } from "../../support/effort.js";
import { processorMs } from "../../support/processor-time.js";
import { memoryBlocks } from "../memory-blocks.js";
import { viewOf } from "./model-view.js";

const FIXTURES = fileURLToPath(new URL("../../../../test/fixtures/hdf5/", import.meta.url));
const VIEWS: Record<string, Record<string, unknown>> = JSON.parse(
  readFileSync(`${FIXTURES}h5py-views.json`, "utf8"),
);
const read = (name: string): Buffer => readFileSync(FIXTURES + name);

for (const [name, expected] of Object.entries(VIEWS)) {
  t.test(`${name} is read as h5py reads it`, async (t) => {
    for (const isSlow of [false, true]) {
      const file = await readHdf5(memoryBlocks(read(name), isSlow));
      t.strictSame(sortedView(viewOf(file)), sortedView(expected));
      t.same(file.refused, []);
      t.same(file.warnings, []);
    }
  });
}

t.test("links that cannot be followed and data of other files are refused by name", async (t) => {
  const { root, refused } = await readHdf5(memoryBlocks(read("refused-latest.h5")));
  t.same(Object.fromEntries(refused.map(({ path, reason }) => [path, reason])), {
    external: "it is a link to another file",
    "group/inner/up": "it links to a group that contains it",
    "group/self": "it links to a group that contains it",
    circle: 'its link to the path "/circle" leads to no dataset',
    dangling: 'its link to the path "/nothing" leads to no dataset',
    "to group": 'its link to the path "/group" leads to a group',
    "through data": 'its link to the path "/data/x" leads to no dataset',
  });
  t.same([...root.datasets.keys()].sort(), ["data", "raw", "virtual"]);
  t.match(root.datasets.get("raw")?.layout, { kind: "unsupported", reason: /other files/ });
  t.match(root.datasets.get("virtual")?.layout, { kind: "unsupported", reason: /virtual/ });
});

t.test("an object with two links is parsed once", async (t) => {
  const { root } = await readHdf5(memoryBlocks(read("small-latest.h5")));
  t.equal(root.datasets.get("soft"), root.datasets.get("data"));
});

t.test("HDF5 is recognized at every place of a superblock", async (t) => {
  t.ok(isHdf5(read("small-latest.h5").subarray(0, 4096)));
  t.ok(isHdf5(read("user-block.h5").subarray(0, 4096)));
  t.notOk(isHdf5(read("user-block.h5").subarray(0, 512)));
  t.notOk(isHdf5(new Uint8Array(4096)));
  t.notOk(isHdf5(new Uint8Array()));
});

t.test("a file that is cut short is refused as a whole", async (t) => {
  for (const name of Object.keys(VIEWS)) {
    const bytes = read(name);
    for (const byteLength of [0, 7, 20, 300, bytes.length - 1]) {
      await t.rejects(readHdf5(memoryBlocks(bytes.subarray(0, byteLength))), { code: "invalid-metadata" });
    }
  }
});

t.test("a file with a changed byte in a structure with checksum is not read past it", async (t) => {
  const bytes = read("small-latest.h5");
  bytes[40] = 0x7f;
  await t.rejects(readHdf5(memoryBlocks(bytes)), {
    code: "invalid-metadata",
    message: /expected the checksum 0x[0-9a-f]+, received 0x/,
  });
});

t.test("a file that is open for writing is read with a warning", async (t) => {
  const bytes = read("small-latest.h5");
  bytes[8] = 3;
  bytes[11] = 5;
  bytes.writeUInt32LE(lookup3(bytes, 44), 44);
  const { warnings } = await readHdf5(memoryBlocks(bytes));
  t.match(warnings, [/open for writing/]);
});

t.test("damaged files are read or refused, quickly", async (t) => {
  const next = createRandom(16);
  const random = (limit: number) => Math.floor(next() * limit);
  const files = Object.keys(VIEWS).map(read);
  const repetitions = effort(20_000);
  for (let i = 0; i < repetitions; i++) {
    const bytes = Buffer.from(files[random(files.length)] as Buffer);
    const kind = random(3);
    for (let changes = 1 + random(6); changes > 0; changes--) {
      const at = random(bytes.length);
      if (kind === 0) bytes[at] = random(256);
      else if (kind === 1) bytes.subarray(at, at + random(9)).fill(0xff);
      else bytes.copy(bytes, random(bytes.length), at, at + random(64));
    }
    const start = processorMs();
    try {
      await readHdf5(memoryBlocks(bytes));
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
    }
    const ms = processorMs() - start;
    if (ms > 1_000) t.fail(`damaged file ${i} took ${ms} ms`);
  }
});

function sortedView(view: Record<string, unknown>): unknown {
  return Object.entries(view).sort(([a], [b]) => (a < b ? -1 : 1));
}
