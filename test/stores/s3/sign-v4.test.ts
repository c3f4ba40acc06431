import { deepStrictEqual } from "node:assert/strict";
import { createHash, createHmac } from "node:crypto";
import { SignatureV4 } from "@smithy/signature-v4";
import fc from "fast-check";
import t from "tap";
import { encodeKey, presignUrl, signRequest } from "../../../src/stores/aws-signature.js";
import { effort } from "../../effort.js";

/** A hash as smithy wants it. */
class Sha256 {
  readonly #hash;
  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#hash = secret === undefined ? createHash("sha256") : createHmac("sha256", secret as string);
  }
  update(data: Uint8Array | string): void {
    this.#hash.update(data);
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {}
}

interface Case {
  readonly method: "GET" | "HEAD";
  readonly host: string;
  readonly key: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly region: string;
  readonly now: Date;
  readonly sessionToken: string | undefined;
}

const SAMPLE: Case = {
  method: "GET",
  host: "bucket.s3.eu-central-1.amazonaws.com",
  key: "air.zarr/t2m/0.0.0",
  query: {},
  headers: {},
  region: "eu-central-1",
  now: new Date("2026-01-02T03:04:05.678Z"),
  sessionToken: undefined,
};

const credentialsOf = ({ sessionToken }: Case) => ({
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  ...(sessionToken === undefined ? {} : { sessionToken }),
});

function urlOf({ host, key, query }: Case): URL {
  const encoded = Object.entries(query).map(([name, value]) =>
    [name, value].map(encodeURIComponent).join("="),
  );
  return new URL(`https://${host}/${encodeKey(key)}${encoded.length === 0 ? "" : "?"}${encoded.join("&")}`);
}

/** The same by smithy, which encodes paths of S3 no second time if told so. */
function smithy(sample: Case) {
  const url = urlOf(sample);
  const signer = new SignatureV4({
    service: "s3",
    region: sample.region,
    credentials: credentialsOf(sample),
    sha256: Sha256,
    uriEscapePath: false,
  });
  const request = {
    method: sample.method,
    protocol: "https:",
    hostname: url.hostname,
    path: url.pathname,
    query: { ...sample.query },
    headers: { ...sample.headers, host: url.host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD" },
  };
  return { signer, request };
}

async function checkHeaders(sample: Case): Promise<void> {
  const { signer, request } = smithy(sample);
  const unsignableHeaders = new Set(Object.keys(sample.headers).filter((name) => !/^x-amz-/i.test(name)));
  const expected = await signer.sign(request, { signingDate: sample.now, unsignableHeaders });
  const added = signRequest({ ...sample, url: urlOf(sample), credentials: credentialsOf(sample) });
  const sent = { ...sample.headers, host: urlOf(sample).host, ...added };
  deepStrictEqual(sent, expected.headers);
}

async function checkUrl(sample: Case, seconds: number): Promise<void> {
  const { signer, request } = smithy({ ...sample, method: "GET", headers: {} });
  const unsigned = new Set(["x-amz-content-sha256"]);
  const expected = await signer.presign(
    { ...request, method: "GET" },
    {
      signingDate: sample.now,
      expiresIn: seconds,
      unhoistableHeaders: unsigned,
      unsignableHeaders: unsigned,
    },
  );
  const url = new URL(
    presignUrl({ ...sample, url: urlOf(sample), credentials: credentialsOf(sample), seconds }),
  );
  deepStrictEqual(Object.fromEntries(url.searchParams), expected.query);
  deepStrictEqual(url.href.split("?")[0], urlOf(sample).href.split("?")[0]);
}

const KEYS = [
  "",
  "a",
  "a+b",
  "a b",
  "é",
  "e\u0301",
  "a#b",
  "a?b=c&d",
  "~a-b_c.d",
  "a%2Bb",
  "a%",
  "a//b",
  "a/",
  "!'()*",
  '$&,;=:@[]{}|\\^`"<>',
  "日本/🌍",
  "...",
  "..a",
  "\t\u0001\u007f",
];

t.test("signs each key as smithy does, in headers and in a URL", async (t) => {
  for (const key of KEYS) {
    await t.resolves(checkHeaders({ ...SAMPLE, key }), key);
    await t.resolves(checkUrl({ ...SAMPLE, key }, 60), key);
  }
});

t.test("signs queries, headers, tokens and hosts as smithy does", async (t) => {
  const samples: Partial<Case>[] = [
    { query: { "list-type": "2", delimiter: "/", prefix: "a b/é+~*", "continuation-token": "1/x==" } },
    { query: { b: "2", a: "", B: "1", "a-": "3", é: "ü" } },
    { headers: { "x-amz-request-payer": "requester", range: "bytes=0-3", "if-match": '"a"' } },
    { sessionToken: "FwoGZXIvYXdzE+/= token" },
    { method: "HEAD" },
    { host: "127.0.0.1:9000" },
    { host: "[::1]:9000" },
    { host: "example.org:443" },
  ];
  for (const sample of samples) {
    const name = JSON.stringify(sample);
    await t.resolves(checkHeaders({ ...SAMPLE, ...sample }), name);
    await t.resolves(checkUrl({ ...SAMPLE, ...sample }, 604_800), name);
  }
  // Names of headers have no case, and values no outer space.
  const spaced = { ...SAMPLE, url: urlOf(SAMPLE), credentials: credentialsOf(SAMPLE) };
  t.equal(
    signRequest({ ...spaced, headers: { "X-AMZ-Meta": "  a   b " } }).authorization,
    signRequest({ ...spaced, headers: { "x-amz-meta": "a b" } }).authorization,
  );
});

t.test("signs whatever there may be as smithy does", async (t) => {
  const text = fc.string({ unit: "grapheme", maxLength: 20 });
  const key = text.filter((key) => !key.split("/").some((segment) => segment === "." || segment === ".."));
  const samples = fc.record({
    method: fc.constantFrom("GET" as const, "HEAD" as const),
    host: fc.constantFrom("b.s3.amazonaws.com", "localhost:9000", "[::1]:80"),
    key,
    query: fc.dictionary(
      text.filter((name) => !/^x-amz-|^__proto__$/i.test(name)),
      text,
      { noNullPrototype: true },
    ),
    headers: fc.dictionary(
      fc.stringMatching(/^(x-amz-[a-z]{1,8}|range|if-match)$/),
      fc.stringMatching(/^[!-~]*$/),
      {
        noNullPrototype: true,
      },
    ),
    region: fc.constantFrom("us-east-1", "eu-central-1", "default"),
    now: fc.date({ min: new Date(0), max: new Date("9999-12-31"), noInvalidDate: true }),
    sessionToken: fc.option(fc.base64String({ minLength: 4 }), { nil: undefined }),
  });
  await t.resolves(
    fc.assert(
      fc.asyncProperty(samples, fc.integer({ min: 1, max: 604_800 }), async (sample, seconds) => {
        await checkHeaders(sample);
        await checkUrl(sample, seconds);
      }),
      { numRuns: effort(1000) },
    ),
  );
});

t.test("encodes all but unreserved characters, and URLs do not change that", async (t) => {
  t.equal(encodeKey("a+b c/é#?~%.txt"), "a%2Bb%20c/%C3%A9%23%3F~%25.txt");
  t.equal(encodeKey("!'()*$&,;=:@"), "%21%27%28%29%2A%24%26%2C%3B%3D%3A%40");
  for (const key of KEYS) {
    t.equal(new URL(`http://h/b/${encodeKey(key)}`).pathname, `/b/${encodeKey(key)}`);
    t.equal(decodeURIComponent(encodeKey(key)), key);
  }
});

t.test("refuses keys that URLs resolve or cannot express", async (t) => {
  for (const key of ["..", "a/../b", "./a", "a/.", "a\ud800"]) {
    t.throws(() => encodeKey(key), { code: "unsupported", message: JSON.stringify(key) });
  }
});
