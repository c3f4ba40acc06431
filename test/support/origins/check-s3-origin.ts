import type { Test } from "tap";
import { type Credentials, encodeKey, presignUrl, signRequest } from "../../../src/stores/aws-requests.js";
import { errorCodeOf, listingQuery, parseListing } from "../../../src/stores/s3-store.js";

/** Keys whose encoding is easy to get wrong. */
export const ODD_KEYS = [
  "a",
  "a+b",
  "a b",
  "é",
  "a#b?c=d&e",
  "~a-b_c.d",
  "a%2Bb",
  "!'()*$&,;=:@",
  "日本/🌍",
  "a//b",
  "c.zarr/t2m/0.0",
  "c.zarr/t2m/.zarray",
  "c.zarr/.zgroup",
  '<a>"',
];

/**
 * Reads what is in a bucket as sources do: objects by signed requests and by presigned URLs, and listings.
 * @param credentials Undefined: nothing is signed.
 * @param pageSize Names in one answer to a listing.
 */
export async function checkS3Origin(
  t: Test,
  endpoint: string,
  bucket: string,
  credentials: Credentials | undefined,
  pageSize = 1000,
): Promise<void> {
  const region = "us-east-1";
  async function ask(path: string, headers: Record<string, string> = {}) {
    const url = new URL(`${endpoint}/${bucket}/${path}`);
    const added =
      credentials === undefined
        ? {}
        : signRequest({ method: "GET", url, headers, credentials, region, now: new Date() });
    const response = await fetch(url, { headers: { ...headers, ...added } });
    return { status: response.status, headers: response.headers, text: await response.text() };
  }

  for (const key of ODD_KEYS) {
    const { status, text } = await ask(encodeKey(key));
    t.same([status, text], [200, key], key);
    if (credentials === undefined) continue;
    const url = new URL(`${endpoint}/${bucket}/${encodeKey(key)}`);
    const response = await fetch(presignUrl({ url, credentials, region, seconds: 60, now: new Date() }));
    t.same([response.status, await response.text()], [200, key], `presigned: ${key}`);
  }

  const found: string[] = [];
  async function list(prefix: string): Promise<void> {
    let token: string | undefined;
    do {
      const { text } = await ask(`?${listingQuery(prefix, token)}&max-keys=${pageSize}`);
      const page = parseListing(text);
      found.push(...page.objects);
      for (const inner of page.prefixes) await list(inner);
      token = page.continuationToken;
    } while (token !== undefined);
  }
  await list("");
  t.same(found.sort(), [...ODD_KEYS].sort());

  const whole = await ask(encodeKey("日本/🌍"));
  const etag = whole.headers.get("etag") ?? "";
  t.match(etag, /^".+"$/);
  const part = await ask(encodeKey("日本/🌍"), { range: "bytes=-4", "if-match": etag });
  t.same([part.status, part.headers.get("content-range"), part.text], [206, "bytes 7-10/11", "🌍"]);
  t.equal((await ask(encodeKey("日本/🌍"), { range: "bytes=0-1", "if-match": '"x"' })).status, 412);
  t.equal((await ask(encodeKey("日本/🌍"), { "if-none-match": etag })).status, 304);
  t.equal((await ask(encodeKey("日本/🌍"), { range: "bytes=11-" })).status, 416);
  const absent = await ask("absent");
  t.same([absent.status, errorCodeOf(absent.text)], [404, "NoSuchKey"]);
}
