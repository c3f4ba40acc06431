import { cacheKeyOf } from "../../src/cache/chunk-cache.js";
import type { Load } from "../cache-hit-ratio.js";
import { createRandom } from "../random.js";
import { createFrontCache } from "./front-cache.js";
import type { FleetState, MakePlacement, Member } from "./placements.js";
import { createInstance } from "./simulated-instance.js";

/** Something that happens to an instance before a request. */
export interface FleetEvent {
  /** Number of the request. */
  readonly at: number;
  readonly instance: number;
  /**
   * `away`: the balancer's checks fail; `back`: it has its place again, with or without what it had cached; `removed`: it is
   * taken off the balancer's list.
   */
  readonly kind: "away" | "back, cache kept" | "back, cache lost" | "removed";
}

/** A simulation: who asks for what, and who answers. */
export interface FleetOptions {
  /** Chunk numbers asked for, one after another. */
  readonly load: Load;
  /** `host:port` of each instance. */
  readonly names: readonly string[];
  readonly place: MakePlacement;
  /** Chunks that the cache of one instance holds. */
  readonly capacity: number;
  /** See `createInstance`. */
  readonly chunkBytes?: number;
  /** Default `encode`: see `createInstance`. */
  readonly cost?: "read" | "encode";
  /** Chunks that a shared cache in front holds. Default 0. */
  readonly frontCapacity?: number;
  /** Ascending by `at`. */
  readonly events?: readonly FleetEvent[];
  readonly seed: number;
  /** Path of a chunk. Default: of an array `air/t2m`. */
  readonly pathOf?: (chunk: number) => string;
}

/** What a simulation counts. */
export interface FleetRun {
  /** Per request: answered by the shared cache, by an instance's cache, or from the bucket. */
  readonly origins: Uint8Array;
  /** Per request: the instance that answered; {@link NO_INSTANCE} for the shared cache. */
  readonly instances: Uint16Array;
}

/** Values of {@link FleetRun.origins}. */
export const ORIGIN = { front: 0, hit: 1, bucket: 2 } as const;
/** Value of {@link FleetRun.instances} for requests that no instance answered. */
export const NO_INSTANCE = 0xffff;

/** Requests between two looks at what is to be written. */
const TURN = 16;
/** Requests per cached chunk and period: so many periods, which a server has once a second, pass while a cache is read once. */
const PERIODS_PER_CAPACITY = 2;
/** Requests under way for each instance that only hits. */
const UNDER_WAY_PER_INSTANCE = 2;
/** How much longer than a hit a request to the bucket is under way. */
export const BUCKET_TIMES_AS_LONG = 10;

/** Plays a load against a fleet. The same options give the same result. */
export async function simulateFleet(options: FleetOptions): Promise<FleetRun> {
  const { load, names, capacity, cost = "encode", events = [], seed } = options;
  const pathOf = options.pathOf ?? ((chunk: number) => `/datasets/air/zarr/t2m/${chunk}.0.0`);
  const random = createRandom(seed);
  const instances = names.map(() =>
    createInstance({ capacity, cost, random, ...(options.chunkBytes && { chunkBytes: options.chunkBytes }) }),
  );
  const front = createFrontCache(options.frontCapacity ?? 0);
  const run: FleetRun = { origins: new Uint8Array(load.length), instances: new Uint16Array(load.length) };
  const state: FleetState = {
    isUp: new Uint8Array(names.length).fill(1),
    upInAll: names.length,
    underWay: new Int32Array(names.length),
    underWayInAll: 0,
  };
  const ending = createEndings(state, names.length);
  const period = Math.ceil((names.length * capacity) / PERIODS_PER_CAPACITY);
  let members: readonly Member[] = names.map((name, instance) => ({ name, instance }));
  let placement = options.place(members);
  let nextEvent = 0;
  const written = new Set<number>();

  async function apply({ kind, instance }: FleetEvent): Promise<void> {
    if (kind === "removed") {
      members = members.filter((member) => member.instance !== instance);
      placement = options.place(members);
    } else if (kind !== "away") await instances[instance]!.restart(kind === "back, cache kept");
    state.isUp[instance] = kind === "removed" || kind === "away" ? 0 : 1;
    state.upInAll = state.isUp.reduce((sum, each) => sum + each, 0);
  }

  for (const [i, chunk] of load.entries()) {
    for (let event = events[nextEvent]; event?.at === i; event = events[++nextEvent]) await apply(event);
    ending.advance(i);
    if (front.ask(chunk)) {
      run.origins[i] = ORIGIN.front;
      run.instances[i] = NO_INSTANCE;
    } else {
      const chosen = placement.choose(pathOf, chunk, state);
      const isHit = instances[chosen]!.ask(cacheKeyOf(`bench\0${chunk}`));
      run.origins[i] = isHit ? ORIGIN.hit : ORIGIN.bucket;
      run.instances[i] = chosen;
      if (!isHit) written.add(chosen);
      ending.begin(chosen, isHit ? 1 : BUCKET_TIMES_AS_LONG);
    }
    if (i % TURN === TURN - 1) {
      for (const each of written) await instances[each]!.settle();
      written.clear();
    }
    if (i % period === period - 1) for (const each of instances) await each.endPeriod();
  }
  return run;
}

/** Counts requests under way, of which each ends so many requests of the whole fleet after it began. */
function createEndings(state: FleetState, count: number) {
  const lengthOf = (times: number) => count * UNDER_WAY_PER_INSTANCE * times;
  const wheel = Array.from({ length: lengthOf(BUCKET_TIMES_AS_LONG) + 1 }, (): number[] => []);
  let now = 0;
  return {
    advance(request: number): void {
      now = request;
      for (const instance of wheel[now % wheel.length]!) {
        state.underWay[instance]!--;
        state.underWayInAll--;
      }
      wheel[now % wheel.length] = [];
    },
    begin(instance: number, times: number): void {
      state.underWay[instance]!++;
      state.underWayInAll++;
      wheel[(now + lengthOf(times)) % wheel.length]!.push(instance);
    },
  };
}
