import { messageOf } from "../../errors.js";
import type { ExploreAnswer, FailedAnswer, WorkerRequest } from "../protocol.js";

/** The part of a `Worker` that the page uses. */
export interface WorkerPort {
  postMessage(message: WorkerRequest): void;
  addEventListener(type: "message", listener: (event: { readonly data: ExploreAnswer }) => void): void;
  addEventListener(type: "error", listener: (event: { readonly message: string }) => void): void;
}

/** Kinds of the answers to each kind of request, failures aside, unless it has the request's own kind. */
interface AnswerKinds {
  readonly open: "opened";
  readonly show: "frame" | "too-much";
  readonly ahead: "cached";
  readonly probe: "value";
  readonly series: "series" | "too-much";
}

type RequestKind = Exclude<WorkerRequest["kind"], "cancel">;

/** A request before it has its number. */
export type RequestOf<K extends RequestKind> = Omit<Extract<WorkerRequest, { kind: K }>, "id">;

/** An answer to a request of this kind, unless it failed. */
export type AnswerOf<K extends RequestKind> = Extract<
  ExploreAnswer,
  { kind: K extends keyof AnswerKinds ? AnswerKinds[K] : K }
>;

/** A failure that the worker reported. The message is a sentence for people. */
export class ReadError extends Error {
  readonly answer: FailedAnswer;

  constructor(answer: FailedAnswer) {
    super(answer.sentence);
    this.answer = answer;
  }
}

/** Returns a failure as the worker reports it. */
export function failureOf(error: unknown): FailedAnswer {
  if (error instanceof ReadError) return error.answer;
  return { kind: "failed", sentence: messageOf(error), requestId: undefined, mayRetry: false };
}

interface Pending {
  readonly kind: RequestKind;
  readonly listener: (answer: ExploreAnswer) => void;
}

/** Kinds of which each request ends the one before, as the worker does on its side. */
const SINGLE: ReadonlySet<RequestKind> = new Set(["show", "ahead"]);

/** Sends requests to the worker and hands each answer to the request that it belongs to. */
export class WorkerClient {
  readonly #port: WorkerPort;
  readonly #pending = new Map<number, Pending>();
  #count = 0;

  constructor(port: WorkerPort) {
    this.#port = port;
    port.addEventListener("message", ({ data }) => this.#receive(data));
    port.addEventListener("error", ({ message }) => this.#failAll(message));
  }

  /** Sends a request whose answers are all wanted. Returns a function that cancels it. */
  send<K extends RequestKind>(
    request: RequestOf<K>,
    listener: (answer: AnswerOf<K> | FailedAnswer) => void,
  ): () => void {
    const id = ++this.#count;
    const kind = request.kind as K;
    if (SINGLE.has(kind)) {
      for (const [other, pending] of this.#pending) if (pending.kind === kind) this.#pending.delete(other);
    }
    this.#pending.set(id, { kind, listener: listener as Pending["listener"] });
    this.#port.postMessage({ id, ...request } as unknown as WorkerRequest);
    return () => {
      if (this.#pending.delete(id))
        this.#port.postMessage({ id: ++this.#count, kind: "cancel", request: id });
    };
  }

  /** Sends a request that has one answer. @throws ReadError if it failed. */
  ask<K extends Exclude<RequestKind, "show" | "series" | "ahead">>(
    request: RequestOf<K>,
  ): Promise<AnswerOf<K>> {
    return new Promise((resolve, reject) => {
      this.send<K>(request, (answer) => {
        if (answer.kind === "failed") reject(new ReadError(answer as FailedAnswer));
        else resolve(answer as AnswerOf<K>);
      });
    });
  }

  #receive(answer: ExploreAnswer): void {
    const pending = this.#pending.get(answer.id);
    if (pending === undefined) return;
    if (isLast(answer)) this.#pending.delete(answer.id);
    pending.listener(answer);
  }

  #failAll(message: string): void {
    const all = [...this.#pending];
    this.#pending.clear();
    const sentence = `The part of this page that reads data has stopped (${message}). Reload the page.`;
    for (const [id, { listener }] of all) {
      listener({ id, kind: "failed", sentence, requestId: undefined, mayRetry: false });
    }
  }
}

function isLast(answer: ExploreAnswer): boolean {
  if (answer.kind === "frame" || answer.kind === "series") return answer.done === answer.total;
  // A later answer may tell of more steps; the next request ends this one.
  return answer.kind !== "cached";
}
