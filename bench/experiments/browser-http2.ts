import { createHash } from "node:crypto";
import { startChromiumReader } from "../../test/deploy/chromium-reader.js";
import { prepareSite } from "../../test/deploy/prepare-site.js";
import { startHaproxy, startNginx } from "../../test/deploy/start-balancer.js";
import type { Teardown } from "../../test/open/write-store.js";
import { startDelayProxy } from "../load/delay-proxy.js";
import { startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment, ExperimentContext } from "./experiment.js";

const DELAY_MS = 20;
const CHUNK_BYTES = 32 * 1024;
const CHUNKS = { full: 200, small: 200, tiny: 20 } as const;
const BALANCERS = { nginx: startNginx, HAProxy: startHaproxy };
const PROTOCOLS = ["http/1.1", "h2"] as const;

interface BrowserRecord {
  readonly balancer: keyof typeof BALANCERS;
  readonly protocol: (typeof PROTOCOLS)[number];
  readonly milliseconds: readonly number[];
}

/** What HTTP/2 in front of the server gives a page that reads many chunks. */
export const browserHttp2: Experiment = {
  title: `a page in Chromium that reads 200 chunks with zarrita, each round trip ${DELAY_MS} ms: HTTP/2 and HTTP/1.1 of the examples in scripts/deploy`,
  async run(context) {
    const ends: (() => unknown)[] = [];
    const whole = { teardown: (end: () => unknown) => void ends.unshift(end) } as Teardown;
    try {
      const records = await measure(context, whole);
      const timesOf = (balancer: string, protocol: string) =>
        records.find((each) => each.balancer === balancer && each.protocol === protocol)!.milliseconds;
      return {
        records,
        tables: [
          {
            columns: ["in front", "HTTP/1.1, ms", "HTTP/2, ms", "HTTP/1.1 ÷ HTTP/2"],
            rows: Object.keys(BALANCERS).map((name) => {
              const [first, second] = [timesOf(name, "http/1.1"), timesOf(name, "h2")];
              const ratios = first.map((each, round) => each / second[round]!);
              return [name, ...[first, second, ratios].map(median)];
            }),
          },
        ],
        goals: [],
        notes: [
          `${CHUNKS[context.size]} chunks of ${CHUNK_BYTES / 1024} KiB, medians of ${context.rounds} alternating rounds. A round has connections of its own, with TLS: the time is from the first request to the whole array.`,
          "For HTTP/1.1, Chromium is told to offer no other. Then it has six connections, over HTTP/2 one.",
        ],
      };
    } finally {
      for (const end of ends) await end();
    }
  },
};

async function measure(context: ExperimentContext, t: Teardown): Promise<BrowserRecord[]> {
  const site = await prepareSite(t, {
    name: "noise",
    chunks: CHUNKS[context.size],
    chunkBytes: CHUNK_BYTES,
  });
  const server = await startZpublish({ datasets: site.datasets, scratch: context.freshFolder("server") });
  t.teardown(() => server.stop());
  const port = Number(new URL(server.baseUrl).port);
  const expected = createHash("sha256");
  for (const { body } of (await site.expected(port)).plain) expected.update(body);
  const digest = expected.digest("hex");

  const subjects = [];
  for (const protocol of PROTOCOLS) {
    const reader = await startChromiumReader(t, protocol);
    for (const [name, start] of Object.entries(BALANCERS)) {
      const balancer = await start(t, { ports: [port, port, port], hasTls: true });
      const proxy = await startDelayProxy(balancer.tlsPort, DELAY_MS);
      t.teardown(() => proxy.close());
      const url = `https://127.0.0.1:${proxy.port}/datasets/noise/zarr`;
      const record = { balancer: name as keyof typeof BALANCERS, protocol, milliseconds: [] as number[] };
      subjects.push({ reader, url, record });
    }
  }
  for (let round = 0; round < context.rounds; round++) {
    for (const { reader, url, record } of subjects) {
      context.onProgress(round / context.rounds, `${record.balancer}, ${record.protocol}`);
      const read = await reader.read(url, "noise");
      if (read.digest !== digest || read.protocols.join() !== record.protocol)
        throw new Error(
          `browser-http2: expected ${record.protocol} and the stored bytes, received ${JSON.stringify(read)}`,
        );
      record.milliseconds.push(read.milliseconds);
    }
  }
  return subjects.map(({ record }) => record);
}
