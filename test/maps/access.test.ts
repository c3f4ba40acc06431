import { join } from "node:path";
import t from "tap";
import { createMemorySource, type MemoryArray } from "../../src/open/memory-source.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { accessOf, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const ARRAYS: readonly MemoryArray[] = [
  {
    ...{ name: "v", dims: ["lat", "lon"], shape: [2, 2], attrs: { units: "K" } },
    data: Float32Array.of(1, 2, 3, 4),
  },
  {
    ...{ name: "lat", dims: ["lat"], shape: [2], data: Float64Array.of(45, -45) },
    attrs: { units: "degrees_north" },
  },
  {
    ...{ name: "lon", dims: ["lon"], shape: [2], data: Float64Array.of(-90, 90) },
    attrs: { units: "degrees_east" },
  },
];
const MAP = "request=GetMap&layers=v&crs=CRS:84&bbox=-180,-90,180,90&width=8&height=4";
const PATHS = [
  "tiles/v/0/0/0.png",
  "tiles/v/tilejson.json",
  "tiles/v/legend.png",
  `wms?${MAP}`,
  "wms?request=GetCapabilities",
];

t.test(
  "maps that are remembered for one user are shown to no other who may not see the dataset",
  async (t) => {
    const directory = await makeDirectory(t);
    const [all, guest] = ["token-of-an-owner", "token-of-a-guest"];
    await writeFiles(directory, { tokens: `${all}\n${guest} open\n` });
    const { url } = await startServer(t, {
      datasets: ["open", "closed"].map((id) =>
        datasetOf(id, createMemorySource({ location: id, groups: [{ path: "/", arrays: ARRAYS }] })),
      ),
      cache: { directory: join(directory, "cache"), maxBytes: 2 ** 24 },
      access: accessOf({ tokenFile: join(directory, "tokens") }),
    });
    const prefixOf = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${url}/session`, { method: "POST", headers });
      return ((await answer.json()) as { readonly prefix: string }).prefix;
    };
    const [owner, visitor] = [await prefixOf(all), await prefixOf(guest)];
    for (const path of PATHS) {
      const closed = `datasets/closed/${path}`;
      const mine = await fetch(owner + closed);
      t.equal(mine.status, 200, path);
      t.match(mine.headers.get("cache-control"), /^private/, path);
      const etag = mine.headers.get("etag") ?? '"none"';
      const text = await mine.text();
      t.notOk(text.includes(visitor), path);
      t.equal(await (await fetch(owner + closed)).text(), text, "remembered");
      for (const headers of [{}, { "if-none-match": etag }, { range: "bytes=0-3" }]) {
        t.equal((await fetch(visitor + closed, { headers })).status, 403, path);
        t.equal((await fetch(`${url}/${closed}`, { headers })).status, 401, path);
      }

      const first = await (await fetch(`${owner}datasets/open/${path}`)).text();
      const other = await fetch(`${visitor}datasets/open/${path}`);
      t.equal(other.status, 200, path);
      t.notOk((await other.text()).includes(owner), `${path} names no ticket of another user`);
      t.equal(await (await fetch(`${owner}datasets/open/${path}`)).text(), first, path);
    }
  },
);
