import t from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { BALANCERS, START_BALANCER } from "./balancer.js";
import { startInstances } from "./instances.js";
import { fetchBody, holdBody, prepareSite, startLoad } from "./site.js";

const CONNECTIONS = 4;
/** Answers between two events, of each load. */
const BETWEEN = 300;

t.test(
  "three instances behind nginx and HAProxy are restarted, reloaded and killed under load, and no body is wrong",
  { skip: clientMissing("nginx", "haproxy"), timeout: 180_000 },
  async (t) => {
    const small = await prepareSite(t, { name: "small", chunks: 16, chunkBytes: 2 ** 20 });
    const large = await prepareSite(t, { name: "large", chunks: 2, chunkBytes: 24 * 2 ** 20 });
    const datasets = { ...small.datasets, ...large.datasets };
    const instances = await startInstances(t, 3, {
      config: { datasets },
      // HAProxy looks each second, and believes the second bad answer.
      args: ["--drain-delay", "3", "--cache-size", "64MiB"],
    });
    const ports = instances.map(({ port }) => port);
    const { documents, plain, packed } = await small.expected(ports[0]!);
    const slow = (await large.expected(ports[0]!)).plain;

    const balancers = await Promise.all(BALANCERS.map((name) => START_BALANCER[name](t, { ports })));
    const loads = balancers.map(({ port }) =>
      startLoad(t, port, [...documents, ...plain, ...packed], { connections: CONNECTIONS }),
    );
    const more = () => Promise.all(loads.map((load) => load.more(BETWEEN)));
    const holdAll = () =>
      Promise.all(balancers.flatMap(({ port }) => slow.map((wanted) => holdBody(port, wanted))));
    await more();

    for (const [i, instance] of instances.entries()) {
      const held = await holdAll();
      const ended = instance.end("SIGTERM");
      await more();
      await instance.refuses();
      await more();
      const ends = await Promise.all(held.map((body) => body.finish()));
      t.strictSame(ends, ["whole", "whole", "whole", "whole"], "what was on its way arrives");
      t.equal(await ended, 0, `instance ${i + 1} ends well`);
      await instance.start();
      await more();
    }
    for (const [b, load] of loads.entries())
      t.strictSame(load.result.failures, [], `restarts are not noticed behind ${balancers[b]!.name}`);

    const enlarged = { ...datasets, added: small.datasets.small };
    for (const instance of instances) {
      t.equal(await instance.reload({ datasets: enlarged, nonsense: true }), "refused");
      await more();
      t.equal(await instance.reload({ datasets: enlarged }), "reloaded");
      await more();
    }
    for (const { port } of balancers) {
      for (const { path, body } of plain) {
        const added = await fetchBody(port, path.replace("/small/", "/added/"));
        if (!added.body.equals(body))
          t.fail(`what was added is not served: ${added.answer.statusCode} ${path}`);
      }
    }
    for (const [b, load] of loads.entries())
      t.strictSame(load.result.failures, [], `nor reloads behind ${balancers[b]!.name}`);

    const held = await holdAll();
    for (const instance of instances) {
      const before = loads.map(({ result }) => result.failures.length);
      await instance.end("SIGKILL");
      await more();
      await instance.start();
      await more();
      for (const [b, load] of loads.entries()) {
        const lost = load.result.failures.slice(before[b]);
        // A connection has one request at a time: what fails of it was half sent when its instance died.
        t.ok(lost.length <= CONNECTIONS, `only what was on it fails: ${lost.length}`);
        for (const failure of lost)
          t.match(failure, /: aborted$/, "a body that ended too early, and says so");
      }
    }
    const ends = await Promise.all(held.map((body) => body.finish()));
    t.notOk(ends.includes("wrong"), "a body whose instance was killed is not taken for whole");
    // Not necessarily all: the system may have had the whole of one on its way to a client.
    t.ok(ends.includes("cut off"), `it ends too early, and says so: ${ends.join(", ")}`);

    for (const [b, load] of loads.entries()) {
      const { requests, failures, wrong, origins } = await load.stop();
      const { name } = balancers[b]!;
      t.strictSame(wrong, [], `no wrong byte behind ${name}`);
      t.comment(
        `${name}: ${requests} requests, ${failures.length} cut off by kill -9, ${JSON.stringify(origins)}`,
      );
    }
  },
);
