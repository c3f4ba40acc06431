import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { prepareSite } from "./prepare-site.js";
import { startHaproxy, startNginx } from "./start-balancer.js";
import { startInstances } from "./start-instances.js";

const BALANCERS = { nginx: startNginx, haproxy: startHaproxy };

for (const name of ["nginx", "haproxy"] as const) {
  t.test(
    `a request has one id in the logs of ${name} and of zpublish, and neither has its token`,
    { skip: clientMissing(name), timeout: 60_000 },
    async (t) => {
      const { datasets } = await prepareSite(t, { name: "noise", chunks: 1, chunkBytes: 2 ** 10 });
      const instances = await startInstances(t, 3, {
        config: { datasets },
        args: ["--access-log", "1", "--trusted-proxies", "loopback"],
      });
      const balancer = await BALANCERS[name](t, { ports: instances.map(({ port }) => port) });
      const path = "/datasets/noise/zarr/noise/0.0";
      const answer = await rawRequest(balancer.port, `${path}?token=secret`, {
        headers: { "X-Request-Id": "forged", Authorization: "Bearer secret" },
      });
      t.equal(answer.status, 200);
      const [, id = "none"] = await balancer.logged(/ \/datasets\/noise\/zarr\/noise\/0\.0 .*\bid=(\S+)/);
      const log = () => instances.map((instance) => instance.log()).join("");
      while (!log().includes(path)) await new Promise((resolve) => setTimeout(resolve, 20));
      t.match(log(), id);
      for (const text of [log(), await balancer.log()]) t.notMatch(text, /secret|forged/);
    },
  );
}
