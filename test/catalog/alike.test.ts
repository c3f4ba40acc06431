import { join } from "node:path";
import t, { type Test } from "tap";
import { findAlikeFiles } from "../../src/catalog/alike.js";
import { readFileForm } from "../../src/catalog/file-form.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { openJoin } from "../../src/join/open-join.js";
import { openSource } from "../../src/open/open-source.js";
import { type GridFile, gridFile } from "../support/grid-file.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

/** Writes files, and compares them all but those of some names. */
async function alikeIn(t: Test, files: Readonly<Record<string, GridFile>>, left: readonly string[] = []) {
  const folder = join(await makeDirectory(t), "it's data");
  await writeFiles(
    folder,
    Object.fromEntries(Object.entries(files).map(([name, content]) => [name, gridFile(content)])),
  );
  const described = new Map();
  for (const id of Object.keys(files).filter((name) => !left.includes(name))) {
    const location = join(folder, id);
    const tree = await (await openSource(location)).readTree();
    const config = { id, location, immutable: false, encoding: {}, variables: {} };
    described.set(id, { location, form: await readFileForm(createSnapshot(config, tree, "")) });
  }
  return { folder, alike: await findAlikeFiles(described) };
}

function numbered(
  count: number,
  nameOf: (index: number) => string,
  contentOf: (index: number) => GridFile,
): Record<string, GridFile> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [nameOf(index), contentOf(index)]));
}

const DAYS = numbered(
  6,
  (day) => `202${day % 2}/sst-202${day % 2}-01-0${day + 1}.nc`,
  (day) => ({ days: [day] }),
);

for (const [name, files, expected] of [
  ["days in folders of years", DAYS, "'sst=…/it'\\''s data/*/sst-*.nc' --concat time"],
  [
    "files that count time from their first step",
    numbered(
      3,
      (index) => `run_${index}.nc`,
      (index) => ({ days: [4 * index, 4 * index + 1], since: 4 * index }),
    ),
    "'run=…/it'\\''s data/run_*.nc' --concat time",
  ],
  [
    "names without numbers",
    { "may.nc": { days: [0, 1] }, "june.nc": { days: [2, 3] }, "july.nc": { days: [4] } },
    "'…/it'\\''s data/*.nc' --concat time",
  ],
  [
    "scalar times",
    numbered(
      3,
      (index) => `t${index}.nc`,
      (index) => ({ days: [index], isScalar: true }),
    ),
    "'t=…/it'\\''s data/t*.nc' --stack time",
  ],
  [
    "no times, and dates in names",
    numbered(
      3,
      (index) => `ndvi.2020-0${index + 1}.nc`,
      () => ({}),
    ),
    "'ndvi=…/it'\\''s data/ndvi.*.nc' --stack",
  ],
  [
    "no times, and numbers in names",
    numbered(
      4,
      (index) => `member${index}.nc`,
      () => ({}),
    ),
    "'member=…/it'\\''s data/member*.nc' --stack number",
  ],
] as const) {
  t.test(`files are one dataset: ${name}`, async (t) => {
    const { folder, alike } = await alikeIn(t, files);
    t.equal(alike.length, 1);
    const [{ ids, files: count, command, publicCommand, option } = alike[0]!] = alike;
    t.same([...ids].sort(), Object.keys(files).sort());
    t.equal(count, ids.size);
    t.ok(publicCommand.startsWith(expected), publicCommand);
    t.notMatch(publicCommand, folder);
    // What a shell makes of it is a dataset of all files.
    const [, location = ""] = /^'(?:[\w.-]+=)?(\/.*)' --/.exec(command.replaceAll("'\\''", "'")) ?? [];
    const [, kind, dimension = ""] = /^--(concat|stack) (.+)$/.exec(option) ?? [];
    const source = await openJoin(location, { kind: kind as "concat" | "stack", dimension });
    const tree = await source.readTree();
    t.same(tree.refused, []);
    t.same(
      tree.warnings.filter((warning) => !warning.includes("are converted to")),
      [],
    );
    t.equal(tree.join?.parts.length, count);
    await source.close();
  });
}

for (const [name, files] of [
  [
    "two files",
    numbered(
      2,
      (day) => `${day}.nc`,
      (day) => ({ days: [day] }),
    ),
  ],
  [
    "times that overlap",
    numbered(
      3,
      (day) => `${day}.nc`,
      (day) => ({ days: [day, day + 1] }),
    ),
  ],
  [
    "times in no order",
    numbered(
      3,
      (day) => `${day}.nc`,
      (day) => ({ days: [4 * day, 4 * day + 2, 4 * day + 1] }),
    ),
  ],
  [
    "other grids",
    numbered(
      3,
      (day) => `${day}.nc`,
      (day) => ({ days: [day], latitudes: [day, 50, 60] }),
    ),
  ],
  ["names of which some are others", { ...DAYS, "2020/sst-mean-3.nc": { days: [1], latitudes: [1, 2] } }],
  ["no times, and names without numbers", { "a.nc": {}, "b.nc": {}, "c.nc": {} }],
] as const)
  t.test(`files are not one dataset: ${name}`, async (t) => {
    const { alike } = await alikeIn(t, files as Readonly<Record<string, GridFile>>);
    t.same(alike, []);
  });

t.test("files that were not compared are counted", async (t) => {
  const { alike } = await alikeIn(t, { ...DAYS, "2021/sst-2021-01-09.nc": { days: [9] } }, [
    "2021/sst-2021-01-09.nc",
  ]);
  t.same(
    alike.map(({ ids, files }) => [ids.size, files]),
    [[6, 7]],
  );
});
