import { STATUS_CODES } from "node:http";
import { createLimiter } from "../collections/limiter.js";
import { ZpublishError } from "../errors.js";
import { createHistogram, type Histogram } from "../observe/metrics.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import {
  type ByteStore,
  type ObjectBytes,
  type ObjectStat,
  type ObjectVersion,
  type ReadObjectOptions,
  resolveObjectRange,
  sliceOf,
} from "./byte-store.js";
import { allocateOwn } from "./file-calls.js";
import {
  type Answer,
  type AnswerHead,
  answeredBytes,
  assertStoredBytes,
  type BodyPlan,
  changed,
  ExchangeFailed,
  exchange,
  isTransient,
  lengthOf,
  MAX_WHOLE_BYTES,
  NO_BODY,
  overlongError,
  parseRetryAfter,
  rangeHeader,
  refusalError,
  strongTag,
  Transient,
  unreadableObject,
  versionOfAnswer,
  wholeError,
  withRetries,
} from "./http-exchange.js";

/** Requests of one store at a time. */
const MAX_PER_STORE = 32;
/** Requests of all stores at a time: several stores may hang while others are read. */
const MAX_RUNNING = 192;
/** Longest object that is read at once. */
const MAX_OBJECT_BYTES = 2 ** 31 - 1;
/** Requests for one range of a server that answers with fewer bytes than it is asked for. */
const MAX_PARTS = 1_024;

/** Requests of the whole process. */
const limiter = createLimiter({
  maxRunning: MAX_RUNNING,
  maxPerKey: MAX_PER_STORE,
  maxWaiting: Number.POSITIVE_INFINITY,
});

/** Rules of a store that is reached over HTTP. */
interface HttpStoreRules {
  /** Name of the configured store, or of the host or bucket: limits and counts are for all that lies there. */
  readonly store: string;
  /** See {@link ByteStore.location}. */
  readonly location: string;
  /** See {@link ByteStore.identity}. */
  readonly identity: string;
  /** Returns the URL of an object. */
  urlOf(key: string): URL;
  /** Returns the headers of a request, with those that prove who asks. */
  headersOf(
    method: "GET" | "HEAD",
    url: URL,
    headers: Record<string, string>,
  ): Promise<Record<string, string>>;
  /** Tells whether an answer says that there is no such object. */
  isMissing(answer: Answer): boolean;
  /**
   * Tells whether an answer says that credentials have expired, so that others are used from now on. Default: it never does.
   * @param sent Headers of the request.
   */
  hasExpired?(answer: Answer, sent: Readonly<Record<string, string>>): boolean;
  /** Tells whether a refusal has to be asked for again as GET, since an answer to HEAD has no body that says what is wrong. */
  isUnclear?(answer: Answer): boolean;
  /** Returns the reason of a refusal for messages. Default: the status. */
  reasonOf?(answer: Answer): string;
}

/** A store over HTTP, and its requests for what is no object, such as a listing. */
interface HttpStore extends ByteStore {
  urlOf(key: string): URL;
  /** Reads the text behind a URL of the store. @throws ZpublishError `source-unreadable` */
  readText(url: URL, label: string, signal?: AbortSignal): Promise<string>;
}

/** One request for an object. */
interface ObjectRequest extends ReadObjectOptions {
  readonly method: "GET" | "HEAD";
  readonly key: string;
  readonly url: URL;
  /** The version that need not be sent again. */
  readonly known?: ObjectVersion;
}

/** Sends requests of one store. */
interface Transport {
  /**
   * Sends a request until it is answered: attempts that may help are made within the time limit.
   * @throws ZpublishError `source-unreadable`, `cancelled`; what `plan` throws.
   */
  send(request: ObjectRequest, plan: (head: AnswerHead) => BodyPlan): Promise<Answer>;
  /** Returns the error for an answer that has no object, and says neither that it is missing nor unchanged. */
  refusalOf(request: ObjectRequest, answer: Answer): ZpublishError;
}

function createTransport(rules: HttpStoreRules): Transport {
  const { store, location } = rules;
  const stats = statsOfStore(store);
  const reasonOf = (answer: Answer): string => rules.reasonOf?.(answer) ?? statusText(answer.status);

  async function attempt(
    request: ObjectRequest,
    headers: Record<string, string>,
    plan: (head: AnswerHead) => BodyPlan,
    signal: AbortSignal,
  ): Promise<Answer> {
    const { method, url } = request;
    const beganMs = performance.now();
    const answer = await exchange({ method, url, headers, signal }, plan).catch((error: unknown) => {
      stats.failures++;
      throw error instanceof ExchangeFailed ? new Transient(error.message, undefined, error) : error;
    });
    stats.seconds.observe((performance.now() - beganMs) / 1_000);
    stats.answers.set(answer.status, (stats.answers.get(answer.status) ?? 0) + 1);
    stats.bytes += answer.receivedByteLength;
    if (isTransient(answer.status))
      throw new Transient(reasonOf(answer), parseRetryAfter(answer.header("retry-after")));
    return answer;
  }

  return {
    async send(request, plan) {
      const { key, method, url, signal } = request;
      let isRenewed = false;
      async function run(limited: AbortSignal): Promise<Answer> {
        const headers = await rules.headersOf(method, url, conditionsOf(request));
        const answer = await attempt(request, headers, plan, limited);
        if (isRenewed || !rules.hasExpired?.(answer, headers)) return answer;
        // Other credentials are used once: the next answer says what is wrong.
        isRenewed = true;
        throw new Transient(reasonOf(answer));
      }
      try {
        return await withRetries(run, {
          signal,
          onRetry: () => stats.retries++,
          inTurn: (turn, limited) => limiter.run(store, turn, limited),
        });
      } catch (error) {
        if (error instanceof ZpublishError) throw error;
        if (signal?.aborted) throw new ZpublishError("cancelled", "the reader has gone");
        throw unreadableObject(key, `${location} cannot be read (${(error as Error).message})`, error);
      }
    },
    refusalOf: (request, answer) => refusalError(request, answer, location, reasonOf(answer)),
  };
}

/** Writes a status as people know it: `it answers 403 Forbidden`. */
function statusText(status: number): string {
  return `it answers ${status} ${STATUS_CODES[status] ?? ""}`.trimEnd();
}

/** Sends one request. @returns The bytes asked for, or the first of them. Memory is allocated for all. */
async function fetchPart(
  rules: HttpStoreRules,
  { send, refusalOf }: Transport,
  key: string,
  options: ReadObjectOptions & { readonly allocate: (byteLength: number) => Uint8Array<ArrayBuffer> },
  known?: ObjectVersion,
): Promise<ObjectBytes | "unchanged" | undefined> {
  const { range, version, allocate, maxByteLength = MAX_OBJECT_BYTES } = options;
  const url = rules.urlOf(key);
  const request: ObjectRequest = { ...options, method: "GET", key, url, ...(known && { known }) };
  let objectByteLength: number | undefined;
  const assertVersion = (head: AnswerHead, byteLength: number): ObjectVersion => {
    const received = versionOfAnswer(head, byteLength);
    if (version !== undefined && received.token !== version.token) throw changed(key);
    return received;
  };
  const answer = await send(request, (head) => {
    const { byteLength, kept, ...answered } = answeredBytes(head, range, key);
    objectByteLength = answered.objectByteLength;
    if (objectByteLength === undefined) return unannounced(key, options);
    assertVersion(head, objectByteLength);
    const { byteLength: wanted } = resolveObjectRange(key, objectByteLength, {
      range,
      maxByteLength: Infinity,
    });
    assertStoredLength(wanted, maxByteLength, () => `'${key}'`);
    const allocateAll = (received: number) => {
      const bytes = allocate(wanted);
      // A view would not be known as memory that is to be used again.
      return received === wanted ? bytes : bytes.subarray(0, received);
    };
    return { ...unannounced(key, options), byteLength, kept, allocate: allocateAll };
  });
  if (answer.status === 200 || answer.status === 206) {
    const { bytes } = answer;
    const found = assertVersion(answer, objectByteLength ?? bytes.length);
    // The server ignores ranges, and did not say how long the object is.
    if (objectByteLength === undefined && range !== undefined) return sliceOf(key, bytes, found, options);
    return { bytes, version: found, objectByteLength: objectByteLength ?? bytes.length };
  }
  if (answer.status === 304 && known !== undefined) return "unchanged";
  if (rules.isMissing(answer)) return undefined;
  throw refusalOf(request, answer);
}

/** Creates a store of objects behind URLs. It makes no request before its first call. */
export function createHttpStore(rules: HttpStoreRules): HttpStore {
  const { location, identity } = rules;
  const transport = createTransport(rules);

  /** Reads an object or a part of it: with one request, unless the server answers with fewer bytes. */
  async function fetch(
    key: string,
    options: ReadObjectOptions,
    known?: ObjectVersion,
  ): Promise<ObjectBytes | "unchanged" | undefined> {
    const { range, allocate = allocateOwn, signal } = options;
    if (range !== undefined && "offset" in range && range.byteLength === 0) return readNothing(key, options);
    let memory: Uint8Array<ArrayBuffer> | undefined;
    function allocateOnce(byteLength: number): Uint8Array<ArrayBuffer> {
      if (memory?.length !== byteLength) memory = allocate(byteLength);
      return memory;
    }
    const first = await fetchPart(rules, transport, key, { ...options, allocate: allocateOnce }, known);
    if (first === undefined || first === "unchanged" || range === undefined || memory === undefined)
      return first;
    const { version, objectByteLength } = first;
    const offset = "last" in range ? objectByteLength - memory.length : range.offset;
    for (let filled = first.bytes.length, parts = 1; filled < memory.length; parts++) {
      const received = `expected ${memory.length} bytes, received ${filled} in ${parts} answers`;
      if (parts === MAX_PARTS) throw unreadableObject(key, received);
      const rest = memory.subarray(filled);
      const asked = { range: { offset: offset + filled, byteLength: rest.length }, version, signal };
      const part = await fetchPart(rules, transport, key, { ...asked, allocate: () => rest });
      if (part === undefined || part === "unchanged") throw changed(key);
      filled += part.bytes.length;
    }
    return { ...first, bytes: memory };
  }

  /** Reads no bytes, which no Range header can ask for, of an object that has to exist. */
  async function readNothing(key: string, { version, signal }: ReadObjectOptions) {
    const found = await stat(key, signal);
    if (found === undefined) return undefined;
    if (version !== undefined && found.version.token !== version.token) throw changed(key);
    return { bytes: new Uint8Array(0), version: found.version, objectByteLength: found.byteLength };
  }

  async function stat(key: string, signal?: AbortSignal): Promise<ObjectStat | undefined> {
    const request: ObjectRequest = { method: "HEAD", key, url: rules.urlOf(key), signal };
    const answer = await transport.send(request, () => NO_BODY);
    if (answer.status === 200) assertStoredBytes(answer, key);
    const byteLength = lengthOf(answer.header("content-length"));
    if (answer.status === 200 && byteLength !== undefined)
      return { version: versionOfAnswer(answer, byteLength), byteLength };
    const isRefused = answer.status !== 200 && answer.status !== 405 && answer.status !== 501;
    if (isRefused && !rules.isUnclear?.(answer)) {
      if (rules.isMissing(answer)) return undefined;
      throw transport.refusalOf(request, answer);
    }
    // The server does not tell lengths, does not know HEAD, or does not say what is wrong.
    const range = { offset: 0, byteLength: 1 };
    const first = await fetch(key, { range, signal }).catch((error: unknown) => {
      // An empty object has no first byte.
      if (!(error instanceof ZpublishError) || error.code !== "corrupt-chunk") throw error;
      return fetch(key, { maxByteLength: 0, signal });
    });
    if (first === undefined || first === "unchanged") return undefined;
    return { version: first.version, byteLength: first.objectByteLength };
  }

  return {
    location,
    identity,
    urlOf: rules.urlOf,
    placeOf: (key) => ({ location: rules.urlOf(key).href }),
    stat,
    async read(key, options = {}) {
      return (await fetch(key, options)) as ObjectBytes | undefined;
    },
    readIfChanged: (key, known, options = {}) => fetch(key, options, known),
    async readText(url, label, signal) {
      const plan = (head: AnswerHead) => ({
        ...answeredBytes(head, undefined, label),
        maxByteLength: MAX_OBJECT_BYTES,
        overlong: (received: number) => overlongError(label, MAX_OBJECT_BYTES, received),
      });
      const request: ObjectRequest = { method: "GET", key: label, url, signal };
      const answer = await transport.send(request, plan);
      if (answer.status === 200) return Buffer.from(answer.bytes).toString("utf8");
      throw transport.refusalOf(request, answer);
    },
  };
}

/** Returns the plan for a body whose length is not announced, which is the whole object. */
function unannounced(
  key: string,
  { range, allocate, maxByteLength = MAX_OBJECT_BYTES }: ReadObjectOptions,
): BodyPlan {
  const byteLength = undefined;
  if (range !== undefined)
    return { byteLength, maxByteLength: MAX_WHOLE_BYTES, overlong: () => wholeError(key, range) };
  const overlong = (received: number) => overlongError(key, maxByteLength, received);
  return { byteLength, maxByteLength, overlong, allocate };
}

function conditionsOf({ range, version, ifMatch, known }: ObjectRequest): Record<string, string> {
  const headers: Record<string, string> = { accept: "*/*", "accept-encoding": "identity" };
  if (range !== undefined) headers.range = rangeHeader(range);
  const tag = ifMatch ?? (version && strongTag(version));
  if (tag !== undefined) headers["if-match"] = tag;
  if (known?.etag !== undefined) headers["if-none-match"] = known.etag;
  else if (known?.lastModified !== undefined) headers["if-modified-since"] = known.lastModified;
  return headers;
}

/** Counts of one store since the start of the process. */
interface StoreStats {
  /** Requests that were answered, by status code. */
  readonly answers: Map<number, number>;
  /** Requests that got no whole answer. */
  failures: number;
  /** Attempts after the first one. */
  retries: number;
  /** Bytes of objects received. */
  bytes: number;
  /** Seconds from sending a request to the end of its answer. */
  readonly seconds: Histogram;
}

const stats = new Map<string, StoreStats>();

/** Returns the counts of a store by its name, for all datasets in it. */
function statsOfStore(name: string): StoreStats {
  let found = stats.get(name);
  if (found === undefined) {
    found = { answers: new Map(), failures: 0, retries: 0, bytes: 0, seconds: createHistogram() };
    stats.set(name, found);
  }
  return found;
}

/** Returns the counts of all stores by name. */
export function allStoreStats(): ReadonlyMap<string, StoreStats> {
  return stats;
}
