import { join } from "node:path";
import fc from "fast-check";
import t from "tap";
import { compareItems, datasetAt } from "../support/clients/compare-items.js";
import { effort } from "../support/effort.js";
import { repositoryFiles } from "../support/icechunk-repository.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { runProgram } from "../support/servers/run-program.js";
import { startServer } from "../support/servers/start-server.js";
import { type RectilinearSpec, rectilinearFiles } from "../support/write-rectilinear.js";
import { makeDirectory, v3Group, writeFiles } from "../support/write-store.js";
import { writeZip } from "../support/write-zip.js";

t.setTimeout(600_000);

const lengthsArbitrary = fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 5 });

/** Arrays of 1 to 4 axes; the last chunk may reach beyond the array. */
const specArbitrary: fc.Arbitrary<RectilinearSpec> = fc
  .array(lengthsArbitrary, { minLength: 1, maxLength: 4 })
  // All chunks of an array are asked for.
  .map((lengths) => lengths.map((list) => list.slice(0, 7 - lengths.length)))
  .chain((lengths) => {
    const sums = lengths.map((list) => list.reduce((sum, length) => sum + length, 0));
    return fc.record({
      type: fc.constantFrom("uint8", "int16", "int32", "float32", "float64"),
      shape: fc.tuple(
        ...sums.map((sum, axis) =>
          fc.integer({ min: Math.max(1, sum - lengths[axis]!.at(-1)! - 1), max: sum }),
        ),
      ),
      lengths: fc.constant(lengths),
      decodedLengths: fc.option(
        fc.tuple(
          ...lengths.map((list) =>
            fc.tuple(...list.map((length) => fc.integer({ min: length, max: length + 2 }))),
          ),
        ),
        { nil: undefined },
      ),
      axisOrder: fc.option(
        fc.shuffledSubarray(
          lengths.map((_, axis) => axis),
          { minLength: lengths.length },
        ),
        { nil: undefined },
      ),
      isCompressed: fc.boolean(),
      keyEncoding: fc.record({
        name: fc.constantFrom("default", "v2"),
        separator: fc.constantFrom(".", "/"),
      }),
      fill: fc.constantFrom(0, 7),
      names: fc.option(fc.constant(lengths.map((_, axis) => `d${axis}`)), { nil: undefined }),
      isAbsent: fc.constantFrom(
        () => false,
        () => true,
        (coords: readonly number[]) => coords.reduce((sum, each) => sum + each, 0) % 3 === 0,
      ),
    });
  });

/** Shards that are multiples of their chunks. */
const shardedArbitrary = fc
  .tuple(specArbitrary, fc.integer({ min: 1, max: 3 }))
  .map(([{ decodedLengths: _none, ...spec }, inner]) => ({
    ...spec,
    lengths: spec.lengths.map((lengths) => lengths.map((length) => length * inner)),
    shape: spec.shape.map((length) => length * inner - 1 || 1),
    inner: spec.shape.map(() => inner),
  }));

t.test("clients of both versions read every array as it was written", async (t) => {
  const directory = await makeDirectory(t);
  const expected = new Map<string, readonly number[]>();
  const specs = [
    ...fc.sample(specArbitrary, { numRuns: effort(60), seed: 28 }),
    ...fc.sample(shardedArbitrary, { numRuns: effort(30), seed: 29 }),
  ];
  await writeFiles(directory, { "zarr.json": v3Group });
  for (const [number, spec] of specs.entries()) {
    const { files, items } = rectilinearFiles(spec);
    await writeFiles(join(directory, `v${number}`), files);
    expected.set(`v${number}`, items);
  }
  const { url, lines } = await startServer(t, { datasets: [datasetAt(directory)] });
  await compareItems(t, url, expected);
  t.strictSame(
    lines.filter(({ level }) => Number(level) >= 50),
    [],
  );
});

t.test("they are read from other machines, from archives, by references and from Icechunk", async (t) => {
  const spec: RectilinearSpec = {
    type: "uint8",
    shape: [6, 2],
    lengths: [
      [1, 3, 2],
      [1, 1],
    ],
    isCompressed: true,
    names: ["y", "x"],
  };
  const sharded: RectilinearSpec = {
    type: "int16",
    shape: [5_000],
    lengths: [[2_000, 1_000, 2_000]],
    inner: [1_000],
  };
  const all = { v: rectilinearFiles(spec), s: rectilinearFiles(sharded) };
  const documents = Object.fromEntries(
    Object.entries(all).map(([name, { files }]) => [name, files["zarr.json"]!]),
  );
  const root = {
    ...v3Group,
    consolidated_metadata: { kind: "inline", must_understand: false, metadata: documents },
  };
  const objects: Record<string, Uint8Array> = { "zarr.json": Buffer.from(JSON.stringify(root)) };
  for (const [name, { files }] of Object.entries(all))
    for (const [key, file] of Object.entries(files))
      objects[`${name}/${key}`] = file instanceof Uint8Array ? file : Buffer.from(JSON.stringify(file));
  const expected = new Map(Object.entries(all).map(([name, { items }]) => [name, items]));

  const prefixed = Object.fromEntries(
    Object.entries(objects).map(([key, bytes]) => [`a.zarr/${key}`, bytes]),
  );
  const origin = await startFaultyOrigin(t, { objects: prefixed });
  const remote = await startServer(t, { datasets: [datasetAt(`${origin.url}/a.zarr`)] });
  await compareItems(t, remote.url, expected, "http");

  const directory = await makeDirectory(t);
  const entries = Object.entries(objects).map(([name, content]) => ({ name, content }));
  await writeFiles(directory, { "a.zip": writeZip(entries) });
  const zipped = await startServer(t, { datasets: [datasetAt(join(directory, "a.zip"))] });
  await compareItems(t, zipped.url, expected, "zip");

  await writeFiles(
    directory,
    Object.fromEntries(Object.entries(objects).map(([key, bytes]) => [`s/${key}`, bytes])),
  );
  const refs = Object.fromEntries(
    Object.entries(objects).map(([key, bytes]) => [
      key,
      key.endsWith("json") ? Buffer.from(bytes).toString() : [`s/${key}`],
    ]),
  );
  await writeFiles(directory, { "refs.json": { version: 1, refs } });
  const referred = await startServer(t, { datasets: [datasetAt(join(directory, "refs.json"))] });
  await compareItems(t, referred.url, expected, "references");

  const manifests = Object.entries(all).map(([name, { files }]) => {
    const chunks = Object.entries(files).filter(([key]) => key !== "zarr.json");
    const refs = chunks.map(([key, inline]) => ({
      index: key.split("/").slice(1).map(Number),
      inline: inline as Uint8Array,
    }));
    const extents = refs[0]!.index.map(() => [0, 9] as const);
    return { node: { path: `/${name}`, document: documents[name], manifests: [{ name, extents }] }, refs };
  });
  const nodes = [{ path: "/", document: v3Group }, ...manifests.map(({ node }) => node)];
  const repository = repositoryFiles({
    snapshots: [{ name: "first", nodes }],
    branches: { main: "first" },
    manifests: Object.fromEntries(
      manifests.map(({ node, refs }) => [node.path.slice(1), { arrays: { [node.path]: refs } }]),
    ),
  });
  await writeFiles(join(directory, "repository"), repository);
  const versioned = await startServer(t, { datasets: [datasetAt(join(directory, "repository"))] });
  await compareItems(t, versioned.url, expected, "icechunk");

  const { stdout } = await runProgram(["references", join(directory, "s")]);
  const told = (JSON.parse(stdout) as { refs: Record<string, unknown> }).refs;
  t.strictSame(told["s/4"], [join(directory, "s/s/c/2"), 2_000, 2_000], "a chunk of the last shard");
  const made = Buffer.from(await (await remote.get("/datasets/d/zarr/v/1.0")).arrayBuffer());
  t.equal(told["v/1.0"], `base64:${made.toString("base64")}`, "is put together, so that no place has it");
});
