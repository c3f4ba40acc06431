import t from "tap";
import { createSnapshot } from "../../../src/dataset/snapshot.js";
import type { RouteRequest } from "../../../src/http/reply.js";
import { createMemorySource, type MemoryArray } from "../../../src/open/memory-source.js";
import { describeForDap } from "../../../src/plugins/opendap/dap-dataset.js";
import { exactFloats } from "../../../src/plugins/opendap/dap-values.js";
import opendapPlugin from "../../../src/plugins/opendap/opendap-plugin.js";
import type { Values } from "../../../src/values/values.js";
import { fakeContext } from "../../support/datasets/fake-context.js";
import { inlineValues } from "../../support/inline-values.js";

async function snapshotOf(arrays: readonly MemoryArray[]) {
  const source = createMemorySource({ location: "d", groups: [{ path: "/", arrays }] });
  const config = { id: "d", location: "d", immutable: false, encoding: {}, variables: {} };
  return createSnapshot(config, await source.readTree(), "no-cache");
}

t.test("integers of 64 bits become floats if these hold them exactly", async (t) => {
  const steps = Array.from({ length: 65 }, (_, bits) => 2n ** BigInt(bits));
  const near = steps.flatMap((step) =>
    [-1025n, -3n, -1n, 0n, 1n, 2n, 512n, 1024n].map((each) => step + each),
  );
  for (const integer of new Set([...near, ...near.map((each) => -each), 1_700_000_000_000_000_000n]))
    for (const List of [BigInt64Array, BigUint64Array]) {
      const values = List.of(5n, integer);
      if (values[1] !== integer) continue;
      const isExact = BigInt(Number(integer)) === integer;
      // Blocks may lie anywhere in their memory.
      for (const block of [values, List.of(0n, 5n, integer).subarray(1)])
        if (isExact) t.strictSame([...exactFloats({ values: block })], [5, Number(integer)], `${integer}`);
        else t.throws(() => exactFloats({ values: block }), new RegExp(`cannot hold ${integer};`));
    }
});

t.test("variables are read several at a time and keep their order", async (t) => {
  const integers = { a: 1n, b: 2n ** 53n + 1n, c: 2n ** 53n + 1n, d: 2n };
  const snapshot = await snapshotOf(
    Object.entries(integers).map(([name, integer]) => {
      return { name, data: BigInt64Array.of(integer), shape: [1], dims: ["x"] };
    }),
  );
  const own = inlineValues();
  let begun = 0;
  let release = () => {};
  const lastHasBegun = new Promise<void>((resolve) => {
    release = resolve;
  });
  async function* late(blocks: ReturnType<Values["stream"]>) {
    await lastHasBegun;
    yield* blocks;
  }
  const values: Values = {
    ...own,
    stream(...asked) {
      begun += 1;
      if (begun === 4) release();
      return begun <= 2 ? late(own.stream(...asked)) : own.stream(...asked);
    },
  };
  const { byName, byPath, leftOut } = await describeForDap(snapshot, values);
  t.strictSame([...byName.keys()], ["a", "d"]);
  t.strictSame([...byPath.keys()], ["a", "b", "c", "d"]);
  t.strictSame([...leftOut.keys()], ["b", "c"]);
});

t.test("a request with texts waits for room once, for that of all its variables", async (t) => {
  const data = new Float64Array(2 ** 18);
  const snapshot = await snapshotOf([
    { name: "texts", data: Buffer.from("ab\0cde"), dtype: "|S3", shape: [2], dims: ["y"] },
    { name: "v", data, shape: [data.length], dims: ["x"] },
  ]);
  const context = { ...fakeContext({ snapshots: [snapshot] }), values: inlineValues() };
  const [{ handler }] = opendapPlugin.routes(context) as [ReturnType<typeof opendapPlugin.routes>[number]];
  for (const [asked, query, count] of [
    ["dods", "texts,v", 1],
    ["ascii", "", 1],
    ["dap", "", 1],
    ["dods", "v", 0],
  ] as const) {
    const reserved: number[] = [];
    const file = `d.nc.${asked}`;
    const request: RouteRequest = {
      method: "GET",
      params: { dataset_id: "d", file },
      rawPath: `/datasets/d/opendap/${file}`,
      query,
      serviceUrl: "http://h",
      header: () => undefined,
      signal: new AbortController().signal,
      reserve: (byteLength) => void reserved.push(byteLength),
      body: async () => new Uint8Array(),
    };
    await handler(request);
    t.equal(reserved.length, count, asked);
    for (const byteLength of reserved) t.ok(byteLength >= data.byteLength, `${asked}: ${byteLength}`);
  }
});
