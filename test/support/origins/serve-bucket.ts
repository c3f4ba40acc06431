import type { IncomingHttpHeaders } from "node:http";
import type { OriginAnswer } from "./serve-object.js";

/** Options of an origin that plays a bucket of S3, whose name comes first in paths. */
export interface BucketOptions {
  readonly bucket: string;
  /** Names in one answer to a listing. Default 1000. */
  readonly pageSize?: number;
  /** False if a key that is not there answers 403 as on AWS, and listings do. Default true. */
  readonly mayList?: boolean;
  /** Returns the code of an error for a signer, such as `ExpiredToken`; undefined if it may read. Default: all may. */
  readonly authorize?: (signer: Signer) => string | undefined;
}

/** Signer of a request, as the request says: signatures are not checked. */
export interface Signer {
  /** Undefined if the request is not signed. */
  readonly accessKeyId: string | undefined;
  readonly sessionToken: string | undefined;
}

/** Statuses of errors, as AWS answers. */
const STATUS: Readonly<Record<string, number>> = {
  AccessDenied: 403,
  ExpiredToken: 400,
  InternalError: 500,
  InvalidAccessKeyId: 403,
  InvalidToken: 400,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  PermanentRedirect: 301,
  RequestTimeTooSkewed: 403,
  SignatureDoesNotMatch: 403,
  SlowDown: 503,
};

/** Answers with an error as S3 does. @param code Such as `NoSuchKey`. */
export function bucketError(code: string): OriginAnswer {
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code><Message>It says ${code}.</Message><RequestId>0A</RequestId></Error>`;
  return {
    status: STATUS[code] ?? 400,
    headers: { "content-type": "application/xml" },
    body: Buffer.from(xml),
  };
}

/** Answers a request that has no answer among the objects: errors and listings; undefined if it is for an object. */
export function serveBucket(
  options: BucketOptions,
  keys: () => Iterable<string>,
  url: URL,
  headers: IncomingHttpHeaders,
): OriginAnswer | undefined {
  const [, bucket, key] = /^\/([^/]*)\/?(.*)$/s.exec(url.pathname) ?? [];
  if (bucket !== options.bucket) return bucketError("NoSuchBucket");
  const code = options.authorize?.(signerOf(url, headers));
  if (code !== undefined) return bucketError(code);
  if (key !== "" || url.searchParams.get("list-type") !== "2") return undefined;
  if (options.mayList === false) return bucketError("AccessDenied");
  return list([...keys()], url.searchParams, options.pageSize ?? 1000);
}

function signerOf(url: URL, headers: IncomingHttpHeaders): Signer {
  const inHeader = /Credential=([^/]+)\//.exec(headers.authorization ?? "")?.[1];
  const query = url.searchParams;
  return {
    accessKeyId: inHeader ?? query.get("X-Amz-Credential")?.split("/")[0],
    sessionToken:
      (headers["x-amz-security-token"] as string | undefined) ??
      query.get("X-Amz-Security-Token") ??
      undefined,
  };
}

function list(keys: readonly string[], query: URLSearchParams, pageSize: number): OriginAnswer {
  const prefix = query.get("prefix") ?? "";
  const delimiter = query.get("delimiter") ?? "";
  const names = new Set<string>();
  for (const key of keys) {
    if (!key.startsWith(prefix)) continue;
    const end = delimiter === "" ? -1 : key.indexOf(delimiter, prefix.length);
    names.add(end < 0 ? key : key.slice(0, end + delimiter.length));
  }
  const token = query.get("continuation-token");
  const after = token === null ? "" : Buffer.from(token, "base64").toString();
  const left = [...names].sort(compareBytes).filter((name) => after === "" || compareBytes(name, after) > 0);
  const page = left.slice(0, Math.min(pageSize, Number(query.get("max-keys") ?? 1000)));
  const isTruncated = page.length < left.length;
  const isEncoded = query.get("encoding-type") === "url";
  const text = (name: string) => (isEncoded ? encode(name) : escapeXml(name));
  const isObject = new Set(keys);
  const parts = [
    `<Prefix>${text(prefix)}</Prefix><KeyCount>${page.length}</KeyCount>`,
    isEncoded ? "<EncodingType>url</EncodingType>" : "",
    `<IsTruncated>${isTruncated}</IsTruncated>`,
    isTruncated
      ? `<NextContinuationToken>${Buffer.from(page.at(-1) ?? "").toString("base64")}</NextContinuationToken>`
      : "",
    ...page.map((name) =>
      isObject.has(name)
        ? `<Contents><Key>${text(name)}</Key><ETag>&quot;0&quot;</ETag></Contents>`
        : `<CommonPrefixes><Prefix>${text(name)}</Prefix></CommonPrefixes>`,
    ),
  ];
  const xml = `<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${parts.join("")}</ListBucketResult>`;
  return { status: 200, headers: { "content-type": "application/xml" }, body: Buffer.from(xml) };
}

function compareBytes(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** Encodes a name as AWS does, with a plus for a space. */
function encode(name: string): string {
  return escapeXml(encodeURIComponent(name).replaceAll("%20", "+").replaceAll("%2F", "/"));
}

function escapeXml(name: string): string {
  return name.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll("'", "&apos;");
}
