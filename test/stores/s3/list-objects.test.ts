import fc from "fast-check";
import t from "tap";
import { errorCodeOf, listingQuery, parseListing } from "../../../src/stores/s3-store.js";
import { effort } from "../../effort.js";

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
  const plain = `\ufeff<!-- by hand --><s3:ListBucketResult xmlns:s3='x'>
    <s3:Contents ><s3:Key>a+b%20&amp;&lt;&#233;&#x1F30D;</s3:Key></s3:Contents>
    <s3:CommonPrefixes><s3:Prefix><![CDATA[<c>/]]></s3:Prefix></s3:CommonPrefixes>
    <s3:IsTruncated>false</s3:IsTruncated>
  </s3:ListBucketResult>
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
  const others = {
    "": "text that is no whole XML document",
    " ": "text that is no whole XML document",
    "<html><body>Sign in</body></html>": "<html>",
    "<!DOCTYPE html><html><br></html>": "text that is no whole XML document",
    '{"objects": []}': "text that is no whole XML document",
    "<Error><Code>NoSuchBucket</Code></Error>": "<Error>",
    "<ListAllMyBucketsResult/>": "<ListAllMyBucketsResult>",
    "<ListBucketResult/>": "<ListBucketResult> without IsTruncated",
    [EMPTY + EMPTY.slice(21)]: "text that is no whole XML document",
    [`${EMPTY}x`]: "text that is no whole XML document",
    [EMPTY.replace("false", "maybe")]: 'IsTruncated "maybe"',
    [EMPTY.replace("false", "true")]: "<ListBucketResult> without NextContinuationToken",
    [EMPTY.replace("<Prefix/>", "<Contents/>")]: "<Contents> without Key",
    [EMPTY.replace("<Prefix/>", "<Contents><Key/></Contents>")]: "<Contents> without Key",
    [EMPTY.replace("<Prefix/>", "<CommonPrefixes/>")]: "<CommonPrefixes> without Prefix",
    [EMPTY.replace("<Prefix/>", "<IsTruncated>true</IsTruncated>")]: "more than one IsTruncated",
    [EMPTY.replace("<Prefix/>", "&nbsp;")]: "text that is no whole XML document",
    [EMPTY.replace("<Prefix/>", "&#x110000;")]: "text that is no whole XML document",
    [EMPTY.replace("<Prefix/>", "</Prefix>")]: "text that is no whole XML document",
    [EMPTY.replace("<Prefix/>", "<Prefix>")]: "text that is no whole XML document",
    [EMPTY.replace("<Prefix/>", "<!DOCTYPE a [<!ENTITY b 'c'>]>")]: "text that is no whole XML document",
    [AWS.replace("%2B", "%2-")]: 'no percent-encoded UTF-8: "air+1.zarr/a%2-b+c%C3%A9"',
    [AWS.replace("%2B", "%ff")]: "no percent-encoded UTF-8",
  };
  for (const [text, received] of Object.entries(others)) {
    t.throws(() => parseListing(text), { ...unreadable, message: received }, text.slice(0, 60));
  }
});

t.test("takes no listing that is cut short for a whole one", async (t) => {
  const whole = parseListing(AWS);
  const read = Array.from(AWS, (_, end) => {
    try {
      return parseListing(AWS.slice(0, end));
    } catch {
      return undefined;
    }
  });
  t.ok(whole);
  t.ok(read.every((listing) => listing === undefined));
});

t.test("reads text that is meant to be slow in time that grows with its length alone", async (t) => {
  const length = 300_000;
  const texts = [
    "<a ".repeat(length),
    `<a ${" ".repeat(length)}`,
    `<a ${"b=''".repeat(length)}`,
    "<a>".repeat(length),
  ];
  const start = performance.now();
  for (const text of [
    ...texts,
    "<![CDATA[".repeat(length),
    "&".repeat(length),
    `<a>${"&#".repeat(length)}`,
  ]) {
    t.throws(() => parseListing(text), unreadable);
  }
  t.ok(performance.now() - start < 5000);
});

t.test("asks for names below a prefix, and for the next ones", async (t) => {
  t.equal(listingQuery("a b/+é~"), "list-type=2&delimiter=%2F&encoding-type=url&prefix=a%20b%2F%2B%C3%A9~");
  const query = new URLSearchParams(listingQuery("", "1/x+y=="));
  t.strictSame([query.get("prefix"), query.get("continuation-token")], ["", "1/x+y=="]);
});

t.test("finds the code of an S3 error, and none elsewhere", async (t) => {
  const error =
    '<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>NoSuchKey</Code><Message>&quot;</Message></Error>';
  t.equal(errorCodeOf(error), "NoSuchKey");
  const others = [
    "",
    error.slice(0, -1),
    "<html><Code>NoSuchKey</Code></html>",
    "<Error/>",
    "<Error><Code>No such\nkey</Code></Error>",
    EMPTY,
  ];
  for (const other of others) t.equal(errorCodeOf(other), undefined);
});
