import { createHash } from "node:crypto";
import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { startChromiumReader } from "./chromium-reader.js";
import { prepareSite } from "./prepare-site.js";
import { startHaproxy, startNginx } from "./start-balancer.js";
import { startInstances } from "./start-instances.js";

const CHUNKS = 200;

for (const [name, start] of Object.entries({ nginx: startNginx, haproxy: startHaproxy })) {
  t.test(
    `a page in Chromium reads ${CHUNKS} chunks through ${name} over HTTP/2`,
    { skip: clientMissing("chromium", name as "nginx" | "haproxy"), timeout: 120_000 },
    async (t) => {
      const site = await prepareSite(t, { name: "noise", chunks: CHUNKS, chunkBytes: 8 * 1024 });
      const instances = await startInstances(t, 3, { config: { datasets: site.datasets } });
      const ports = instances.map(({ port }) => port);
      const { plain } = await site.expected(ports[0] as number);
      const expected = createHash("sha256");
      for (const { body } of plain) expected.update(body);
      const digest = expected.digest("hex");
      const balancer = await start(t, { ports, hasTls: true });
      const url = `https://127.0.0.1:${balancer.tlsPort}/datasets/noise/zarr`;

      for (const protocol of ["h2", "http/1.1"] as const) {
        const reader = await startChromiumReader(t, protocol);
        const read = await reader.read(url, "noise");
        t.match(read, { protocols: [protocol], digest }, protocol);
      }
    },
  );
}
