import { messageOf } from "../../errors.js";

/** A failure that the page shows as a sentence. Absence is none. */
export class ReadFailure extends Error {
  override readonly name = "ReadFailure";
  /** Id of the failed request in the server's log; undefined if it sent none. */
  readonly requestId: string | undefined;
  /** Whether another attempt may succeed. */
  readonly mayRetry: boolean;

  constructor(
    sentence: string,
    options: {
      readonly requestId?: string | undefined;
      readonly mayRetry?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(sentence, { cause: options.cause });
    this.requestId = options.requestId;
    this.mayRetry = options.mayRetry ?? false;
  }
}

/** What a request needs besides its URL. */
export interface FetchOptions {
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
    const headers: Record<string, string> = { prefer: "respond-direct" };
    if (token !== undefined) headers.authorization = `Bearer ${token}`;
    response = await fetch(url, { headers, ...(signal === undefined ? {} : { signal }) });
    if (response.ok) return new Uint8Array(await response.arrayBuffer());
  } catch (cause) {
    signal?.throwIfAborted();
    throw new ReadFailure(`The server does not answer: ${what} could not be read (${messageOf(cause)}).`, {
      mayRetry: true,
      cause,
    });
  }
  const answer = await detailOf(response);
  signal?.throwIfAborted();
  if (response.status === 404) {
    const gone = /^(?:Dataset|Group|Variable) /.test(answer.detail ?? "");
    if (!gone) return undefined;
    throw new ReadFailure(`${sentenceCase(what)} is not there any more: ${answer.detail}.`);
  }
  const requestId = response.headers.get("x-request-id") ?? answer.id;
  const reason =
    response.status === 401
      ? "the server asks for a token"
      : `the server answers ${response.status}${answer.detail === undefined ? "" : `, "${answer.detail}"`}`;
  const request = requestId === undefined ? "" : ` (request ${requestId})`;
  throw new ReadFailure(`${sentenceCase(what)} could not be read: ${reason}${request}.`, {
    requestId,
    mayRetry: PASSING.has(response.status),
  });
}

/** Reads what the server says of an error; nothing if another one answered. */
async function detailOf(response: Response): Promise<{ detail?: string; id?: string }> {
  try {
    const body: unknown = await response.json();
    if (typeof body !== "object" || body === null) return {};
    const { detail, id } = body as { detail?: unknown; id?: unknown };
    return {
      ...(typeof detail === "string" ? { detail } : {}),
      ...(typeof id === "string" ? { id } : {}),
    };
  } catch {
    return {};
  }
}

function sentenceCase(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
