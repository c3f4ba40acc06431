import { setTimeout as sleep } from "node:timers/promises";
import type { Fault } from "../../test/origins/fault.js";
import { type ChaosKey, REMOTE_DATASET } from "./chaos-arrays.js";
import { REFRESH_SECONDS, SOURCE_TIMEOUT_SECONDS } from "./chaos-server.js";
import { type ChaosEvent, pick } from "./stage.js";

/** Until requests that joined one which hangs have failed, and metadata that could not be read is there again. */
const GRACE_MS = (REFRESH_SECONDS + 2 * SOURCE_TIMEOUT_SECONDS) * 1_000 + 2_000;

/**
 * All that goes wrong with an origin, but never an answer that could be true. One without validators could be: then versions of one
 * length cannot be told apart.
 */
const FAULTS: readonly (Fault | undefined)[] = [
  undefined,
  { status: 503, retryAfter: "0" },
  { status: 429 },
  { status: 500 },
  { status: 403 },
  { hang: "before-headers" },
  { hang: "after-headers" },
  { disconnect: true },
  { redirect: "http://127.0.0.1:1/elsewhere" },
  { html: true },
  { gzip: true },
  { lengthError: 3 },
  { cutAfter: 100 },
  { chunked: true },
  { trickle: { bytes: 1_000, ms: 5 } },
];

function originEvent(name: string, faultOf: (random: () => number) => () => Fault | undefined): ChaosEvent {
  return {
    name: `origin fails (${name})`,
    weight: 3,
    async happens({ judge, origin, random }) {
      const isRemote = ({ kind, dataset }: ChaosKey) => kind === "chunk" && dataset === REMOTE_DATASET;
      const settle = judge.excuse(`origin fails (${name})`, ["500", "503"], isRemote);
      origin.setFault(faultOf(random));
      await sleep(500 + random() * 2_000);
      origin.setFault(() => undefined);
      origin.resetCounts();
      settle(GRACE_MS);
    },
  };
}

/** An origin that fails for a while: each request in its own way, or all of them in one. */
export const ORIGIN_EVENTS: readonly ChaosEvent[] = [
  originEvent("each request in its own way", (random) => () => pick(random, FAULTS)),
  originEvent("all requests alike", (random) => {
    const fault = pick(random, FAULTS);
    return () => fault;
  }),
];
