import type { WorkerRequest } from "./protocol.js";

self.addEventListener("message", ({ data }: MessageEvent<WorkerRequest>) => {
  self.postMessage({
    id: data.id,
    kind: "failed",
    sentence: "not yet",
    requestId: undefined,
    mayRetry: false,
  });
});
