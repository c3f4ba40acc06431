import { LosslessNumber } from "lossless-json";
import t from "tap";
import { createKeptIndexes } from "../../src/formats/kept-indexes.js";
import type { KnownPart } from "../../src/join/describe-part.js";
import { createKeptDescriptions } from "../../src/join/kept-descriptions.js";
import { makeDirectory } from "../open/write-store.js";
import { describePart } from "./describe-part.js";

function partOf(name: string, history: string): Omit<KnownPart, "version"> {
  const description = describePart(
    name,
    {
      time: { dims: ["time"], values: [1, 2, 3], attrs: { units: "days since 2000-01-01" } },
      y: {
        dims: ["y"],
        dtype: "<i8",
        values: [1n, 2n ** 60n],
        attrs: { exact: new LosslessNumber("1e-05") },
      },
      "g/v": {
        dims: ["time", "y"],
        shape: [3, 2],
        dtype: "<f4",
        fill: "NaN",
        codecs: [{ id: "zlib", level: 1 }],
      },
    },
    { history },
  );
  return { name, identity: `identity of ${name}`, description };
}

t.test("descriptions come back as they were, and equal pieces are one object", async (t) => {
  const cache = await makeDirectory(t);
  const kept = createKeptDescriptions(createKeptIndexes(cache), "dataset");
  t.equal(await kept.read(), undefined);
  const parts = Array.from({ length: 600 }, (_, index): KnownPart => {
    const part = partOf(`${index}.nc`, `made by ${index}`);
    return { ...part, version: `v${index}`, description: kept.share(part.description) };
  });
  const broken = [{ name: "b.nc", version: "v", reason: "no" }];
  await kept.write({ parts, broken });
  const again = createKeptDescriptions(createKeptIndexes(cache), "dataset");
  const found = await again.read();
  t.same(found, { parts, broken });
  t.equal(await createKeptDescriptions(createKeptIndexes(cache), "other").read(), undefined);

  const [one, other] = [found?.parts[0]?.description, found?.parts[599]?.description];
  for (const index of [0, 1, 2]) {
    t.equal(one?.arrays[index]?.stored, other?.arrays[index]?.stored);
    t.equal(one?.arrays[index]?.values, other?.arrays[index]?.values);
  }
  t.not(one?.groups[0], other?.groups[0], "with another history");
  t.equal(one?.groups[1], other?.groups[1]);
  const shared = again.share(partOf("new.nc", "made by 7").description);
  t.equal(shared.arrays[2]?.stored, one?.arrays[2]?.stored, "with those of new parts, too");
  t.equal(shared.groups[0], found?.parts[7]?.description.groups[0]);
});

t.test("pieces that no part has are forgotten, and the last of several writes counts", async (t) => {
  const kept = createKeptDescriptions(createKeptIndexes(await makeDirectory(t)), "dataset");
  const one = { ...partOf("a.nc", "one"), version: "1" };
  const other = { ...partOf("a.nc", "other"), version: "2" };
  const [first, second] = [one, other].map(
    (part): KnownPart => ({
      ...part,
      description: kept.share(part.description),
    }),
  ) as [KnownPart, KnownPart];
  void kept.write({ parts: [first], broken: [] });
  void kept.write({ parts: [first, second], broken: [] });
  void kept.write({ parts: [second], broken: [] });
  await kept.close();
  t.same((await kept.read())?.parts, [second]);
  t.not(kept.share(partOf("a.nc", "one").description).groups[0], first.description.groups[0]);
});
