/**
 * A process of its own: clients that read everything there is, over and over, and look at every byte. Told what to do as
 * the first argument (JSON, a `ChaosClientOrder`); sends `Observation`s in lots to the process that forked it, until that
 * says `stop`; then the last ones, and ends.
 */
import { createHash } from "node:crypto";
import { Agent, get, type IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { gunzipSync } from "node:zlib";
import Blosc from "numcodecs/blosc";
import Zstd from "numcodecs/zstd";
import { createRandom } from "../../../bench/random.js";
import { CHAOS_ARRAYS, CHAOS_KEYS, type ChaosKey, checkChunk, POISON_DATASET } from "./arrays.js";
import { growing, type Observation } from "./judge.js";
import { now } from "./timeline.js";

/** What such a process is told. */
export interface ChaosClientOrder {
  readonly port: number;
  readonly seed: number;
  readonly connections: number;
  /** Mean pause of a connection between two requests. */
  readonly pauseMs: number;
}

const REPORT_EVERY_MS = 100;
const REQUEST_TIMEOUT_MS = 60_000;
/** Answers remembered, by ETag and path. */
const MAX_KNOWN = 2_000;
/** Longest body that is remembered. */
const MAX_KNOWN_BODY = 70_000;
/** Share of requests that ask for what kills workers. */
const POISON_SHARE = 0.002;
/** Pause after a connection that was refused. */
const RETRY_MS = 20;

const blosc = Blosc.fromConfig({ id: "blosc" });
const zstd = Zstd.fromConfig({ id: "zstd" });

interface Known {
  readonly digest: string;
  readonly versions: readonly number[];
  readonly body: Buffer | undefined;
}

/** By path and ETag. */
const known = new Map<string, Known>();
/** The last ETag of each path. */
const lastTags = new Map<string, string>();

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

type Found = Omit<Observation, "key" | "from" | "until">;

/** An answer that had begun. */
class BrokenOff extends Error {}

/** @throws Error where the connection fails; {@link BrokenOff} where the body is not whole. */
function ask(
  order: ChaosClientOrder,
  agent: Agent,
  path: string,
  method: string,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: order.port, path, method, headers, agent };
    const request = get(options, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("error", ({ message }) => reject(new BrokenOff(message)));
      response.on("end", () => {
        if (!response.complete) reject(new BrokenOff("the body is not whole"));
        else resolve({ status: response.statusCode!, headers: response.headers, body: Buffer.concat(parts) });
      });
    });
    request.setTimeout(REQUEST_TIMEOUT_MS, () => request.destroy(new Error("no answer in time")));
    request.on("error", reject);
  });
}

/** A chunk's values, whatever it was encoded with. */
async function decode(body: Buffer, plainBytes: number): Promise<{ coding: string; bytes: Uint8Array }> {
  if (body.length === plainBytes) return { coding: "none", bytes: body };
  const magic = body.length >= 4 ? body.readUInt32LE(0) : 0;
  if (magic === 0xfd2fb528) return { coding: "zstd", bytes: await zstd.decode(body) };
  if ((magic & 0xffff) === 0x8b1f) return { coding: "gzip", bytes: gunzipSync(body) };
  if (body[0] === 2) return { coding: "blosc", bytes: await blosc.decode(body) };
  throw new Error(`expected zstd, gzip, blosc or ${plainBytes} bytes, received ${body.length} bytes`);
}

async function lookAtChunk(key: ChaosKey, body: Buffer): Promise<Found> {
  const { items, rowsPerChunk } = key.array!;
  try {
    const { coding, bytes } = await decode(body, rowsPerChunk * items * 4);
    const finding = checkChunk(key, bytes);
    if ("problem" in finding) return { status: 200, wrong: finding.problem, isContent: true };
    return { status: 200, coding, versions: finding.versions };
  } catch (error) {
    return { status: 200, wrong: `cannot be decoded: ${(error as Error).message}`, isContent: true };
  }
}

function lookAtDocument(key: ChaosKey, body: Buffer): Found {
  try {
    // Strict, unlike many clients: a bare NaN is no JSON.
    const document = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    const wrong = problemOf(key, document);
    if (wrong !== undefined) return { status: 200, wrong };
    if (key.name === ".zarray") return { status: 200, versions: [document.shape[0]] };
    if (key.name !== "zarr/.zmetadata") return { status: 200 };
    const versions = growing(key.dataset).map(({ path }) => document.metadata[`${path}/.zarray`].shape[0]);
    return { status: 200, versions };
  } catch (error) {
    return { status: 200, wrong: `no JSON as expected: ${(error as Error).message}` };
  }
}

/** What a document does not name though it is there. */
function problemOf({ name, dataset }: ChaosKey, document: unknown): string | undefined {
  const paths = CHAOS_ARRAYS.filter((array) => array.dataset === dataset).map(({ path }) => path);
  const ofRoot = paths.filter((path) => !path.includes("/"));
  const named: Readonly<Record<string, () => object>> = {
    keys: () => Object.fromEntries((document as string[]).map((each) => [each, 1])),
    info: () => (document as { variables: object }).variables,
    dict: () => (document as { data_vars: object }).data_vars,
    "zarr/.zmetadata": () => (document as { metadata: object }).metadata,
  };
  const names = named[name]?.();
  if (names === undefined) return undefined;
  const expected = name === "zarr/.zmetadata" ? paths.map((path) => `${path}/.zarray`) : ofRoot;
  const missing = expected.filter((each) => !Object.hasOwn(names, each));
  return missing.length > 0 ? `${missing.join(", ")} not in ${name}` : undefined;
}

/** @param asked ETag of `If-None-Match`. @param part What a part was asked of. */
async function look(
  key: ChaosKey,
  answer: Answer,
  asked: string | undefined,
  part: Known | undefined,
): Promise<Found> {
  const { status, headers, body } = answer;
  const tag = headers.etag;
  const missing = ["access-control-allow-origin", "x-content-type-options"].find(
    (name) => headers[name] === undefined,
  );
  if (missing !== undefined) return { status, wrong: `an answer without ${missing}` };
  if (status === 206) return lookAtPart(answer, part);
  if (status === 304) {
    if (asked === undefined) return { status, wrong: "a 304 that was not asked for" };
    if (tag !== asked) return { status, wrong: `a 304 of ETag ${tag}, asked for ${asked}` };
    const versions = known.get(`${key.url} ${tag}`)?.versions;
    return { status, ...(versions === undefined ? {} : { versions }) };
  }
  if (status !== 200) return { status, detail: body.toString("utf8").slice(0, 300) };
  if (tag === undefined) return { status, wrong: "an answer without an ETag" };
  const digest = createHash("sha256").update(body).digest("base64");
  const same = known.get(`${key.url} ${tag}`);
  const found = key.kind === "chunk" ? await lookAtChunk(key, body) : lookAtDocument(key, body);
  if (found.wrong !== undefined) return found;
  if (same !== undefined && same.digest !== digest)
    return { status, wrong: `other bytes under ETag ${tag} than before` };
  if (same !== undefined) return found;
  if (known.size >= MAX_KNOWN) known.delete(known.keys().next().value!);
  const kept = body.length <= MAX_KNOWN_BODY ? body : undefined;
  known.set(`${key.url} ${tag}`, { digest, versions: found.versions ?? [], body: kept });
  lastTags.set(key.url, tag);
  return found;
}

function lookAtPart({ status, headers, body }: Answer, whole: Known | undefined): Found {
  const range = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(headers["content-range"] ?? "");
  if (range === null || whole?.body === undefined) return { status, wrong: "a part that was not asked for" };
  const [first, last, total] = range.slice(1).map(Number) as [number, number, number];
  const isRight =
    total === whole.body.length && Buffer.compare(body, whole.body.subarray(first, last + 1)) === 0;
  return isRight
    ? { status, versions: whole.versions }
    : { status, wrong: `bytes ${first}-${last}/${total} differ from those of the whole` };
}

/** One request of a random kind. */
async function observe(
  order: ChaosClientOrder,
  agent: Agent,
  keyNumber: number,
  random: () => number,
): Promise<Observation> {
  const key = CHAOS_KEYS[keyNumber]!;
  const headers: Record<string, string> = {};
  const tag = lastTags.get(key.url);
  const last = tag === undefined ? undefined : known.get(`${key.url} ${tag}`);
  const dice = random();
  let part: Known | undefined;
  if (dice < 0.15 && tag !== undefined) headers["If-None-Match"] = tag;
  else if (dice < 0.25 && tag !== undefined && last?.body !== undefined && last.body.length > 1) {
    const first = Math.floor(random() * last.body.length);
    headers.Range = `bytes=${first}-${first + Math.floor(random() * 5_000)}`;
    headers["If-Range"] = tag;
    part = last;
  }
  const isHead = dice > 0.95;
  const from = now();
  let found: Found;
  try {
    const answer = await ask(order, agent, key.url, isHead ? "HEAD" : "GET", headers);
    // What it says came before it was looked at.
    const until = now();
    const isMeasured = isHead && answer.status === 200;
    found = isMeasured ? lookAtHead(key, answer) : await look(key, answer, headers["If-None-Match"], part);
    return { key: keyNumber, from, until, ...found };
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ECONNREFUSED") await sleep(RETRY_MS);
    const isBegun = error instanceof BrokenOff;
    return { key: keyNumber, from, until: now(), status: 0, isBegun, detail: code ?? message };
  }
}

function lookAtHead(key: ChaosKey, { headers }: Answer): Found {
  const same = known.get(`${key.url} ${headers.etag}`);
  const length = Number(headers["content-length"]);
  if (same?.body !== undefined && key.kind === "chunk" && length !== same.body.length)
    return { status: 200, wrong: `HEAD says ${length} bytes, GET gave ${same.body.length}` };
  return { status: 200, ...(same === undefined ? {} : { versions: same.versions }) };
}

async function main(): Promise<void> {
  const order = JSON.parse(process.argv[2]!) as ChaosClientOrder;
  const random = createRandom(order.seed);
  const agent = new Agent({ keepAlive: true, maxSockets: order.connections });
  const isPoison = CHAOS_KEYS.map(({ dataset, kind }) => dataset === POISON_DATASET && kind === "chunk");
  const poison = [...isPoison.keys()].filter((i) => isPoison[i]);
  const others = [...isPoison.keys()].filter((i) => !isPoison[i]);
  let seen: Observation[] = [];
  let isStopped = false;

  async function client(): Promise<void> {
    while (!isStopped) {
      const from = random() < POISON_SHARE ? poison : others;
      const one = await observe(order, agent, from[Math.floor(random() * from.length)]!, random);
      seen.push(one);
      await sleep(random() * 2 * order.pauseMs);
    }
  }

  function report(): void {
    if (seen.length > 0) process.send!(seen);
    seen = [];
  }

  process.on("message", () => {
    isStopped = true;
  });
  process.once("disconnect", () => process.exit(0));
  const timer = setInterval(report, REPORT_EVERY_MS);
  await Promise.all(Array.from({ length: order.connections }, client));
  clearInterval(timer);
  agent.destroy();
  report();
  process.send!("done");
}

await main();
