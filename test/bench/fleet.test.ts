import t from "tap";
import { lruHitRatio, zipfLoad } from "../../bench/cache-hit-ratio.js";
import { createFrontCache } from "../../bench/fleet/front-cache.js";
import { type Member, PLACEMENTS, type PlacementName } from "../../bench/fleet/placements.js";
import { NO_INSTANCE, ORIGIN, simulateFleet } from "../../bench/fleet/simulate-fleet.js";

const NAMES = Array.from({ length: 10 }, (_, i) => `10.0.0.${i + 1}:9000`);
const pathOf = (number: number) => `/datasets/air/zarr/t2m/${number}.0.0`;
const membersOf = (count: number): Member[] =>
  NAMES.slice(0, count).map((name, instance) => ({ name, instance }));
const fleetOf = (count: number) => ({
  isUp: new Uint8Array(count).fill(1),
  upInAll: count,
  underWay: new Int32Array(count),
  underWayInAll: 0,
});

/** Share of 5,000 paths that have another instance than before. */
function moved(placement: PlacementName, before: readonly Member[], after: readonly Member[]): number {
  const [one, other] = [before, after].map((members) => PLACEMENTS[placement](members));
  const fleet = fleetOf(NAMES.length);
  const count = 5_000;
  let different = 0;
  for (let i = 0; i < count; i++)
    if (one!.choose(pathOf, i, fleet) !== other!.choose(pathOf, i, fleet)) different++;
  return different / count;
}

t.test("a simulation is the same for the same seed", async (t) => {
  const options = {
    ...{ load: zipfLoad(5_000, 2_000, 0.9, 1), names: NAMES, capacity: 64, seed: 3 },
    place: PLACEMENTS["bounded, 125 %"],
  };
  t.strictSame(await simulateFleet(options), await simulateFleet(options));
});

t.test(
  "consistent hashing moves the share of an instance that leaves the list, and modulo nearly all",
  async (t) => {
    const all = membersOf(10);
    const left = all.filter(({ instance }) => instance !== 4);
    for (const placement of ["consistent", "consistent, HAProxy"] as const) {
      const share = moved(placement, all, left);
      t.ok(share > 0.05 && share < 0.15, `${placement}: ${share}`);
    }
    t.ok(moved("modulo", all, left) > 0.8);
  },
);

t.test("every spread leaves out instances that are away, and each path stays where it was", async (t) => {
  for (const [name, place] of Object.entries(PLACEMENTS)) {
    const placement = place(membersOf(10));
    const fleet = fleetOf(10);
    const before = Array.from({ length: 500 }, (_, i) => placement.choose(pathOf, i, fleet));
    fleet.isUp[3] = 0;
    fleet.upInAll = 9;
    const after = before.map((_, i) => placement.choose(pathOf, i, fleet));
    t.notOk(after.includes(3), name);
    if (name === "in turn") continue;
    t.ok(
      after.every((instance, i) => instance === before[i] || before[i] === 3),
      name,
    );
  }
});

t.test("with bounded loads no instance has more than its share of the requests under way", async (t) => {
  const placement = PLACEMENTS["bounded, 125 %"](membersOf(10));
  const fleet = fleetOf(10);
  for (let i = 0; i < 1_000; i++) {
    // All ask for the same chunk.
    fleet.underWay[placement.choose(pathOf, 0, fleet)]!++;
    fleet.underWayInAll++;
  }
  t.ok(Math.max(...fleet.underWay) <= 126, `${fleet.underWay}`);
});

t.test("the shared cache in front keeps what was used last, and instances get the rest", async (t) => {
  const load = zipfLoad(5_000, 2_000, 0.9, 1);
  const front = createFrontCache(100);
  const hits = load.filter((chunk) => front.ask(chunk)).length;
  t.equal(hits / load.length, lruHitRatio(load, 100));
  const { origins, instances } = await simulateFleet({
    ...{ load, names: NAMES, place: PLACEMENTS.consistent, capacity: 64, frontCapacity: 100, seed: 1 },
  });
  t.equal(origins.filter((origin) => origin === ORIGIN.front).length, hits);
  t.ok(origins.every((origin, i) => (origin === ORIGIN.front) === (instances[i] === NO_INSTANCE)));
});

t.test(
  "an instance that keeps its disk hits at once, and one that loses it asks the bucket again",
  async (t) => {
    const load = Uint32Array.from({ length: 400 }, (_, i) => i % 50);
    const bucketRequests = async (kind: "back, cache kept" | "back, cache lost") => {
      const events = [
        { at: 200, instance: 0, kind: "away" as const },
        { at: 300, instance: 0, kind },
      ];
      const { origins, instances } = await simulateFleet({
        ...{ load, names: NAMES.slice(0, 2), place: PLACEMENTS.consistent, capacity: 100, seed: 1, events },
      });
      t.ok(instances.subarray(200, 300).every((instance) => instance === 1));
      t.ok(instances.subarray(300).includes(0));
      return origins.subarray(300).filter((origin) => origin === ORIGIN.bucket).length;
    };
    t.equal(await bucketRequests("back, cache kept"), 0);
    t.ok((await bucketRequests("back, cache lost")) > 10);
  },
);
