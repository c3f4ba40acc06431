import t from "tap";
import { createFileFinder } from "../../src/find/collection-root.js";
import { encodeKey, signRequest } from "../../src/stores/aws-requests.js";
import { errorCodeOf } from "../../src/stores/s3-store.js";
import { clientMissing } from "../support/clients/require-client.js";
import { checkS3Origin, ODD_KEYS } from "../support/origins/check-s3-origin.js";
import { startRadosgw } from "../support/origins/radosgw-origin.js";

t.test("radosgw accepts what is signed, and nothing else", { skip: clientMissing("radosgw") }, async (t) => {
  const origin = await startRadosgw(t);
  const { endpoint, region, credentials } = origin;
  await origin.createBucket("data");
  for (const key of ODD_KEYS) await origin.putObject("data", key, key);
  await checkS3Origin(t, endpoint, "data", credentials, 4);

  async function codeFor(key: string, change: Partial<Parameters<typeof signRequest>[0]> | undefined) {
    const url = new URL(`${endpoint}/data/${encodeKey(key)}`);
    const request = { method: "GET", url, credentials, region, now: new Date(), ...change } as const;
    const response = await fetch(url, { headers: change === undefined ? {} : signRequest(request) });
    return [response.status, errorCodeOf(await response.text())];
  }
  const wrong = { ...credentials, secretAccessKey: "wrong" };
  const unknown = { ...credentials, accessKeyId: "UNKNOWN" };
  const hourAgo = new Date(Date.now() - 3_600_000);
  t.same(await codeFor("a", {}), [200, undefined]);
  t.same(await codeFor("a", undefined), [403, "AccessDenied"]);
  t.same(await codeFor("a", { credentials: wrong }), [403, "SignatureDoesNotMatch"]);
  t.same(await codeFor("a", { credentials: unknown }), [403, "InvalidAccessKeyId"]);
  t.same(await codeFor("a", { now: hourAgo }), [403, "RequestTimeTooSkewed"]);

  await origin.putObject("data", "public", "x", "public-read");
  t.same(await codeFor("public", undefined), [200, undefined], "anyone may read it");
  t.same(
    await codeFor("absent", undefined),
    [403, "AccessDenied"],
    "who may not list is not told what is absent",
  );
  await origin.createBucket("open", "public-read");
  for (const key of ODD_KEYS) await origin.putObject("open", key, key, "public-read");
  await checkS3Origin(t, endpoint, "open", undefined, 4);
  await origin.removeObject("open", "a");
  t.equal((await fetch(`${endpoint}/open/a`)).status, 404);

  await origin.createBucket("listed");
  for (const key of ["in/a+b.nc", "in/2024/é.nc", "in/s.zarr/.zgroup"])
    await origin.putObject("listed", key, key);
  process.env.ZP_LISTED_KEY = credentials.accessKeyId;
  process.env.ZP_LISTED_SECRET = credentials.secretAccessKey;
  const keys = { accessKeyId: { env: "ZP_LISTED_KEY" }, secretAccessKey: { env: "ZP_LISTED_SECRET" } };
  const stores = [{ name: "s", url: "s3://listed/", endpoint, region, credentials: keys }];
  const finder = createFileFinder({ root: "s3://listed/in/", stores, withVersions: true });
  const first = await finder.look();
  t.same(
    first.files.map(({ path, isStore }) => [path, isStore]),
    [
      ["2024/é.nc", false],
      ["a+b.nc", false],
      ["s.zarr", true],
    ],
  );
  t.equal(await finder.look(), first);
  await origin.putObject("listed", "in/a+b.nc", "other");
  const { files } = await finder.look();
  t.match(files[1]?.version, /^[0-9a-f]{32}\.5$/);
  t.not(files[1]?.version, first.files[1]?.version);
  t.same([files[0], files[2]], [first.files[0], first.files[2]]);
});
