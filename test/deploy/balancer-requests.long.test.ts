import t, { type Test } from "tap";
import { clientMissing } from "../support/clients/require-client.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { BALANCERS, START_BALANCER } from "./balancer.js";
import { type StandIn, startStandIns } from "./instances.js";

const CHUNK = "/datasets/a/zarr/t2m/0.0";

for (const name of BALANCERS) {
  const options = { skip: clientMissing(name) };

  const start = async (t: Test) => {
    const standIns = await startStandIns(t, 3);
    const balancer = await START_BALANCER[name](t, { ports: standIns.map(({ port }) => port) });
    return { balancer, standIns, arrived: () => standIns.flatMap((standIn) => standIn.arrived) };
  };

  t.test(`${name} hands on a path as it was sent, and says itself who asks`, options, async (t) => {
    const { balancer, arrived } = await start(t);
    const path = "/datasets/a%20b/zarr//x%2Fy/%2e%2E/0.0?token=secret&x=%41";
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const answer = await rawRequest(balancer.port, path, {
      headers: {
        traceparent,
        "Accept-Encoding": "gzip",
        Authorization: "Bearer secret",
        "X-Forwarded-For": "203.0.113.1",
        "X-Forwarded-Proto": "gopher",
        "X-Forwarded-Host": "elsewhere.example",
        "X-Forwarded-Prefix": "/elsewhere",
        "X-Forwarded-Port": "1",
        "X-Real-IP": "203.0.113.1",
        Forwarded: "for=203.0.113.1",
        "X-Request-Id": "mine",
        // zpublish would take it for a head without end.
        X_Odd: "1",
      },
    });
    t.equal(answer.status, 200);
    t.equal(answer.headers.etag, '"strong"', "an ETag stays strong");
    const [request, ...others] = arrived();
    t.equal(others.length, 0, "once");
    t.equal(request?.url, path);
    t.equal(request?.httpVersion, "1.1");
    const headers = request?.headers ?? {};
    t.equal(headers["x-forwarded-for"], "127.0.0.1");
    t.equal(headers["x-forwarded-proto"], "http");
    t.equal(headers["x-forwarded-host"], "test");
    t.equal(headers.host, "test");
    for (const gone of ["x-forwarded-prefix", "x-forwarded-port", "x-real-ip", "forwarded", "connection"])
      t.notOk(headers[gone] && headers[gone] !== "keep-alive", `${gone} is none of a client's`);
    t.match(headers["x-request-id"], /^[0-9a-f-]{32,36}$/, "an id of its own");
    t.equal(headers.traceparent, traceparent);
    t.equal(headers.authorization, "Bearer secret");
    t.notOk("x_odd" in headers, "names that zpublish does not read are left out");
    const [line] = await balancer.logged(/^.*\/datasets\/a.*$/m);
    t.match(line, headers["x-request-id"] ?? "no id", "the log has the id and the path");
    t.notMatch(await balancer.log(), /secret|token/, "and no token");
  });

  if (name === "haproxy") {
    t.test(
      "haproxy refuses what zpublish would not answer, before it tries it at all of them",
      options,
      async (t) => {
        const { balancer, arrived } = await start(t);
        const odd = await rawRequest(balancer.port, CHUNK, { headers: { "X-Odd": "a\x01b" } });
        t.equal(odd.status, 400);
        t.equal(arrived().length, 0);
        const fine = await rawRequest(balancer.port, CHUNK, { headers: { "X-Fine": "a\tb é" } });
        t.equal(fine.status, 200);
      },
    );
  }

  t.test(
    `${name} sends all spellings of a query to the same instance, and paths to all`,
    options,
    async (t) => {
      const { balancer, standIns } = await start(t);
      for (let i = 0; i < 10; i++) await rawRequest(balancer.port, `${CHUNK}?token=${i}`);
      t.strictSame(standIns.map(({ arrived }) => arrived.length).sort(), [0, 0, 10]);
      for (let i = 0; i < 300; i++) await rawRequest(balancer.port, `/datasets/a/zarr/t2m/${i}.0`);
      const shares = standIns.map(({ arrived }) => arrived.length);
      t.ok(Math.min(...shares) > 60, `shares: ${shares.join(", ")}`);
    },
  );

  t.test(
    `${name} asks another instance for what got no answer or 503, and for nothing else`,
    options,
    async (t) => {
      const { balancer, standIns, arrived } = await start(t);
      const ask = async (conducts: StandIn["conduct"][], method = "GET") => {
        for (const [i, standIn] of standIns.entries()) {
          standIn.conduct = conducts[i] as StandIn["conduct"];
          standIn.arrived.length = 0;
        }
        const answer = await rawRequest(balancer.port, CHUNK, { method });
        return { status: answer.status, times: arrived().length, retryAfter: answer.headers["retry-after"] };
      };
      await ask([200, 200, 200]);
      const owner = standIns.findIndex((standIn) => standIn.arrived.length > 0);
      const ownerDoes = (conduct: StandIn["conduct"]) =>
        standIns.map((_, i) => (i === owner ? conduct : 200));
      t.match(await ask(ownerDoes(503)), { status: 200, times: 2 }, "503 is asked again");
      t.match(await ask(ownerDoes("hang up")), { status: 200, times: 2 }, "a connection that breaks, too");
      t.match(await ask(ownerDoes(500)), { status: 500, times: 1 }, "500 is not");
      t.match(await ask([503, 503, 503]), { status: 503, retryAfter: "1" }, "503 of all is handed on");
    },
  );

  t.test(`${name} finds the one that is left of three`, options, async (t) => {
    const { balancer, standIns } = await start(t);
    for (let i = 0; i < 20; i++) await rawRequest(balancer.port, `${CHUNK}${i}`);
    await Promise.all(standIns.slice(1).map((standIn) => standIn.close()));
    for (let i = 0; i < 20; i++) t.equal((await rawRequest(balancer.port, `${CHUNK}${i}`)).status, 200);
  });

  t.test(`${name} asks again at once when all were away and one is back`, options, async (t) => {
    const { balancer, standIns } = await start(t);
    await Promise.all(standIns.map((standIn) => standIn.close()));
    for (let i = 0; i < 20; i++) {
      const { status } = await rawRequest(balancer.port, `${CHUNK}${i}?token=secret`);
      t.ok(status === 502 || status === 503, String(status));
    }
    await standIns[1]?.listen();
    for (let i = 0; i < 20; i++) t.equal((await rawRequest(balancer.port, `${CHUNK}${i}`)).status, 200);
    await balancer.logged(/ 50[23] /);
    t.notMatch(await balancer.log(), /secret/, "no token in what is logged of failures");
  });

  t.test(`${name} does not show what operators ask`, options, async (t) => {
    const { balancer, arrived } = await start(t);
    for (const path of ["/metrics", "/readyz", "/healthz", "/metrics?token=x"])
      t.equal((await rawRequest(balancer.port, path)).status, 404, path);
    t.strictSame(arrived(), []);
  });
}
