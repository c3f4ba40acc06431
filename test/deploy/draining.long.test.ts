import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { prepareSite } from "./prepare-site.js";
import { startHaproxy } from "./start-balancer.js";
import { startInstances } from "./start-instances.js";

t.test(
  "HAProxy leaves out an instance that drains, which answers on until it is over",
  { skip: clientMissing("haproxy"), timeout: 60_000 },
  async (t) => {
    const chunks = 30;
    const { datasets } = await prepareSite(t, { name: "noise", chunks, chunkBytes: 2 ** 10 });
    const instances = await startInstances(t, 3, {
      config: { datasets },
      args: ["--drain-delay", "600", "--access-log", "1"],
    });
    const balancer = await startHaproxy(t, { ports: instances.map(({ port }) => port) });
    const [leaving, ...staying] = instances;
    const paths = Array.from({ length: chunks }, (_, i) => `/datasets/noise/zarr/noise/${i}.0`);

    const ended = leaving!.end("SIGTERM");
    await balancer.logged(/zpublish-1 is DOWN, reason: Layer7/);
    t.equal((await rawRequest(leaving!.port, "/readyz")).status, 503);
    t.equal((await rawRequest(leaving!.port, "/healthz")).status, 200, "it lives");
    t.equal((await rawRequest(leaving!.port, "/datasets")).status, 200, "and answers");
    for (const path of paths) t.equal((await rawRequest(balancer.port, path)).status, 200, path);
    const logged = () => staying.map((instance) => instance.log()).join("");
    for (const path of paths) {
      while (!logged().includes(`"${path}"`)) await new Promise((resolve) => setTimeout(resolve, 20));
    }
    t.notMatch(leaving!.log(), "/datasets/noise", "nothing new goes to it");

    leaving!.end("SIGTERM");
    t.equal(await ended, 128 + 15, "a second signal ends it now");
  },
);
