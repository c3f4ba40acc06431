import type { Log } from "../observe/log.js";
import type { HeaderLines } from "./headers.js";
import type { Route } from "./router.js";

/** A request that a log line is about. */
export interface NamedRequest {
  readonly id: string;
  /** Whether a proxy or the client sent the id. */
  readonly isNamed: boolean;
  readonly methodLabel: string;
  readonly head: { readonly path: string; readonly traceParent: TraceParent | undefined };
}

/** A request that is over, as the access log shows it. */
interface LoggedRequest extends NamedRequest {
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

/** Position of a request in a distributed trace. */
export interface TraceParent {
  /** 32 hexadecimal digits, lower case. */
  readonly traceId: string;
  /** Id of the caller's span, 16 hexadecimal digits. */
  readonly parentId: string;
}

/** Version, trace id, parent id, flags, and what later versions may put behind them. */
const FORMAT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const MAX_LENGTH = 512;

/**
 * Parses a `traceparent` header (W3C Trace Context, level 1, §3.2): version 00 strictly, later ones as far as they agree with it.
 * @returns undefined if the header is not valid, and so is to be ignored.
 */
export function parseTraceParent(header: string): TraceParent | undefined {
  if (header.length > MAX_LENGTH) return undefined;
  const match = FORMAT.exec(header);
  if (match === null) return undefined;
  const [, version = "", traceId = "", parentId = "", , rest] = match;
  if (version === "ff" || (version === "00" && rest !== undefined)) return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined;
  return { traceId, parentId };
}

/** Time in which only so many lines are logged. */
const PERIOD_MS = 10_000;
/** Lines of one period. A line with its stack has some kilobytes. */
const MAX_LINES = 100;

/** Log of requests that failed. A client that asks for a broken dataset again and again must not fill the disk. */
export interface FailureLog {
  /** Logs a failure, with its stack among the fields. Of those beyond the bound of a period, only the number is logged, when it ends. */
  note(level: "error" | "warn", fields: object, message: string): void;
}

/** Creates a log of failures without entries. @param periodMs Default: 10 s. */
export function createFailureLog(log: Log, periodMs = PERIOD_MS): FailureLog {
  let lines = 0;
  let further = 0;
  let last = "";
  let timer: NodeJS.Timeout | undefined;

  function endPeriod(): void {
    timer = undefined;
    if (further > 0) log.error({ failed: further }, `further requests failed, the last one: ${last}`);
    lines = 0;
    further = 0;
  }

  return {
    note(level, fields, message) {
      if (timer === undefined) timer = setTimeout(endPeriod, periodMs).unref();
      if (++lines <= MAX_LINES) {
        log[level](fields, message);
        return;
      }
      further++;
      last = message;
    },
  };
}

/** Shortest time between two log lines about rejected requests. */
const EVERY_MS = 1_000;

/** Counts rejected requests and logs them, at most one line a second: a flood of requests must not fill the log. */
export interface RejectionLog {
  readonly counts: Readonly<Record<Route["priority"], number>>;
  /** Counts a rejected request. @param reason Text for the log. @param priority Priority of its route. */
  note(reason: string, priority: Route["priority"]): void;
}

/** Creates a log of rejections without entries. */
export function createRejectionLog(log: Log): RejectionLog {
  const counts = { page: 0, chunk: 0 };
  /** Since the last line. */
  let count = 0;
  let reason = "";
  let timer: NodeJS.Timeout | undefined;

  function tell(): void {
    timer = undefined;
    if (count === 0) return;
    log.warn({ code: "overloaded", rejected: count }, `requests rejected: ${reason}`);
    count = 0;
    timer = setTimeout(tell, EVERY_MS).unref();
  }

  return {
    counts,
    note(why, priority) {
      counts[priority] += 1;
      count += 1;
      reason = why;
      // The first at once.
      if (timer === undefined) tell();
    },
  };
}
