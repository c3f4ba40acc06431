import { createHash } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join, relative } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type { Teardown } from "../write-store.js";
import { type Fault, faultAnswer, faultyObject, sendAnswer, shortAnswer } from "./fault.js";
import { type BucketOptions, bucketError, serveBucket } from "./serve-bucket.js";
import { type OriginAnswer, type OriginObject, serveObject } from "./serve-object.js";

/** A request as an origin received it. */
export interface OriginRequest {
  readonly method: string;
  /** Path as it was sent, without query. */
  readonly path: string;
  /** Key of the object: the decoded path, without the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Requests of this method for this key before it. */
  readonly before: number;
  /** Status of the answer; undefined before it begins. */
  status: number | undefined;
  /** Resolves when the answer is complete or the client has gone. */
  readonly closed: Promise<void>;
}

/** Filter of requests: fields that are left out match all. */
export interface RequestFilter {
  readonly method?: string;
  readonly key?: string | RegExp;
  readonly status?: number;
}

/** An HTTP server that fails as it is told. */
export type FaultyOrigin = Awaited<ReturnType<typeof startFaultyOrigin>>;

/** Options of an origin. */
export interface FaultyOriginOptions {
  readonly objects?: Readonly<Record<string, Uint8Array | string>>;
  /** Directory whose files are objects, too, as they are when they are asked for. */
  readonly directory?: string;
  readonly fault?: (request: OriginRequest) => Fault | undefined;
  /** Milliseconds before each answer. */
  readonly delay?: number;
  readonly s3?: BucketOptions;
  /** Certificate and key, as PEM. Default: plain HTTP. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Default: a free one. */
  readonly port?: number;
}

/** Starts an origin on 127.0.0.1, and ends it with the test. */
export async function startFaultyOrigin(t: Teardown, options: FaultyOriginOptions = {}) {
  const { directory, s3, tls } = options;
  const objects = new Map<string, OriginObject>();
  let fault = options.fault ?? (() => undefined);
  let requests: OriginRequest[] = [];
  let inFlight = 0;
  let maxInFlight = 0;
  let sockets = 0;
  let waiting: (() => void)[] = [];
  let counts = new Map<string, number>();

  /** Sets or replaces an object; its ETag is of its bytes unless given. */
  function put(key: string, content: Uint8Array | string, validators?: Omit<OriginObject, "bytes">): void {
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    objects.set(key, { bytes, ...(validators ?? validatorsOf(bytes)) });
  }
  for (const [key, bytes] of Object.entries(options.objects ?? {})) put(key, bytes);

  const find = (key: string) =>
    objects.get(key) ?? (directory === undefined ? undefined : readObject(directory, key));
  const keys = () => [...objects.keys(), ...(directory === undefined ? [] : keysOf(directory))];

  function answerTo(request: OriginRequest, url: URL, fault: Fault): OriginAnswer {
    const wrong = faultAnswer(fault);
    if (wrong !== undefined) return wrong;
    const ofBucket = s3 === undefined ? undefined : serveBucket(s3, keys, url, request.headers);
    if (ofBucket !== undefined) return ofBucket;
    const object = find(request.key);
    if (object === undefined) {
      if (s3 !== undefined) return bucketError(s3.mayList === false ? "AccessDenied" : "NoSuchKey");
      return {
        status: 404,
        headers: { "content-type": "text/plain" },
        body: Buffer.from("no such object\n"),
      };
    }
    const { range, ...others } = request.headers;
    const headers = fault.ignoreRange ? others : request.headers;
    return shortAnswer(serveObject(faultyObject(object, fault), headers), fault);
  }

  async function handle(message: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(message.url ?? "/", "http://origin");
    const method = message.method ?? "";
    const path = url.pathname;
    const inBucket = s3 === undefined ? path.slice(1) : path.replace(/^\/[^/]*\/?/, "");
    const key = decodeURIComponent(inBucket);
    const request: OriginRequest = {
      method,
      path,
      key,
      query: url.searchParams,
      headers: message.headers,
      before: counts.get(`${method} ${key}`) ?? 0,
      status: undefined,
      closed: new Promise((resolve) => response.once("close", resolve)),
    };
    counts.set(`${method} ${key}`, request.before + 1);
    requests.push(request);
    maxInFlight = Math.max(maxInFlight, ++inFlight);
    response.once("close", () => {
      inFlight--;
    });
    wake();
    const chosen = fault(request) ?? {};
    const ms = (options.delay ?? 0) + (chosen.delay ?? 0);
    if (ms > 0) await wait(ms);
    const answer =
      method === "GET" || method === "HEAD"
        ? answerTo(request, url, chosen)
        : { status: 405, headers: {}, body: Buffer.from("") };
    if (chosen.hang !== "before-headers" && !chosen.disconnect) request.status = answer.status;
    wake();
    await sendAnswer(response, method, answer, chosen);
  }

  function wake(): void {
    const woken = waiting;
    waiting = [];
    for (const resolve of woken) resolve();
  }

  function count(filter: RequestFilter = {}): number {
    return requests.filter((request) => matches(request, filter)).length;
  }

  const onRequest = (message: IncomingMessage, response: ServerResponse) => void handle(message, response);
  // Idle connections stay open, so that their number says how many a client needs.
  const settings = { keepAliveTimeout: 60_000 };
  const server =
    tls === undefined
      ? createServer(settings, onRequest)
      : createTlsServer({ ...settings, ...tls }, onRequest);
  server.on("connection", () => {
    sockets++;
  });
  server.listen(options.port ?? 0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  let stopped: Promise<unknown> | undefined;
  function stop(): Promise<void> {
    stopped ??= new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
    return stopped.then(() => {});
  }
  t.teardown(stop);

  return {
    // Certificates of tests are for this name.
    url: tls === undefined ? `http://127.0.0.1:${port}` : `https://localhost:${port}`,
    port,
    /** In the order in which they came. */
    get requests(): readonly OriginRequest[] {
      return requests;
    },
    count,
    /** Waits until so many requests of a kind have come, counted from the start; with a status, until they are answered. */
    async requested(filter: RequestFilter, expected = 1): Promise<void> {
      while (count(filter) < expected) {
        await new Promise<void>((resolve) => {
          waiting.push(resolve);
        });
      }
    },
    maxInFlight: () => maxInFlight,
    sockets: () => sockets,
    put,
    remove: (key: string): unknown => objects.delete(key),
    /** Fails from now on as the function says, which is called once per request. */
    setFault(next: (request: OriginRequest) => Fault | undefined): void {
      fault = next;
    },
    /** Forgets requests and counts, not connections. */
    resetCounts(): void {
      requests = [];
      counts = new Map();
      maxInFlight = inFlight;
    },
    stop,
  };
}

function matches(request: OriginRequest, { method, key, status }: RequestFilter): boolean {
  if (method !== undefined && request.method !== method) return false;
  if (status !== undefined && request.status !== status) return false;
  if (key === undefined) return true;
  return typeof key === "string" ? request.key === key : key.test(request.key);
}

/** Validators as servers make them: equal bytes have an equal ETag. */
function validatorsOf(bytes: Uint8Array, modified = new Date()): Omit<OriginObject, "bytes"> {
  const etag = `"${createHash("md5").update(bytes).digest("hex")}"`;
  return { etag, lastModified: modified.toUTCString() };
}

function readObject(directory: string, key: string): OriginObject | undefined {
  const path = join(directory, key);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isFile()) return undefined;
  const bytes = readFileSync(path);
  return { bytes, ...validatorsOf(bytes, stat.mtime) };
}

function keysOf(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(directory, join(entry.parentPath, entry.name)));
}
