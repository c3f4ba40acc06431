import type { Log } from "../../observe/log.js";
import type { HeaderLines } from "../headers/header-field.js";
import type { RequestHead } from "../request-head.js";

/** A request that a log line is about. */
export interface NamedRequest {
  readonly id: string;
  /** Whether a proxy or the client sent the id. */
  readonly isNamed: boolean;
  readonly methodLabel: string;
  readonly head: Pick<RequestHead, "path" | "traceParent">;
}

/** A request that is over, as the access log shows it. */
export interface LoggedRequest extends NamedRequest {
  /** Status line; empty if the answer never began. */
  readonly status: string;
  readonly isWhole: boolean;
  readonly byteLength: number;
  /** Milliseconds since process start. */
  readonly beganMs: number;
  readonly counts: { readonly route: string };
  readonly forwarded: { readonly client: string };
  readonly bodyHeaders: HeaderLines | undefined;
  readonly context: { readonly log: Log };
}

/** Hexadecimal digits of a trace id that are random (W3C Trace Context, level 2), and of how many values. */
const RANDOM_DIGITS = 14;
const RANDOM_VALUES = 2 ** 56;

/** Logs a request that is over. @param nowMs Milliseconds since process start. */
export function logRequest(exchange: LoggedRequest, nowMs: number): void {
  const { status, isWhole, context } = exchange;
  const cache = exchange.bodyHeaders?.find(([name]) => name === "X-Cache")?.[1];
  context.log.info(
    {
      ...requestFields(exchange),
      status: status === "" ? 499 : Number(status.slice(0, 3)),
      bytes: isWhole ? exchange.byteLength : undefined,
      durationMs: roundMs(nowMs - exchange.beganMs),
      route: exchange.counts.route,
      client: exchange.forwarded.client,
      cache,
      isWhole: isWhole ? undefined : false,
    },
    "request",
  );
}

/** Returns the fields of every log line about a request. The path is without its query, which may contain a token. */
export function requestFields(exchange: NamedRequest): Readonly<Record<string, string | undefined>> {
  const { traceParent } = exchange.head;
  return {
    id: exchange.id,
    trace_id: traceParent?.traceId,
    parent_span_id: traceParent?.parentId,
    method: exchange.methodLabel,
    path: exchange.head.path,
  };
}

/** Whether a request is one of the share that is logged. It depends on its trace if it has one: all servers on its way log the same. */
export function isLogged(exchange: NamedRequest, share: number): boolean {
  if (share >= 1) return true;
  const { traceParent } = exchange.head;
  if (traceParent !== undefined) {
    // As OpenTelemetry samples: those whose random part is large.
    return Number.parseInt(traceParent.traceId.slice(-RANDOM_DIGITS), 16) >= (1 - share) * RANDOM_VALUES;
  }
  return Math.random() < share;
}

function roundMs(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
