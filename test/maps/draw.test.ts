import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import t from "tap";
import { createServer } from "../../src/index.js";
import { decodePng } from "../support/codec/decode-png.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const degrees = (first: number, step: number, length: number) =>
  Buffer.from(Float64Array.from({ length }, (_, at) => first + step * at).buffer);
const axis = (length: number) => ({
  ...zarray,
  shape: [length],
  chunks: [length],
  dtype: "<f8",
  fill_value: null,
});
const attrs = (dim: string, units: string) => ({ _ARRAY_DIMENSIONS: [dim], units });

/** Files of the whole Earth in cells of a degree, in chunks of `side`; those that are not given are absent. */
function earth(side: number, chunks: Readonly<Record<string, Uint8Array>>, rows = 180) {
  const step = 180 / rows;
  return {
    ".zgroup": zgroup,
    "lat/.zarray": axis(rows),
    "lat/.zattrs": attrs("lat", "degrees_north"),
    "lat/0": degrees(90 - step / 2, -step, rows),
    "lon/.zarray": axis(2 * rows),
    "lon/.zattrs": attrs("lon", "degrees_east"),
    "lon/0": degrees(-180 + step / 2, step, 2 * rows),
    "v/.zarray": { ...zarray, shape: [rows, 2 * rows], chunks: [side, side], dtype: "<f4", fill_value: null },
    "v/.zattrs": { _ARRAY_DIMENSIONS: ["lat", "lon"] },
    ...Object.fromEntries(Object.entries(chunks).map(([key, bytes]) => [`v/${key}`, bytes])),
  };
}

const chunkOf = (side: number, value: number) =>
  Buffer.from(new Float32Array(side * side).fill(value).buffer);

t.test("a chunk that is written over is drawn again, and what is cached stays", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, earth(90, { "0.0": chunkOf(90, 20), "1.3": chunkOf(90, 30) }));
  const cache = { directory: join(await makeDirectory(t), "cache"), maxBytes: 2 ** 24 };
  const dataset = { id: "d", location: directory, immutable: false, encoding: {}, variables: {} };
  const { get } = await startServer(t, { datasets: [dataset], cache });
  const tile = async (place: string) => {
    const answer = await get(`/datasets/d/tiles/v/${place}.png?range=0,255`);
    const { indices } = decodePng(new Uint8Array(await answer.arrayBuffer()));
    const { headers } = answer;
    return {
      value: indices[256 * 128 + 128]! - 1,
      etag: headers.get("etag"),
      origin: headers.get("x-cache"),
    };
  };
  const west = await tile("2/0/1");
  t.match(west, { value: 20, origin: "MISS" });
  const east = await tile("2/3/2");
  t.equal(east.value, 30);
  t.equal((await tile("1/1/0")).value, 0, "absent chunks are zero, which is no missing value here");
  let cached = await tile("2/0/1");
  for (let again = 0; again < 50 && cached.origin !== "HIT"; again++) cached = await tile("2/0/1");
  t.same(cached, { ...west, origin: "HIT" });
  const metrics = await (await get("/metrics")).text();
  t.match(metrics, 'zpublish_cache_hits_total{content="pictures"} 1\n');
  t.match(metrics, /zpublish_cache_hits_total\{content="chunks"\} \d/);

  await writeFiles(directory, { "v/0.0": chunkOf(90, 25), "v/.zattrs.unused": "" });
  const written = await tile("2/0/1");
  // The same size and the same time, a minute ago, may be the same version.
  t.not(written.etag, west.etag);
  t.equal(written.value, 25);
  t.equal((await tile("2/3/2")).etag, east.etag, "tiles of other chunks stay what they are");
});

t.test("colours are chosen again by the values of a dataset that is opened again", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, earth(90, { "0.0": chunkOf(90, 20) }));
  const dataset = { source: directory };
  const server = await createServer({ workers: 1, datasets: { d: dataset } });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const range = async () => {
    const legend = await (await fetch(`${url}/datasets/d/tiles/v/legend.json`)).json();
    return (legend as { readonly range: readonly number[] }).range;
  };
  const before = await range();
  await writeFiles(directory, { "v/0.0": chunkOf(90, 50) });
  t.same(await range(), before, "while it is open, all tiles have one range");
  await server.reload({ workers: 1, datasets: {} });
  await server.reload({ workers: 1, datasets: { d: dataset } });
  t.not((await range())[1], before[1]);
});

t.test(
  "colours are chosen by the first values that are written, and maps are drawn again with them",
  async (t) => {
    const directory = await makeDirectory(t);
    const missing = chunkOf(90, Number.NaN);
    const names = ["0.0", "0.1", "0.2", "0.3", "1.0", "1.1", "1.2", "1.3"];
    await writeFiles(directory, earth(90, Object.fromEntries(names.map((name) => [name, missing]))));
    const dataset = { id: "d", location: directory, immutable: false, encoding: {}, variables: {} };
    const { get } = await startServer(t, { datasets: [dataset] });
    const range = async () => {
      const legend = await (await get("/datasets/d/tiles/v/legend.json")).json();
      return (legend as { readonly range: readonly [number, number] }).range;
    };
    const west = async () => {
      const answer = await get("/datasets/d/tiles/v/2/0/1.png");
      const { indices } = decodePng(new Uint8Array(await answer.arrayBuffer()));
      return { colour: indices[256 * 128 + 128]!, etag: answer.headers.get("etag") };
    };
    t.same(await range(), [0, 1]);
    const before = await west();
    t.same(await west(), before);
    t.equal(before.colour, 0, "a missing value is transparent");

    await writeFiles(directory, {
      "v/1.3": Buffer.from(Float32Array.from({ length: 8_100 }, (_, at) => at).buffer),
    });
    const after = await west();
    t.not(after.etag, before.etag, "colours of a map are others even if its own chunks are the same");
    const chosen = await range();
    t.ok(chosen[1] > 1_000, `${chosen}`);
    t.same(await west(), after);
    await writeFiles(directory, { "v/1.3": chunkOf(90, 5) });
    t.same(await range(), chosen, "a range of values stays");
  },
);

t.test("coordinates that are written over in place move the picture", async (t) => {
  const directory = await makeDirectory(t);
  const south = Buffer.concat([
    chunkOf(90, 20).subarray(0, 4 * 90 * 45),
    chunkOf(90, 30).subarray(0, 4 * 90 * 45),
  ]);
  await writeFiles(directory, earth(90, { "0.0": south }));
  const dataset = { id: "d", location: directory, immutable: false, encoding: {}, variables: {} };
  const { get } = await startServer(t, { datasets: [dataset] });
  for (const path of [
    "tiles/v/2/0/1.png?range=0,255",
    "wms?request=GetMap&layers=v&crs=CRS:84&bbox=-180,0,-90,90&width=256&height=256&transparent=true&colorscalerange=0,255",
  ]) {
    const show = async () => {
      const answer = await get(`/datasets/d/${path}`);
      const { indices } = decodePng(new Uint8Array(await answer.arrayBuffer()));
      return { first: indices[0]! - 1, etag: answer.headers.get("etag") };
    };
    await writeFiles(directory, { "lat/0": degrees(89.5, -1, 180) });
    const before = await show();
    t.same(await show(), before);
    await writeFiles(directory, { "lat/0": degrees(-89.5, 1, 180) });
    const after = await show();
    t.not(after.etag, before.etag, path);
    t.not(after.first, before.first, path);
  }
  const north = async () => {
    const text = await (await get("/datasets/d/wms?request=GetCapabilities")).text();
    return /<northBoundLatitude>(.*?)</.exec(text)?.[1];
  };
  t.same([await north(), await north()], ["90", "90"]);
  await writeFiles(directory, { "lat/0": degrees(-44.75, 0.5, 180) });
  t.equal(await north(), "45", "capabilities follow");
  await writeFiles(directory, { "lat/0": degrees(0, 0, 180) });
  t.equal(await north(), undefined, "there is no layer while coordinates are not yet written");
  await writeFiles(directory, { "lat/0": degrees(-89.5, 1, 180) });
  t.equal(await north(), "90", "and there is one again afterwards");
});

t.test(
  "a tile that was drawn asks a remote store only once what it said is not believed any more",
  async (t) => {
    const directory = await makeDirectory(t);
    const files = earth(90, { "0.0": chunkOf(90, 20), "1.3": chunkOf(90, 30) });
    const metadata = Object.fromEntries(Object.entries(files).filter(([name]) => name.includes(".z")));
    const consolidated = { zarr_consolidated_format: 1, metadata };
    await writeFiles(directory, { ...files, ".zmetadata": consolidated });
    const origin = await startFaultyOrigin(t, { directory });
    for (const freshness of [600, "always"] as const) {
      const dataset = {
        id: "d",
        location: origin.url,
        immutable: false,
        encoding: {},
        variables: {},
        freshness,
      };
      const { get } = await startServer(t, { datasets: [dataset] });
      const draw = async () => {
        origin.resetCounts();
        const answer = await get("/datasets/d/tiles/v/2/0/1.png");
        t.equal(answer.status, 200);
        await answer.arrayBuffer();
        return origin.requests.map(({ key }) => key).sort();
      };
      t.ok((await draw()).includes("lat/0"));
      const chunks = (await draw()).filter((key) => key.startsWith("v/"));
      t.same([...new Set(chunks)], freshness === "always" ? ["v/0.0"] : [], `${freshness}`);
    }
  },
);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

t.test("a map that is remembered and not cached is drawn again, as it was", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, earth(90, { "0.0": chunkOf(90, 20), "1.3": chunkOf(90, 30) }));
  const dataset = { id: "d", location: directory, immutable: false, encoding: {}, variables: {} };
  const { get } = await startServer(t, { datasets: [dataset] });
  const draw = async () => {
    const answer = await get("/datasets/d/tiles/v/1/0/0.png?interpolate=linear");
    t.equal(answer.headers.get("x-cache"), "MISS");
    return Buffer.from(await answer.arrayBuffer());
  };
  const first = await draw();
  await setImmediate();
  collectGarbage();
  t.same(await draw(), first);
});

t.test("a tile of too many chunks is 413, unless overviews have fewer", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, earth(256, {}, 1_024));
  const dataset = { id: "plain", location: directory, immutable: false, encoding: {}, variables: {} };
  const overviews = { levels: 3, method: "mean" } as const;
  const { get } = await startServer(t, { datasets: [dataset, { ...dataset, id: "levels", overviews }] });
  const refused = await get("/datasets/plain/tiles/v/0/0/0.png?range=0,255");
  t.equal(refused.status, 413);
  t.match(
    await refused.text(),
    /32 chunks of 8388608 bytes: zoom in, or configure \\"overviews\\" for dataset 'plain'/,
  );
  t.equal((await get("/datasets/plain/tiles/v/2/1/1.png?range=0,255")).status, 200);
  const made = await get("/datasets/levels/tiles/v/0/0/0.png?range=0,255");
  t.equal(made.status, 200);
  t.same(new Set(decodePng(new Uint8Array(await made.arrayBuffer())).indices), new Set([1]));
});
