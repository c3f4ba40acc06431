import {
  type DocumentReply,
  type JsonObject,
  type Plugin,
  type PluginContext,
  packageVersion,
  type RouteRequest,
  stringifyJson,
} from "../../plugin-api.js";
import { callTool, DATA_NOTE, toolsOf } from "./tools.js";

/** Revision without a handshake: each request says which one it is of. */
const MODERN = "2026-07-28";
/** Revisions that begin with `initialize`, the newest first. */
const LEGACY = ["2025-11-25", "2025-06-18", "2025-03-26"];
const META = "io.modelcontextprotocol/";
const SERVER = { name: "zpublish", version: packageVersion };
const INSTRUCTIONS = `Datasets of n-dimensional arrays: find one, describe it, then select values or look at a picture. ${DATA_NOTE}`;
/** Milliseconds for which clients may keep the list of tools, which a reload may change. */
const CACHE = { ttlMs: 300_000, cacheScope: "public" };
const JSON_TYPE = "application/json";
const LOCAL_HOST = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/;

/** Codes of JSON-RPC 2.0; of the protocol itself from -32020 on. */
const CODE = {
  parse: -32700,
  request: -32600,
  method: -32601,
  params: -32602,
  header: -32020,
  version: -32022,
};

/** An error that JSON-RPC answers. */
class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly status = 400,
    readonly data?: JsonObject,
  ) {
    super(message);
  }
}

/** A request, or a notification, which has no id. */
interface Message {
  readonly id: string | number | undefined;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/**
 * The plugin of tools for agents (Model Context Protocol), without sessions: each POST is answered by itself, of the revision 2026-07-28
 * or of those of 2025, whose `initialize` is answered and forgotten.
 * @param options `origins`: those of web pages that may call it, besides pages of this machine.
 */
export default function createMcpPlugin(options: unknown): Plugin {
  const { origins = [] } = (options ?? {}) as { readonly origins?: readonly string[] };
  const operation = {
    ...{
      summary: "Tools for agents (Model Context Protocol)",
      contentType: JSON_TYPE,
      schema: { type: "object" },
    },
    requestBody: {
      description: "A request of JSON-RPC 2.0",
      content: { [JSON_TYPE]: { schema: { type: "object" } } },
    },
  };
  return {
    ...{ name: "mcp", version: packageVersion, path: "zpublish/plugins/mcp" },
    routes: (context: PluginContext) => [
      {
        ...{ path: "/mcp", priority: "page", methods: ["POST"], maxBodyBytes: 64 * 1024, operation },
        handler: (request) => answer(context, request, origins),
      },
    ],
  };
}

async function answer(
  context: PluginContext,
  request: RouteRequest,
  origins: readonly string[],
): Promise<DocumentReply> {
  const { origin = "", ...headers } = {
    origin: request.header("origin"),
    version: request.header("mcp-protocol-version"),
    method: request.header("mcp-method"),
    name: request.header("mcp-name"),
  };
  const reply = (status: number, content: JsonObject | undefined): DocumentReply => {
    const text = content === undefined ? "" : stringifyJson({ jsonrpc: "2.0", ...content });
    return {
      kind: "document",
      document: context.createDocument(text, JSON_TYPE),
      status,
      cacheControl: "no-store",
    };
  };
  let id: Message["id"];
  try {
    // A page of another site, whose name was made to lead here, must not read what only this machine may.
    const isLocal = URL.canParse(origin) && LOCAL_HOST.test(new URL(origin).hostname);
    if (origin !== "" && !isLocal && !origins.includes(origin))
      throw new RpcError(CODE.request, "Expected no Origin, or one that is configured", 403);
    const message = parseMessage(await request.body());
    id = message.id;
    const isModern = checkVersion(message, headers);
    if (id === undefined) return reply(202, undefined);
    const result = await resultOf(context, request, message, isModern);
    const modern = { resultType: "complete", _meta: { [`${META}serverInfo`]: SERVER } };
    return reply(200, { id, result: { ...result, ...(isModern && modern) } });
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { code, message, status, data } = error;
    const about = { code, message, ...(data !== undefined && { data }) };
    return reply(status, { ...(id !== undefined && { id }), error: about });
  }
}

/** @throws RpcError if it is none */
function parseMessage(body: Uint8Array): Message {
  let content: unknown;
  try {
    content = JSON.parse(Buffer.from(body).toString());
  } catch {
    throw new RpcError(CODE.parse, "Expected JSON");
  }
  const { jsonrpc, id, method, params = {} } = isRecord(content) ? content : {};
  const hasId = id === undefined || typeof id === "string" || Number.isSafeInteger(id);
  if (jsonrpc !== "2.0" || typeof method !== "string" || !isRecord(params) || !hasId)
    throw new RpcError(CODE.request, "Expected a request or notification of JSON-RPC 2.0");
  return { id: id as Message["id"], method, params };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Checks of which revision a message is, and that its headers say what it says. @returns Whether it is of one without a handshake. */
function checkVersion(
  { method, params }: Message,
  headers: Readonly<Record<"version" | "method" | "name", string | undefined>>,
): boolean {
  const meta = isRecord(params._meta) ? params._meta : {};
  const version = meta[`${META}protocolVersion`];
  const refuse = (requested: string) =>
    new RpcError(CODE.version, "Unsupported protocol version", 400, {
      supported: [MODERN, ...LEGACY],
      requested,
    });
  if (version === undefined && headers.version !== MODERN) {
    // Before 2025-06-18, there was no such header.
    if (headers.version !== undefined && !LEGACY.includes(headers.version)) throw refuse(headers.version);
    return false;
  }
  if (typeof version !== "string" || !isRecord(meta[`${META}clientCapabilities`]))
    throw new RpcError(CODE.params, `Expected ${META}protocolVersion and ${META}clientCapabilities in _meta`);
  const [, encoded] = /^=\?base64\?(.*)\?=$/.exec(headers.name ?? "") ?? [];
  const name = encoded === undefined ? headers.name : Buffer.from(encoded, "base64").toString();
  const isNamed = method !== "tools/call" || name === params.name;
  if (headers.version !== version || headers.method !== method || !isNamed)
    throw new RpcError(
      CODE.header,
      "Header mismatch: MCP-Protocol-Version, Mcp-Method or Mcp-Name is not as in the body",
    );
  if (version !== MODERN) throw refuse(version);
  return true;
}

/** @throws RpcError, and what is to be answered as any error */
async function resultOf(
  context: PluginContext,
  request: RouteRequest,
  { method, params }: Message,
  isModern: boolean,
): Promise<JsonObject> {
  const about = { capabilities: { tools: {} }, instructions: INSTRUCTIONS };
  if (method === "tools/list") {
    const tools = toolsOf(context).map(({ name, description, inputSchema }) => ({
      name,
      description,
      inputSchema,
    }));
    return { tools, ...(isModern && CACHE) };
  }
  if (method === "tools/call") {
    const { name, arguments: given = {} } = params;
    const tool = toolsOf(context).find((each) => each.name === name);
    if (tool === undefined || !isRecord(given)) throw new RpcError(CODE.params, `Unknown tool: ${name}`, 200);
    return callTool(context, request, tool, given);
  }
  if (isModern && method === "server/discover")
    return { supportedVersions: [MODERN, ...LEGACY], ...about, ...CACHE };
  if (!isModern && method === "ping") return {};
  if (!isModern && method === "initialize") {
    const protocolVersion = LEGACY.find((each) => each === params.protocolVersion) ?? LEGACY[0]!;
    return { protocolVersion, serverInfo: SERVER, ...about };
  }
  throw new RpcError(CODE.method, `Method not found: ${method}`, isModern ? 404 : 200);
}
