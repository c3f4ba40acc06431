import fc from "fast-check";
import t, { type Test } from "tap";
import type { ZpublishError } from "../../src/errors.js";
import type { ByteStore, StoreSettings } from "../../src/stores/byte-store.js";
import { setSourceTimeout } from "../../src/stores/file-calls.js";
import { openByteStore } from "../../src/stores/open-byte-store.js";
import { errorCodeOf, parseListing } from "../../src/stores/s3-store.js";
import { effort } from "../support/effort.js";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";
import type { BucketOptions } from "../support/origins/serve-bucket.js";
import { processorMs } from "../support/processor-time.js";

setSourceTimeout(20_000);

const OBJECTS = { "x/a": "bytes of a", "x/below/b": "b", "x/below/c/d": "d", "x/zoo/e": "e", "xy/f": "f" };
const VARIABLES = {
  accessKeyId: { env: "ZP_TEST_KEY" },
  secretAccessKey: { env: "ZP_TEST_SECRET" },
  sessionToken: { env: "ZP_TEST_SESSION" },
};

function setVariables(t: Test, variables: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(variables)) process.env[name] = value;
  t.teardown(() => {
    for (const name of Object.keys(variables)) delete process.env[name];
  });
}

async function open(
  t: Test,
  bucket: Partial<BucketOptions> = {},
  settings: Partial<StoreSettings> = { anonymous: true },
): Promise<[FaultyOrigin, ByteStore]> {
  const origin = await startFaultyOrigin(t, { objects: OBJECTS, s3: { bucket: "data", ...bucket } });
  const store = openByteStore("s3://data/x", [
    { name: "s", url: "s3://data/x", endpoint: origin.url, ...settings },
  ]);
  return [origin, store];
}

/** Sends one request of each kind. @returns What came, or the code of the error. */
async function askAll(store: ByteStore, key: string): Promise<string[]> {
  const asked = [() => store.read(key), () => store.read(key, { range: { last: 1 } }), () => store.stat(key)];
  const answers = asked.map(async (ask) => {
    try {
      return (await ask()) === undefined ? "absent" : "found";
    } catch (error) {
      return (error as ZpublishError).code;
    }
  });
  return [...new Set(await Promise.all(answers))];
}

t.test("lists names below a prefix, in pages", async (t) => {
  const [origin, store] = await open(t, { pageSize: 1 });
  t.same(await store.list?.(""), { objects: ["a"], prefixes: ["below", "zoo"] });
  t.same(await store.list?.("below/"), { objects: ["b"], prefixes: ["c"] });
  t.same(await store.list?.("none/"), { objects: [], prefixes: [] });
  t.ok(origin.requests.every(({ query }) => query.get("delimiter") === "/"));
});

t.test("a listing that fails is no empty one", async (t) => {
  const [origin, store] = await open(t, { pageSize: 1 });
  const faults = [
    { code: "AccessDenied" },
    { code: "NoSuchBucket" },
    { code: "NoSuchKey" },
    { status: 404 },
    { html: true },
    { cutAfter: 100 },
    { lengthError: 10 },
    { redirect: "https://elsewhere/" },
    { gzip: true },
  ] as const;
  for (const fault of faults) {
    // The second page.
    origin.setFault(({ query }) => (query.has("continuation-token") ? fault : undefined));
    await t.rejects(async () => store.list?.(""), { code: "source-unreadable" }, JSON.stringify(fault));
  }
  origin.setFault(({ before }) => (before % 2 === 0 ? { code: "SlowDown" } : undefined));
  t.same(await store.list?.(""), { objects: ["a"], prefixes: ["below", "zoo"] }, "it is tried again");
});

t.test("a missing bucket is no missing object", async (t) => {
  const [origin, store] = await open(t);
  t.same(await askAll(store, "a"), ["found"]);
  t.same(await askAll(store, "none"), ["absent"]);
  const [, elsewhere] = await open(t, { bucket: "other" });
  t.same(await askAll(elsewhere, "a"), ["source-unreadable"]);
  await t.rejects(elsewhere.read("a"), { message: /404 NoSuchBucket/ });
  origin.setFault(() => ({ html: true, status: 404 }));
  t.same(await askAll(store, "a"), ["absent"], "another server that knows no codes");
});

t.test("a refusal is an absence if the operator says so, and only that of one object", async (t) => {
  const [, strict] = await open(t, { mayList: false });
  t.same(await askAll(strict, "none"), ["source-unreadable"]);
  const lax = { anonymous: true, missing: "404+403" } as const;
  const [origin, store] = await open(t, { mayList: false }, lax);
  t.same(await askAll(store, "none"), ["absent"]);
  t.same(await askAll(store, "a"), ["found"]);
  for (const code of ["InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"]) {
    origin.setFault(() => ({ code }));
    t.same(await askAll(store, "a"), ["source-unreadable"], code);
  }
});

t.test("expired credentials are looked for again once, by many requests together", async (t) => {
  let sound = "new";
  let isIn = 0;
  const authorize: BucketOptions["authorize"] = ({ accessKeyId, sessionToken }) => {
    isIn++;
    if (accessKeyId !== "KEY") return "InvalidAccessKeyId";
    return sessionToken === sound ? undefined : "ExpiredToken";
  };
  const variables = { ZP_TEST_KEY: "KEY", ZP_TEST_SECRET: "s3cr3t", ZP_TEST_SESSION: "old" };
  setVariables(t, variables);
  const [origin, store] = await open(t, { authorize }, { credentials: VARIABLES });
  await t.rejects(store.read("a"), { code: "source-unreadable", message: /ExpiredToken/ });
  t.equal(isIn, 2, "one more attempt, with what the variables say then");
  process.env.ZP_TEST_SESSION = "new";
  t.same(await askAll(store, "a"), ["found"]);
  sound = "newer";
  process.env.ZP_TEST_SESSION = "newer";
  origin.resetCounts();
  const many = await Promise.all(Array.from({ length: 100 }, () => store.read("a")));
  t.equal(many.filter((found) => found?.bytes.length === 10).length, 100);
  t.ok(origin.count() <= 132, `${origin.count()} requests: at most those under way had to be sent again`);
  origin.resetCounts();
  sound = "newest";
  process.env.ZP_TEST_SESSION = "newest";
  t.equal((await store.stat("a"))?.byteLength, 10, "HEAD, whose answer does not say what is wrong, too");
  t.same(await askAll(store, "none"), ["absent"]);
});

t.test("credentials get into no message, and another account's are not taken", async (t) => {
  const authorize: BucketOptions["authorize"] = ({ accessKeyId }) =>
    accessKeyId === "KEY" ? undefined : "InvalidAccessKeyId";
  setVariables(t, { ZP_TEST_KEY: "WRONGKEY", ZP_TEST_SECRET: "s3cr3t", AWS_ACCESS_KEY_ID: "KEY" });
  const credentials = { accessKeyId: VARIABLES.accessKeyId, secretAccessKey: VARIABLES.secretAccessKey };
  const [origin, store] = await open(t, { authorize }, { credentials });
  const error = (await store.read("a").catch((error: unknown) => error)) as ZpublishError;
  t.match(error.message, "403 InvalidAccessKeyId");
  const { location, identity } = store;
  t.notMatch(JSON.stringify([error.message, error.details, location, identity]), /s3cr3t|WRONGKEY/);
  t.equal(origin.count(), 1, "it is no failure that passes");
  delete process.env.ZP_TEST_SECRET;
  const [, other] = await open(t, { authorize }, { credentials });
  await t.rejects(other.read("a"), { code: "source-unreadable", message: /ZP_TEST_SECRET/ });
});

t.test("buckets are in the path or in the host, and a payer is named", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: OBJECTS, s3: { bucket: "data" } });
  const settings = { name: "s", url: "s3://data/", anonymous: true, requesterPays: true };
  setVariables(t, { AWS_ENDPOINT_URL: origin.url, AWS_ENDPOINT_URL_S3: "" });
  t.equal((await openByteStore("s3://data/x/", [settings]).read("a"))?.bytes.length, 10);
  t.match(origin.requests[0], { path: "/data/x/a", headers: { "x-amz-request-payer": "requester" } });
  t.equal(openByteStore("s3://data/x/", [settings]).location, "s3://data/x/");
  for (const endpoint of ["not a URL", "ftp://host", "https://user:s3cr3t@:99999/"]) {
    try {
      openByteStore("s3://data/", [{ ...settings, endpoint }]);
      t.fail(`expected an error for ${endpoint}`);
    } catch (error) {
      t.match(error, { code: "invalid-config", message: /^expected / });
      t.notMatch((error as Error).message, "s3cr3t");
    }
  }
});

/** As AWS answers, except for ids. */
const AWS = `<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>example</Name><Prefix>air+1.zarr/</Prefix><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken><KeyCount>4</KeyCount><MaxKeys>1000</MaxKeys><Delimiter>/</Delimiter><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated><Contents><Key>air+1.zarr/.zgroup</Key><LastModified>2026-01-02T03:04:05.000Z</LastModified><ETag>&quot;599bab3ed2c697f1d26842727561fd94&quot;</ETag><Size>24</Size><StorageClass>STANDARD</StorageClass></Contents><Contents><Key>air+1.zarr/a%2Bb+c%C3%A9</Key><Size>0</Size><Owner><ID>75aa</ID><DisplayName>a</DisplayName></Owner></Contents><CommonPrefixes><Prefix>air+1.zarr/t2m/</Prefix></CommonPrefixes><CommonPrefixes><Prefix>air+1.zarr/%F0%9F%8C%8D%25/</Prefix></CommonPrefixes></ListBucketResult>`;

const EMPTY =
  '<?xml version="1.0"?><ListBucketResult><Name>b</Name><Prefix/><IsTruncated>false</IsTruncated></ListBucketResult>';

const unreadable = { code: "source-unreadable" };

t.test("reads an answer of AWS, and decodes its keys", async (t) => {
  t.strictSame(parseListing(AWS), {
    objects: ["air 1.zarr/.zgroup", "air 1.zarr/a+b cé"],
    prefixes: ["air 1.zarr/t2m/", "air 1.zarr/🌍%/"],
    continuationToken: "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=",
  });
});

t.test("reads an empty listing, and one whose keys are not percent-encoded", async (t) => {
  t.strictSame(parseListing(EMPTY), { objects: [], prefixes: [] });
  const plain = `\ufeff<?xml version="1.0"?>
    <ListBucketResult>
    <Contents><Key>a+b%20&amp;&lt;&#233;&#x1F30D;</Key></Contents>
    <CommonPrefixes><Prefix>&lt;c>/</Prefix></CommonPrefixes>
    <IsTruncated>false</IsTruncated>
  </ListBucketResult>
`;
  t.strictSame(parseListing(plain), { objects: ["a+b%20&<é🌍"], prefixes: ["<c>/"] });
});

t.test("reads back any keys", async (t) => {
  const keys = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 12 }));
  const encode = (key: string) => encodeURIComponent(key).replaceAll("%20", "+").replaceAll("'", "&#39;");
  const listing = fc.property(keys, keys, (objects, prefixes) => {
    const entries = [
      ...objects.map((key) => `<Contents><Key>${encode(key)}</Key></Contents>`),
      ...prefixes.map((key) => `<CommonPrefixes><Prefix>${encode(key)}</Prefix></CommonPrefixes>`),
      "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>",
    ];
    const parsed = parseListing(`<ListBucketResult>${entries.join("")}</ListBucketResult>`);
    return JSON.stringify(parsed) === JSON.stringify({ objects, prefixes });
  });
  t.doesNotThrow(() => fc.assert(listing, { numRuns: effort(1000) }));
});

t.test("takes nothing else for a listing", async (t) => {
  const noListing = "text that is no such document, or not whole";
  const others = {
    "": noListing,
    "<html><body>Sign in</body></html>": noListing,
    '{"objects": []}': noListing,
    "<Error><Code>NoSuchBucket</Code></Error>": noListing,
    "<ListBucketResult/>": noListing,
    "<ListBucketResult></ListBucketResult>": "without IsTruncated",
    [EMPTY + EMPTY.slice(21)]: "more than one IsTruncated",
    [`${EMPTY}x`]: noListing,
    [EMPTY.replace("false", "maybe")]: 'IsTruncated "maybe"',
    [EMPTY.replace("false", "true")]: "without NextContinuationToken",
    [EMPTY.replace("<Prefix/>", "<Contents><Key/></Contents>")]: "without Key",
    [EMPTY.replace("<Prefix/>", "<Contents><Key>a</Contents>")]: "<Key> without its end",
    [EMPTY.replace("<Prefix/>", "<Contents><Key>a<b/></Key></Contents>")]: "markup",
    [EMPTY.replace("<Prefix/>", "<Contents><Key>&nbsp;</Key></Contents>")]: 'the reference "&nbsp;"',
    [EMPTY.replace("<Prefix/>", "<Contents><Key>&#x110000;</Key></Contents>")]: "the reference",
    [EMPTY.replace("<Prefix/>", "<IsTruncated>true</IsTruncated>")]: "more than one IsTruncated",
    [AWS.replace("%2B", "%2-")]: 'no percent-encoded UTF-8: "air+1.zarr/a%2-b+c%C3%A9"',
    [AWS.replace("%2B", "%ff")]: "no percent-encoded UTF-8",
  };
  for (const [text, received] of Object.entries(others)) {
    t.throws(() => parseListing(text), { ...unreadable, message: received }, text.slice(0, 60));
  }
});

t.test("takes no listing that is cut short for a whole one", async (t) => {
  for (let end = 0; end < AWS.length; end++)
    t.throws(() => parseListing(AWS.slice(0, end)), unreadable, `${end} characters`);
});

t.test("reads text that is meant to be slow in time that grows with its length alone", async (t) => {
  const length = 300_000;
  const texts = ["<Contents>", "<Contents><Key>", "<?xml ", "&", " "].map((part) => part.repeat(length));
  const start = processorMs();
  for (const text of texts)
    t.throws(() => parseListing(`<ListBucketResult>${text}</ListBucketResult>`), unreadable);
  t.ok(processorMs() - start < 5000);
});

t.test("finds the code of an S3 error, and none elsewhere", async (t) => {
  const error =
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>&quot;</Message></Error>';
  t.equal(errorCodeOf(error), "NoSuchKey");
  const others = [
    "",
    "<html><Code>NoSuchKey</Code></html>",
    "<Error><Code>No such\nkey</Code></Error>",
    EMPTY,
  ];
  for (const other of others) t.equal(errorCodeOf(other), undefined);
});
