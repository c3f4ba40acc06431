import { mkdirSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { LoadRequest } from "../../bench/load/load.js";
import { runNodeLoad } from "../../bench/load/node-load.js";
import { runWrk, wrkVersion } from "../../bench/load/wrk-load.js";
import { checkSubject, prepareSite } from "../../bench/prepare-site.js";
import { type DataSize, ROWS } from "../../bench/rows.js";
import { nginxSubject, nginxVersion } from "../../bench/subjects/nginx.js";
import { createPeer } from "../../bench/subjects/peer.js";
import type { Subject } from "../../bench/subjects/subject.js";
import { uwsSubject } from "../../bench/subjects/uws.js";
import {
  immutableZpublishSubject,
  nodeHttpZpublishSubject,
  zpublishSubject,
} from "../../bench/subjects/zpublish.js";

const root = t.testdir({});
const SIZE: DataSize = {
  steps: 1,
  smallChunkSteps: 1,
  transcoded: 2,
  manyVariables: 40,
  parent: join(root, "data"),
};
const SUBJECTS = [
  uwsSubject,
  nginxSubject,
  zpublishSubject,
  immutableZpublishSubject,
  nodeHttpZpublishSubject,
];
/** Subjects that are the service with other options, and the rows that they are tried with: the data are the same in all. */
const VARIATIONS: ReadonlySet<Subject> = new Set([immutableZpublishSubject, nodeHttpZpublishSubject]);
const VARIED_ROWS: ReadonlySet<string> = new Set(["cached-64kib", "not-modified"]);
const nginxSkip = nginxVersion() === undefined ? "skipped, because nginx is not installed" : false;
const wrkSkip = wrkVersion() === undefined ? "skipped, because wrk is not installed" : false;

let folders = 0;
function scratch(): string {
  const folder = join(root, `scratch-${folders++}`);
  mkdirSync(folder);
  return folder;
}

async function prepared(row: string) {
  const workload = await ROWS[row]!.open(SIZE, () => {});
  return { workload, site: await prepareSite(workload, scratch()) };
}

async function listening(test: Test, listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  test.teardown(() => server.close().closeAllConnections());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

for (const row of Object.keys(ROWS)) {
  t.test(`every subject answers ${row} as the data say`, async (t) => {
    const { workload, site } = await prepared(row);
    for (const subject of SUBJECTS) {
      if (VARIATIONS.has(subject) && !VARIED_ROWS.has(row)) continue;
      t.test(subject.name, { skip: subject === nginxSubject && nginxSkip }, async (t) => {
        const running = await subject.start({ ...site, scratch: scratch() });
        t.teardown(() => running.stop());
        const headers = await checkSubject(subject, running, site, workload);
        t.equal("If-None-Match" in headers, row === "not-modified");
      });
    }
  });
}

t.test("stored chunks are about 590 KB of 1 MiB", async (t) => {
  const { site } = await prepared("passthrough-cold");
  const running = await uwsSubject.start({ ...site, scratch: scratch() });
  t.teardown(() => running.stop());
  let sum = 0;
  for (const path of site.paths)
    sum += Number((await fetch(running.baseUrl + path)).headers.get("content-length"));
  t.ok(Math.abs(sum / site.paths.length - 590_000) < 15_000, `mean of ${sum / site.paths.length}`);
});

t.test("a subject with one wrong byte is refused", async (t) => {
  const { workload, site } = await prepared("passthrough-cold");
  const path = site.paths[3]!;
  const running = await uwsSubject.start({ ...site, scratch: scratch() });
  const body = Buffer.from(await (await fetch(running.baseUrl + path)).arrayBuffer());
  await running.stop();
  body[body.length - 1]! ^= 1;
  const wrong = await uwsSubject.start({ ...site, documents: new Map([[path, body]]), scratch: scratch() });
  t.teardown(() => wrong.stop());
  await t.rejects(checkSubject(uwsSubject, wrong, site, workload), { message: /0\.0\.3.*not the same/ });
});

t.test("a peer is checked by the values it serves", async (t) => {
  const { workload, site } = await prepared("cached-1mib");
  const running = await zpublishSubject.start({
    ...site,
    scratch: scratch(),
    serving: { encoding: { compressor: { id: "zstd", level: 1 } } },
  });
  t.teardown(() => running.stop());
  const peer: Subject = createPeer(`${running.baseUrl}/`);
  await checkSubject(peer, await peer.start({ ...site, scratch: scratch() }), site, workload);

  const nothing = createPeer(await listening(t, (_, response) => response.writeHead(404).end("nothing")));
  const started = await nothing.start({ ...site, scratch: scratch() });
  await t.rejects(checkSubject(nothing, started, site, workload), {
    message: /expected status 200, received 404/,
  });
});

t.test("a peer that is no http URL is refused", (t) => {
  t.throws(() => createPeer("ftp://example.org"), { message: /expected an http:\/\/ URL, received ftp/ });
  t.throws(() => createPeer("here"), { message: /expected an http:\/\/ URL, received here/ });
  t.end();
});

t.test("the Node generator asks for every path once, and counts what fails", async (t) => {
  const asked: string[] = [];
  const baseUrl = await listening(t, (request, response) => {
    asked.push(`${request.url} ${request.headers["x-a"]}`);
    if (request.url === "/p/3") response.statusCode = 500;
    response.setHeader("Content-Length", 100_000).end(Buffer.alloc(100_000));
  });
  const paths = Array.from({ length: 20 }, (_, i) => `/${i}`);
  const result = await runNodeLoad({
    ...load(`${baseUrl}/p`, paths),
    length: "once",
    headers: { "X-A": "b" },
  });
  t.match(result, { generator: "node", requests: 20, failures: 1 });
  t.same(asked.sort(), paths.map((path) => `/p${path} b`).sort());
});

for (const [name, run] of Object.entries({ runNodeLoad, runWrk })) {
  t.test(`${name} asks for paths in turn for a time`, { skip: name === "runWrk" && wrkSkip }, async (t) => {
    const counts = new Map<string | undefined, number>();
    const baseUrl = await listening(t, (request, response) => {
      counts.set(request.url, (counts.get(request.url) ?? 0) + 1);
      response.setHeader("Content-Length", 3).end("yes");
    });
    const result = await run(load(`${baseUrl}/p`, ["/0", "/1", "/2"]));
    t.equal(result.failures, 0);
    t.ok(result.requests > 0 && result.p50 <= result.p99);
    t.same([...counts.keys()].sort(), ["/p/0", "/p/1", "/p/2"]);
    const all = [...counts.values()];
    t.ok(Math.max(...all) - Math.min(...all) <= 4, `as often as one another: ${all}`);
  });
}

function load(baseUrl: string, paths: readonly string[]): LoadRequest {
  const folder = scratch();
  return {
    baseUrl,
    paths,
    headers: {},
    connections: 4,
    length: { seconds: 1 },
    status: 200,
    scratch: folder,
  };
}
