import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as LegacyTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import t, { type Test } from "tap";
import { PACKAGE_ROOT } from "../../support/clients/client-generation.js";
import { gridFile } from "../../support/grid-file.js";
import { installedNode } from "../../support/servers/installed-node.js";
import { ALL_PLUGINS, startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../../support/write-store.js";

t.setTimeout(600_000);

const WHO = { name: "test", version: "1" };
const node = installedNode(24);

async function start(t: Test): Promise<URL> {
  const root = await makeDirectory(t);
  await writeFiles(root, { "air.nc": gridFile({ days: [1, 2], title: "Air" }) });
  const datasets = [
    { id: "air", location: join(root, "air.nc"), immutable: false, encoding: {}, variables: {} },
  ];
  const { url } = await startServer(t, { datasets, plugins: ALL_PLUGINS });
  return new URL(`${url}/mcp`);
}

/** What both clients have. */
interface Caller {
  listTools(): Promise<{ tools: readonly { name: string }[] }>;
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>;
}

async function useTools(t: Test, client: Caller): Promise<void> {
  const { tools } = await client.listTools();
  t.same(
    tools.map(({ name }) => name),
    ["search_datasets", "describe_dataset", "select", "preview"],
  );
  t.match(await client.callTool({ name: "search_datasets", arguments: {} }), {
    structuredContent: { datasets: [{ id: "air" }] },
  });
  const asked = { dataset: "air", variables: ["t2m"], indexes: { time: 0, lat: 0 } };
  t.match(await client.callTool({ name: "select", arguments: asked }), {
    structuredContent: { variables: { t2m: { data: [280, 281, 282] } } },
  });
  t.match(await client.callTool({ name: "preview", arguments: { dataset: "air", variable: "t2m" } }), {
    content: [{ type: "image", mimeType: "image/png" }],
  });
  t.match(await client.callTool({ name: "describe_dataset", arguments: { dataset: "none" } }), {
    isError: true,
  });
}

t.test("the official clients of 2025 and of 2026 use every tool", async (t) => {
  const url = await start(t);
  const legacy = new LegacyClient(WHO);
  await legacy.connect(new LegacyTransport(url) as Parameters<typeof legacy.connect>[0]);
  t.match(legacy.getServerVersion(), { name: "zpublish" });
  await useTools(t, legacy as Caller);
  await legacy.close();
  const modern = new Client(WHO, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await modern.connect(new StreamableHTTPClientTransport(url));
  await useTools(t, modern as Caller);
  await modern.close();
});

/** Scenarios by revision, and checks in them that need tools which only the test suite's own server has. */
const SCENARIOS = {
  "2025-11-25": ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"],
  "2026-07-28": ["server-stateless", "tools-list", "http-header-validation", "dns-rebinding-protection"],
};
const NOT_TESTABLE = [
  "sep-2575-server-rejects-undeclared-capability",
  "sep-2575-missing-capability-http-400",
  "sep-2575-http-server-no-independent-requests-on-stream",
  "sep-2575-server-no-log-without-loglevel",
];

t.test("the conformance suite of the protocol finds nothing wrong", { skip: node.missing }, async (t) => {
  const url = await start(t);
  const suite = join(PACKAGE_ROOT, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
  let passed = 0;
  for (const [version, scenarios] of Object.entries(SCENARIOS)) {
    for (const scenario of scenarios) {
      const output = await makeDirectory(t);
      const args = [
        suite,
        "server",
        "--url",
        url.href,
        "--scenario",
        scenario,
        "--spec-version",
        version,
        "-o",
        output,
      ];
      // It ends with 1 if a check fails.
      await promisify(execFile)(node.program, args).catch(() => undefined);
      const [folder = ""] = await readdir(output);
      const checks = JSON.parse(await readFile(join(output, folder, "checks.json"), "utf8")) as {
        readonly id: string;
        readonly status: string;
        readonly errorMessage?: string;
      }[];
      const failed = checks.filter(({ id, status }) => status === "FAILURE" && !NOT_TESTABLE.includes(id));
      t.same(failed, [], `${version} ${scenario}`);
      passed += checks.filter(({ status }) => status === "SUCCESS").length;
    }
  }
  t.ok(passed > 40, `${passed} checks passed`);
});
