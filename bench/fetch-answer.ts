/** One answer, whole. */
export interface FetchedAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
}

/** Asks as the load does: without compression, following nothing. */
export async function fetchAnswer(
  baseUrl: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<FetchedAnswer> {
  const response = await fetch(baseUrl + path, {
    headers: { "accept-encoding": "identity", ...headers },
    redirect: "manual",
  });
  return {
    status: response.status,
    headers: response.headers,
    body: Buffer.from(await response.arrayBuffer()),
  };
}

/** The body of a 200. @throws Error for another status. */
export async function fetchBody(baseUrl: string, path: string): Promise<Buffer> {
  const { status, body } = await fetchAnswer(baseUrl, path);
  if (status !== 200)
    throw new Error(`${path}: expected status 200, received ${status}: ${body.subarray(0, 300)}`);
  return body;
}
