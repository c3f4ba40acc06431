import { messageOf } from "../../errors.js";
import type { FailedAnswer } from "../protocol.js";

/** Order of those who wait for chunks. */
export const PRIORITY = Object.freeze({ probe: 0, coordinate: 1, picture: 2, range: 3, series: 4, ahead: 5 });

/** A chunk to read. */
export interface ChunkJob<T> {
  readonly key: string;
  read(signal: AbortSignal): Promise<T>;
}

/** Something that waits for chunks: a picture, a series. */
export interface ChunkOwner<T> {
  /** In the order in which they are read. The owner is not told of chunks that are cached already. */
  readonly jobs: readonly ChunkJob<T>[];
  /** Owners with smaller numbers are served first. */
  readonly priority: number;
  onRead(key: string, chunk: T): void;
  onFailed(key: string, error: unknown): void;
}

/** Bounds of the queue. */
export interface QueueLimits {
  readonly maxInFlight: number;
  readonly maxBytes: number;
}

interface Wants<T> {
  readonly owner: ChunkOwner<T>;
  /** By key, in their order; those that are read or failed are taken out. */
  readonly open: Map<string, ChunkJob<T>>;
}

/** Reads chunks, a few at a time, and keeps decoded ones: the least recently used are forgotten first. A request is cancelled once no owner wants it any more. */
export class ChunkQueue<T> {
  readonly #limits: QueueLimits;
  readonly #byteLengthOf: (chunk: T) => number;
  readonly #cached = new Map<string, { readonly chunk: T; readonly byteLength: number }>();
  readonly #inFlight = new Map<string, AbortController>();
  #wants: Wants<T>[] = [];
  #bytes = 0;

  constructor(limits: QueueLimits, byteLengthOf: (chunk: T) => number) {
    this.#limits = limits;
    this.#byteLengthOf = byteLengthOf;
  }

  get maxBytes(): number {
    return this.#limits.maxBytes;
  }

  has(key: string): boolean {
    return this.#cached.has(key);
  }

  /** Returns a kept chunk, wrapped since an absent one may be undefined. */
  get(key: string): { readonly chunk: T } | undefined {
    const found = this.#cached.get(key);
    if (found === undefined) return undefined;
    this.#cached.delete(key);
    this.#cached.set(key, found);
    return found;
  }

  /** Begins to read what an owner wants. @param former Ends its reading in the same step, so that what both want is not cancelled. */
  want(owner: ChunkOwner<T>, former?: ChunkOwner<T>): void {
    const open = new Map(owner.jobs.filter(({ key }) => !this.has(key)).map((job) => [job.key, job]));
    this.#wants = this.#wants.filter((wants) => wants.owner !== former);
    this.#wants.push({ owner, open });
    this.#wants.sort((one, other) => one.owner.priority - other.owner.priority);
    this.#cancelUnwanted();
    this.#start();
  }

  /** Ends the reading for an owner, which is told nothing more. */
  release(owner: ChunkOwner<T>): void {
    this.#wants = this.#wants.filter((wants) => wants.owner !== owner);
    this.#cancelUnwanted();
    this.#start();
  }

  /** Reads one chunk, before those of most owners. @throws what reading throws */
  read(job: ChunkJob<T>, priority: number, signal?: AbortSignal): Promise<T> {
    const found = this.get(job.key);
    if (found !== undefined) return Promise.resolve(found.chunk);
    return new Promise<T>((resolve, reject) => {
      signal?.throwIfAborted();
      const end = (settle: () => void) => {
        signal?.removeEventListener("abort", cancel);
        this.release(owner);
        settle();
      };
      const cancel = () => end(() => reject(signal?.reason));
      const owner: ChunkOwner<T> = {
        jobs: [job],
        priority,
        onRead: (_key, chunk) => end(() => resolve(chunk)),
        onFailed: (_key, error) => end(() => reject(error)),
      };
      signal?.addEventListener("abort", cancel);
      this.want(owner);
    });
  }

  #cancelUnwanted(): void {
    for (const [key, controller] of this.#inFlight) {
      if (this.#wants.some(({ open }) => open.has(key))) continue;
      this.#inFlight.delete(key);
      controller.abort(new Error("no view wants it any more"));
    }
  }

  #start(): void {
    for (const { open } of this.#wants) {
      for (const job of open.values()) {
        if (this.#inFlight.size >= this.#limits.maxInFlight) return;
        if (!this.#inFlight.has(job.key)) this.#run(job);
      }
    }
  }

  #run(job: ChunkJob<T>): void {
    const { key } = job;
    const flight = new AbortController();
    this.#inFlight.set(key, flight);
    // A cancelled request may be followed by another one for the same chunk: only the current one is heard.
    const isCurrent = () => this.#inFlight.get(key) === flight && this.#inFlight.delete(key);
    job.read(flight.signal).then(
      (chunk) => {
        if (!isCurrent()) return;
        this.#keep(key, chunk);
        this.#settle(key, (owner) => owner.onRead(key, chunk));
      },
      (error: unknown) => {
        if (isCurrent()) this.#settle(key, (owner) => owner.onFailed(key, error));
      },
    );
  }

  #settle(key: string, tell: (owner: ChunkOwner<T>) => void): void {
    for (const { owner, open } of [...this.#wants]) if (open.delete(key)) tell(owner);
    this.#start();
  }

  #keep(key: string, chunk: T): void {
    const byteLength = this.#byteLengthOf(chunk);
    this.#cached.set(key, { chunk, byteLength });
    this.#bytes += byteLength;
    for (const [oldest, kept] of this.#cached) {
      if (this.#bytes <= this.#limits.maxBytes || oldest === key) break;
      this.#cached.delete(oldest);
      this.#bytes -= kept.byteLength;
    }
  }
}

/** A failure that the page shows as a sentence. Absence is none. */
export class ReadFailure extends Error {
  override readonly name = "ReadFailure";
  /** Id of the failed request in the server's log; undefined if it sent none. */
  readonly requestId: string | undefined;
  readonly mayRetry: boolean;

  constructor(
    sentence: string,
    options: ErrorOptions & Partial<Pick<FailedAnswer, "requestId" | "mayRetry">> = {},
  ) {
    super(sentence, options);
    this.requestId = options.requestId;
    this.mayRetry = options.mayRetry ?? false;
  }
}

interface FetchOptions {
  /** Sent as `Authorization: Bearer …`. */
  readonly token: string | undefined;
  /** Name of what is read, for sentences: `chunk 0.1 of air`. */
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
}

/** Statuses after which another attempt may succeed. */
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

/**
 * Reads a resource of the server.
 * @returns Undefined if it does not exist (404). A 404 because the dataset or variable is gone is a failure.
 * @throws ReadFailure, or the signal's reason
 */
export async function fetchBytes(
  url: string,
  options: FetchOptions,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const { token, what, signal } = options;
  let response: Response;
  try {
    // Bytes, not the URL of another server, which the page's policy would not let in.
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    response = await fetch(url, {
      headers: { prefer: "respond-direct", ...authorization },
      signal: signal ?? null,
    });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    signal?.throwIfAborted();
    throw new ReadFailure(`The server does not answer: ${what} could not be read (${messageOf(cause)}).`, {
      mayRetry: true,
      cause,
    });
  }
  // What the server says of an error; nothing if another one answered.
  const body = (await response.json().catch(() => undefined)) as Record<string, unknown> | undefined;
  signal?.throwIfAborted();
  const [detail, id] = [body?.detail, body?.id].map((text) => (typeof text === "string" ? text : undefined));
  if (response.status === 404) {
    if (!/^(?:Dataset|Group|Variable) /.test(detail ?? "")) return undefined;
    throw new ReadFailure(`${sentenceCase(what)} no longer exists: ${detail}.`);
  }
  const requestId = response.headers.get("x-request-id") ?? id;
  const reason =
    response.status === 401
      ? "the server asks for a token"
      : `the server answers ${response.status}${detail === undefined ? "" : `, "${detail}"`}`;
  const request = requestId === undefined ? "" : ` (request ${requestId})`;
  throw new ReadFailure(`${sentenceCase(what)} could not be read: ${reason}${request}.`, {
    requestId,
    mayRetry: PASSING.has(response.status),
  });
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
