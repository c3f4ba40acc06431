import t from "tap";
import { errorCodeOf } from "../../src/source/bytes/s3/list-objects.js";
import { encodeKey, signRequest } from "../../src/source/bytes/s3/sign-v4.js";
import { clientMissing } from "../require-client.js";
import { checkS3Origin, ODD_KEYS } from "./check-s3-origin.js";
import { startRadosgw } from "./radosgw-origin.js";

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
});
