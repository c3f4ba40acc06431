import t from "tap";
import type { WarmedChunk } from "../../src/chunk/chunk-service.js";
import { ZpublishError } from "../../src/errors.js";
import { type WarmCounts, type WarmOptions, warmChunks } from "../../src/warm/warm-chunks.js";
import { chunkKeys, type WarmTarget } from "../../src/warm/warm-targets.js";

function target(name: string, grid: readonly number[], chunkBytes = 1_000): WarmTarget {
  const axes = grid.map((length) => Array.from({ length }, (_, index) => index));
  const count = grid.reduce((product, length) => product * length, 1);
  return {
    ...({ snapshot: {}, array: { name } } as unknown as Pick<WarmTarget, "snapshot" | "array">),
    ...{ path: `/datasets/d/zarr/${name}/`, axes, count, chunkBytes, isOfLevel: name.startsWith("2/") },
  };
}

type Warm = (name: string, key: string) => WarmedChunk | Promise<WarmedChunk>;

function optionsOf(warm: Warm, more: Partial<WarmOptions> = {}) {
  const asked: string[] = [];
  const controller = new AbortController();
  const options: WarmOptions = {
    warmer: {
      async warm(_snapshot, array, key) {
        const { name } = array as unknown as { name: string };
        asked.push(`${name}/${key}`);
        return warm(name, key);
      },
    },
    cacheBytes: 2 ** 30,
    rootPath: "",
    threads: 1,
    memoryBytes: 2 ** 30,
    stored: false,
    signal: controller.signal,
    hasEvicted: () => false,
    onTooMuch: () => {},
    onProgress: () => {},
    ...more,
  };
  return { asked, controller, options };
}

const made = (byteLength = 10): WarmedChunk => ({ outcome: "made", byteLength });

t.test("the keys of a target are in the order of the grid", async (t) => {
  t.strictSame([...chunkKeys({ axes: [[0, 2], [1], [3, 4]] })], ["0.1.3", "0.1.4", "2.1.3", "2.1.4"]);
  t.strictSame([...chunkKeys({ axes: [] })], ["0"], "a scalar has one");
  t.strictSame([...chunkKeys({ axes: [[1], []] })], []);
});

t.test("each chunk is warmed once, and counted by its outcome", async (t) => {
  const outcomes: Record<string, WarmedChunk> = {
    "0.0": { outcome: "cached", byteLength: 10 },
    "0.1": { outcome: "absent", byteLength: 0 },
    "1.0": { outcome: "stored", byteLength: 0 },
  };
  const seen: WarmCounts[] = [];
  const { asked, options } = optionsOf(
    (name, key) => {
      if (name === "b" && key === "0") throw new ZpublishError("corrupt-chunk", "it is broken");
      if (name === "b" && key === "1") throw new ZpublishError("not-found", "it has vanished");
      return outcomes[key] ?? made(100);
    },
    { onProgress: (counts) => seen.push({ ...counts }) },
  );
  const result = await warmChunks([target("a", [2, 2]), target("b", [3])], options);
  t.strictSame(result, {
    ...{ total: 7, made: 2, cached: 1, absent: 2, stored: 1, failed: 1, madeBytes: 200 },
    ...{ failures: ["/datasets/d/zarr/b/0: it is broken"], stopped: undefined },
  });
  t.strictSame(asked, ["a/0.0", "a/0.1", "a/1.0", "a/1.1", "b/0", "b/1", "b/2"]);
  t.equal(seen.length, 7);
  t.strictSame({ ...seen.at(-1), failures: result.failures, stopped: undefined }, result);
});

t.test("of several instances, one warms what is its own by the path with the root path", async (t) => {
  const paths: string[] = [];
  const { asked, options } = optionsOf(() => made(), {
    rootPath: "/data",
    isOwn(path) {
      paths.push(path);
      return path.endsWith("1");
    },
  });
  const result = await warmChunks([target("a", [3, 2])], options);
  t.match(result, { total: 3, made: 3, stopped: undefined });
  t.strictSame(asked, ["a/0.1", "a/1.1", "a/2.1"]);
  t.equal(paths[0], "/data/datasets/d/zarr/a/0.0");
});

t.test(
  "more than the cache holds is said before the rest begins, and it ends when the cache is full",
  async (t) => {
    const said: [number, number][] = [];
    const { asked, options } = optionsOf(() => made(9_000), {
      cacheBytes: 2 ** 20,
      onTooMuch: (bytes) => said.push([bytes, asked.length]),
    });
    const result = await warmChunks([target("a", [1_000], 20_000)], options);
    t.equal(said.length, 1);
    t.strictSame(said[0], [12_288 * 1_000, 3], "estimated by three chunks, in whole pages");
    t.equal(result.stopped, "cache-full");
    t.ok(result.made > 70 && result.made <= 82, `${result.made} of 12 KiB fit into 1 MiB`);
    t.equal(new Set(asked).size, asked.length, "the chunks of the estimate are not warmed again");
  },
);

t.test("the estimate makes no chunk of a higher level, which would take all below it", async (t) => {
  const said: number[] = [];
  const { asked, options } = optionsOf(() => made(9_000), {
    cacheBytes: 2 ** 20,
    onTooMuch(bytes) {
      said.push(bytes);
      t.strictSame(asked, ["a/0", "a/499", "a/999"]);
    },
  });
  await warmChunks([target("a", [1_000], 20_000), target("2/a", [250], 20_000)], options);
  t.strictSame(said, [12_288 * 1_250]);
});

t.test("nothing is said if the encoded chunks fit, or if all are absent", async (t) => {
  for (const [outcome, byteLength] of [["made", 10] as const, ["absent", 0] as const]) {
    const { options } = optionsOf(() => ({ outcome, byteLength }), {
      cacheBytes: 2 ** 20,
      onTooMuch: () => t.fail("too much"),
    });
    t.match(await warmChunks([target("a", [1_000], 20_000)], options), {
      [outcome]: 1_000,
      stopped: undefined,
    });
  }
});

t.test("it ends if the cache takes no more, but not for a chunk that is too large for it", async (t) => {
  const { asked, options } = optionsOf((_, key) =>
    key === "3" ? { outcome: "refused", byteLength: 5 } : made(),
  );
  const result = await warmChunks([target("a", [1_000])], options);
  t.equal(result.stopped, "cache-failed");
  t.ok(asked.length < 300);
  const full = optionsOf(() => ({ outcome: "refused", byteLength: 5 }), { hasEvicted: () => true });
  t.equal((await warmChunks([target("a", [1_000])], full.options)).stopped, "cache-full");
  const large = optionsOf((_, key) => (key === "3" ? { outcome: "refused", byteLength: 2 ** 20 } : made()), {
    cacheBytes: 2 ** 22,
  });
  t.match(await warmChunks([target("a", [10])], large.options), {
    ...{ made: 9, failed: 1, stopped: undefined },
    failures: ["/datasets/d/zarr/a/3: its 1048576 bytes are more than an eighth of the cache"],
  });
});

t.test("a signal ends it soon: what is under way is finished, and the rest is left", async (t) => {
  const { asked, controller, options } = optionsOf(async (_, key) => {
    if (key === "20") controller.abort();
    await new Promise((resolve) => setImmediate(resolve));
    return made();
  });
  const result = await warmChunks([target("a", [1_000])], options);
  t.equal(result.stopped, "cancelled");
  t.ok(result.made <= 300 && result.made === asked.length, `${result.made} made`);
  t.equal(result.failed, 0);
});
