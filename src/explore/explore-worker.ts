import type { WorkerRequest } from "./protocol.js";
import { ExploreSession } from "./worker/explore-session.js";

// The worker of the explorer's page: messages only.

/** Less memory than this, in GiB, is a phone's. */
const SMALL_DEVICE_GIB = 4;
const { deviceMemory = 8 } = navigator as Navigator & { readonly deviceMemory?: number };
const maxBytes = (deviceMemory < SMALL_DEVICE_GIB ? 64 : 192) * 2 ** 20;

const session = new ExploreSession({ maxInFlight: 6, maxBytes }, (answer, transfer) =>
  self.postMessage(answer, { transfer: [...transfer] }),
);

self.addEventListener("message", ({ data }: MessageEvent<WorkerRequest>) => {
  void session.handle(data);
});
