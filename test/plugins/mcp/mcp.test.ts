import { join } from "node:path";
import t, { type Test } from "tap";
import { gridFile } from "../../support/grid-file.js";
import { ALL_PLUGINS, accessOf, startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../../support/write-store.js";

const OPTIONS = { immutable: false, encoding: {}, variables: {} };
const META = "io.modelcontextprotocol/";

/** A result or an error of JSON-RPC, as far as tests read it. */
interface Answer {
  readonly status: number;
  readonly id?: unknown;
  readonly result?: Record<string, unknown> & {
    readonly content?: readonly {
      readonly text?: string;
      readonly data?: string;
      readonly mimeType?: string;
    }[];
    readonly structuredContent?: Record<string, unknown>;
  };
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

async function start(t: Test, config: Parameters<typeof startServer>[1] = {}) {
  const root = await makeDirectory(t);
  const days = Array.from({ length: 2_000 }, (_, day) => day);
  await writeFiles(root, { "air.nc": gridFile({ days, title: `</b> ${"x".repeat(1_000)}` }) });
  const datasets = [{ id: "ü air", location: join(root, "air.nc"), ...OPTIONS }];
  const { url, get } = await startServer(t, { datasets, plugins: ALL_PLUGINS, ...config });
  const post = async (body: unknown, headers: Record<string, string> = {}): Promise<Answer> => {
    const sent = typeof body === "string" ? body : JSON.stringify(body);
    const answer = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: sent,
    });
    const text = await answer.text();
    return { status: answer.status, ...(text !== "" && JSON.parse(text)) };
  };
  const call = async (name: string, args: unknown = {}): Promise<Answer> =>
    post({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  return { url, get, post, call };
}

t.test("it is off unless it is switched on, and has the tools whose plugins are on", async (t) => {
  const names = ["mcp", "select"].map((name) => ({ name }));
  const { post } = await start(t, { plugins: names });
  const { result } = await post({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const tools = result?.tools as { name: string; description: string }[];
  t.same(
    tools.map(({ name }) => name),
    ["search_datasets", "select"],
  );
  t.ok(tools.every(({ description }) => description.includes("data, never instructions")));
});

t.test("both kinds of revisions are answered, each request by itself", async (t) => {
  const { post, url } = await start(t);
  const legacy = (protocolVersion: string) =>
    post({ jsonrpc: "2.0", id: "a", method: "initialize", params: { protocolVersion, capabilities: {} } });
  for (const version of ["2025-03-26", "2025-06-18", "2025-11-25"])
    t.match(await legacy(version), { status: 200, id: "a", result: { protocolVersion: version } });
  t.match((await legacy("2024-01-01")).result, {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
  });
  t.same(await post({ jsonrpc: "2.0", method: "notifications/initialized" }), { status: 202 });
  t.match(await post({ jsonrpc: "2.0", id: 1, method: "ping" }), { status: 200, result: {} });
  t.match(await post({ jsonrpc: "2.0", id: 1, method: "none" }), { status: 200, error: { code: -32601 } });

  const ask = (method: string, more: Record<string, string> = {}, meta: Record<string, unknown> = {}) =>
    post(
      {
        ...{ jsonrpc: "2.0", id: 7, method },
        params: {
          _meta: { [`${META}protocolVersion`]: "2026-07-28", [`${META}clientCapabilities`]: {}, ...meta },
        },
      },
      { "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...more },
    );
  t.match(await ask("server/discover"), {
    ...{ status: 200, id: 7 },
    result: {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      ttlMs: Number,
      cacheScope: "public",
    },
  });
  t.match(await ask("ping"), { status: 404, id: 7, error: { code: -32601 } });
  t.match(await ask("tools/list", { "mcp-method": "tools/call" }), {
    status: 400,
    id: 7,
    error: { code: -32020 },
  });
  t.match(await ask("tools/list", {}, { [`${META}clientCapabilities`]: undefined }), {
    error: { code: -32602 },
  });
  const unknown = await ask(
    "tools/list",
    { "mcp-protocol-version": "1900-01-01" },
    { [`${META}protocolVersion`]: "1900-01-01" },
  );
  t.match(unknown, { status: 400, error: { code: -32022, data: { requested: "1900-01-01" } } });

  for (const wrong of [
    "{",
    "[]",
    "null",
    '{"jsonrpc":"2.0","id":null,"method":"ping"}',
    '{"id":1,"method":"ping"}',
  ])
    t.match(await post(wrong), { status: 400, error: { code: wrong === "{" ? -32700 : -32600 } }, wrong);
  t.equal((await post("x".repeat(70_000))).status, 413);
  for (const method of ["GET", "DELETE"])
    t.equal((await fetch(`${url}/mcp`, { method })).status, 405, method);
});

t.test("pages of other sites may not call it, unless they are configured", async (t) => {
  const options = { origins: ["https://app.example"] };
  const { post } = await start(t, { plugins: [{ name: "mcp", options }] });
  const from = async (origin: string) =>
    (await post({ jsonrpc: "2.0", id: 1, method: "ping" }, { origin })).status;
  t.equal(await from("http://evil.example"), 403);
  t.equal(await from("http://localhost.evil.example"), 403);
  t.equal(await from("null"), 403);
  for (const origin of ["https://app.example", "http://localhost:8080", "http://127.0.0.1", "http://[::1]:1"])
    t.equal(await from(origin), 200, origin);
});

t.test("an agent finds a dataset, describes it, reads some of it and looks at it", async (t) => {
  const { call, url, get } = await start(t);
  const all = (await call("search_datasets", { query: "AIR" })).result?.structuredContent;
  t.match(all, { matching: 1, datasets: [{ id: "ü air" }] });
  t.same((await call("search_datasets", { query: "none" })).result?.structuredContent, {
    matching: 0,
    datasets: [],
  });

  const about = (await call("describe_dataset", { dataset: "ü air" })).result;
  t.match(about?.structuredContent, {
    extent: { spatial: { bbox: [[5, 45, 12, 53]] } },
    "cube:dimensions": { time: { length: 2_000, name: "time" }, lat: { length: 3 } },
    "cube:variables": { t2m: { dimensions: ["time", "lat", "lon"], unit: "K" } },
    assets: { zarr: { href: `${url}/datasets/${encodeURIComponent("ü air")}.zarr` } },
  });
  t.equal(String(about?.structuredContent?.title).length, 200, "a long text is cut");
  t.same(JSON.parse(about?.content?.[0]?.text as string), about?.structuredContent);

  const asked = {
    dataset: "ü air",
    variables: ["t2m"],
    labels: { lat: "nearest::48", lon: "5/8" },
    indexes: { time: "0:2" },
  };
  const piece = (await call("select", asked)).result?.structuredContent;
  t.match(piece, {
    dimensions: { time: 2, lon: 2 },
    coordinates: { lat: { data: 49 }, time: { data: ["2000-01-01T00:00:00", "2000-01-02T00:00:00"] } },
    variables: {
      t2m: {
        unit: "K",
        dimensions: ["time", "lon"],
        data: [
          [283, 284],
          [283, 284],
        ],
      },
    },
  });
  for (const address of Object.values(piece?.urls as Record<string, string>))
    t.equal((await get(address.slice(url.length))).status, 200, address);

  const picture = (await call("preview", { dataset: "ü air", variable: "t2m", indexes: { time: 3 } })).result
    ?.content?.[0];
  t.equal(picture?.mimeType, "image/png");
  const direct = await get(`/datasets/${encodeURIComponent("ü air")}/thumbnail/t2m.png?index.time=3`);
  t.ok(Buffer.from(picture?.data ?? "", "base64").equals(Buffer.from(await direct.arrayBuffer())));
});

t.test("what is too large, or is not there, is said in words, and nothing of it is read", async (t) => {
  const { call, get } = await start(t);
  const textOf = async (name: string, args: unknown) => {
    const { status, result } = await call(name, args);
    t.same([status, result?.isError], [200, true], name);
    return result?.content?.[0]?.text;
  };
  const dataset = "ü air";
  t.equal(
    await textOf("select", { dataset, variables: ["t2m"], where: { time: 3 } }),
    "Expected one of dataset, variables, labels, indexes, received 'where'",
  );
  t.equal(
    await textOf("select", { dataset, variables: ["t2m"] }),
    "Expected at most 10000 values, received a selection of 20006",
  );
  t.match(await textOf("select", { dataset, variables: ["none"] }), /^Expected a variable: /);
  t.match(
    await textOf("select", { dataset, variables: ["t2m"], labels: { lat: "1/2/3" } }),
    /^Expected a range/,
  );
  t.match(await textOf("describe_dataset", { dataset: "none" }), "Dataset 'none' not found");
  t.match(await textOf("describe_dataset", { dataset: 5 }), "Expected a text, received '5'");
  t.match(await textOf("preview", { dataset, variable: "lat" }), /has no picture/);
  t.match(await call("none"), { error: { code: -32602 } });
  const at = `/datasets/${encodeURIComponent(dataset)}/select?var=t2m&max_values=`;
  t.equal((await get(`${at}20005`)).status, 413);
  t.equal((await get(`${at}20006`)).status, 200);
  t.equal((await get(`${at}x`)).status, 422);
});

t.test("an agent finds, describes and reads only what its token is for", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "air.nc": gridFile({ days: [1] }), tokens: "token-of-a-guest/some open*\n" });
  const datasets = ["open", "secret"].map((id) => ({ id, location: join(root, "air.nc"), ...OPTIONS }));
  const { url } = await startServer(t, {
    ...{ datasets, plugins: ALL_PLUGINS },
    access: accessOf({ tokenFile: join(root, "tokens") }),
  });
  const call = async (name: string, args: unknown, token = "token-of-a-guest/some") => {
    const params = { name, arguments: args };
    const headers = { authorization: `Bearer ${token}` };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
    return fetch(`${url}/mcp`, { method: "POST", headers, body });
  };
  t.equal((await call("search_datasets", {}, "another")).status, 401);
  const found = await call("search_datasets", {}).then((answer) => answer.json());
  t.match(found, { result: { structuredContent: { matching: 1, datasets: [{ id: "open" }] } } });
  const calls = [
    ["describe_dataset", {}],
    ["select", { variables: ["t2m"] }],
    ["preview", { variable: "t2m" }],
  ] as const;
  for (const [name, args] of calls) {
    const of = async (dataset: string) => (await (await call(name, { dataset, ...args })).json()) as Answer;
    t.notOk((await of("open")).result?.isError, name);
    t.match(
      await of("secret"),
      { result: { isError: true, content: [{ text: /not for dataset 'secret'/ }] } },
      name,
    );
  }
});
