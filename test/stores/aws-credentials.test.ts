import { deepStrictEqual } from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { SignatureV4 } from "@smithy/signature-v4";
import fc from "fast-check";
import t, { type Test } from "tap";
import { messageOf } from "../../src/errors.js";
import { createCredentialSource, encodeKey, presignUrl, signRequest } from "../../src/stores/aws-requests.js";
import { effort } from "../support/effort.js";
import { makeDirectory } from "../support/write-store.js";

const MINUTE = 60_000;

/** Sets variables of AWS for one test; all others of AWS are unset, and no metadata service is asked. */
async function setEnvironment(t: Test, variables: Readonly<Record<string, string>>): Promise<string> {
  const directory = await makeDirectory(t);
  const before = { ...process.env };
  for (const name of Object.keys(process.env)) if (name.startsWith("AWS_")) delete process.env[name];
  Object.assign(process.env, {
    AWS_EC2_METADATA_DISABLED: "true",
    AWS_SHARED_CREDENTIALS_FILE: join(directory, "credentials"),
    AWS_CONFIG_FILE: join(directory, "config"),
    ...variables,
  });
  t.teardown(() => {
    process.env = before;
  });
  return directory;
}

const noLibrary = { loadProviders: () => Promise.reject(new Error("the library is loaded")) };

async function errorOf(result: Promise<unknown>): Promise<string> {
  try {
    await result;
  } catch (error) {
    return messageOf(error);
  }
  throw new Error("expected an error");
}

/** Writes a profile whose credentials a program makes: it counts its calls in a file, and its keys last an hour. */
async function writeProcessProfile(directory: string, lasts = 60 * MINUTE) {
  const program = join(directory, "make-credentials.cjs");
  const calls = join(directory, "calls");
  await writeFile(calls, "");
  await writeFile(
    program,
    `const fs = require("node:fs");
fs.appendFileSync(${JSON.stringify(calls)}, "x");
if (fs.existsSync(${JSON.stringify(join(directory, "fails"))})) {
  console.error("SECRET of the program");
  process.exit(1);
}
console.log(JSON.stringify({
  Version: 1,
  AccessKeyId: "KEY" + fs.readFileSync(${JSON.stringify(calls)}).length,
  SecretAccessKey: "SECRET",
  SessionToken: "TOKEN",
  Expiration: new Date(Date.now() + ${lasts}).toISOString(),
}));`,
  );
  await writeFile(
    join(directory, "config"),
    `[profile made]\ncredential_process = ${process.execPath} ${program} --token SECRET\n`,
  );
  return {
    calls: async () => (await readFile(calls)).length,
    fail: () => writeFile(join(directory, "fails"), ""),
  };
}

t.test("anonymous stores have no credentials", async (t) => {
  await setEnvironment(t, { AWS_ACCESS_KEY_ID: "KEY", AWS_SECRET_ACCESS_KEY: "SECRET" });
  t.equal(await createCredentialSource({ kind: "anonymous" }, noLibrary)(), undefined);
});

t.test("reads the variables that a store names", async (t) => {
  await setEnvironment(t, { ARCHIVE_KEY: "KEY", ARCHIVE_SECRET: "SECRET", ARCHIVE_TOKEN: "TOKEN" });
  const names = { accessKeyId: "ARCHIVE_KEY", secretAccessKey: "ARCHIVE_SECRET" };
  const withToken = { kind: "variables", ...names, sessionToken: "ARCHIVE_TOKEN" } as const;
  t.strictSame(await createCredentialSource({ kind: "variables", ...names }, noLibrary)(), {
    accessKeyId: "KEY",
    secretAccessKey: "SECRET",
  });
  t.match(await createCredentialSource(withToken, noLibrary)(), { sessionToken: "TOKEN" });
  for (const name of ["ARCHIVE_KEY", "ARCHIVE_SECRET", "ARCHIVE_TOKEN"]) {
    const value = process.env[name];
    process.env[name] = "";
    const message = await errorOf(createCredentialSource(withToken, noLibrary)());
    t.match(message, `variable ${name}, received no value`);
    process.env[name] = value;
  }
});

t.test("reads the usual variables without loading the library", async (t) => {
  await setEnvironment(t, {
    AWS_ACCESS_KEY_ID: "KEY",
    AWS_SECRET_ACCESS_KEY: "SECRET",
    AWS_PROFILE: "other",
  });
  const credentials = createCredentialSource({ kind: "default" }, noLibrary);
  t.strictSame(await credentials(), { accessKeyId: "KEY", secretAccessKey: "SECRET" });
  process.env.AWS_SESSION_TOKEN = "TOKEN";
  const first = await credentials();
  t.notOk(first?.sessionToken, "keeps what it has");
  t.match(await credentials(first), { sessionToken: "TOKEN" }, "unless the store refused it");
});

t.test("reads profiles, by name and by AWS_PROFILE, and again if the store refused them", async (t) => {
  const directory = await setEnvironment(t, { AWS_ACCESS_KEY_ID: "KEY", AWS_SECRET_ACCESS_KEY: "SECRET" });
  const profiles = (secret: string) =>
    writeFile(
      join(directory, "credentials"),
      `[default]\naws_access_key_id = D\naws_secret_access_key = ${secret}\n
[archive]\naws_access_key_id = A\naws_secret_access_key = ${secret}\naws_session_token = T\n`,
    );
  await profiles("one");
  const archive = createCredentialSource({ kind: "profile", name: "archive" });
  const first = await archive();
  t.match(first, { accessKeyId: "A", secretAccessKey: "one", sessionToken: "T" }, "not of the variables");

  delete process.env.AWS_ACCESS_KEY_ID;
  t.match(await createCredentialSource({ kind: "default" })(), { accessKeyId: "D" });
  process.env.AWS_PROFILE = "archive";
  t.match(await createCredentialSource({ kind: "default" })(), { accessKeyId: "A" });

  await profiles("two");
  t.equal(await archive(), first, "keeps what it has");
  const second = await archive(first);
  t.match(second, { secretAccessKey: "two" });
  t.equal(await archive(first), second, "others that were refused the same have these");
});

t.test("asks a program once for many, and again five minutes before its credentials expire", async (t) => {
  const directory = await setEnvironment(t, {});
  const { calls } = await writeProcessProfile(directory);
  let passed = 0;
  const now = () => Date.now() + passed;
  const credentials = createCredentialSource({ kind: "profile", name: "made" }, { now });
  const all = await Promise.all(Array.from({ length: 50 }, () => credentials()));
  t.equal(new Set(all).size, 1);
  t.match(all[0], { accessKeyId: "KEY1", sessionToken: "TOKEN", expiration: Date });
  passed = 54 * MINUTE;
  t.equal(await credentials(), all[0]);
  t.equal(await calls(), 1);
  passed = 56 * MINUTE;
  t.match(await credentials(), { accessKeyId: "KEY2" });
  t.equal(await calls(), 2);

  const refused = await credentials();
  const others = await Promise.all(Array.from({ length: 50 }, () => credentials(refused)));
  t.same(new Set(others.map((other) => other?.accessKeyId)), new Set(["KEY3"]));
  t.equal((await credentials(refused))?.accessKeyId, "KEY3", "who comes late has the new ones");
  t.equal(await calls(), 3);
});

t.test("keeps credentials that can still be used if there are no others yet", async (t) => {
  const directory = await setEnvironment(t, {});
  const { calls, fail } = await writeProcessProfile(directory);
  let passed = 0;
  const credentials = createCredentialSource(
    { kind: "profile", name: "made" },
    { now: () => Date.now() + passed },
  );
  const first = await credentials();
  await fail();
  passed = 57 * MINUTE;
  t.equal(await credentials(), first);
  t.equal(await credentials(), first);
  t.equal(await calls(), 2, "pauses before it asks again");
  passed = 61 * MINUTE;
  const message = await errorOf(credentials());
  t.equal(message, 'expected credentials for S3 (profile "made"), received a credential_process that failed');
  t.equal(await errorOf(credentials(first)), message);
});

t.test("says which ways there are if there are no credentials", async (t) => {
  await setEnvironment(t, { AWS_ACCESS_KEY_ID: "KEY" });
  const message = await errorOf(createCredentialSource({ kind: "default" })());
  for (const way of ["AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "a profile", '"anonymous": true']) {
    t.match(message, way);
  }
  t.match(message, "Could not load credentials from any providers");
  t.match(
    await errorOf(createCredentialSource({ kind: "profile", name: "absent" })()),
    /\(profile "absent"\), received .*Could not resolve credentials using profile: \[absent\]/,
  );
});

t.test("says so if the library is not installed", async (t) => {
  await setEnvironment(t, {});
  const hooks = `export async function resolve(specifier, context, next) {
    if (!specifier.startsWith("@aws-sdk/")) return next(specifier, context);
    throw Object.assign(new Error("Cannot find package in /srv/app"), { code: "ERR_MODULE_NOT_FOUND" });
  }`;
  const tested = new URL("../../src/stores/aws-requests.js", import.meta.url);
  const program = `import { register } from "node:module";
    register("data:text/javascript," + encodeURIComponent(${JSON.stringify(hooks)}));
    const { createCredentialSource } = await import(${JSON.stringify(tested.href)});
    for (const spec of [{ kind: "default" }, { kind: "profile", name: "archive" }]) {
      await createCredentialSource(spec)().catch((error) => console.log(error.message));
    }`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program]);
  const messages = stdout.trim().split("\n");
  t.equal(messages.length, 2);
  for (const message of messages) {
    t.match(message, "the package @aws-sdk/credential-provider-node");
    t.match(message, "received ERR_MODULE_NOT_FOUND");
    t.match(message, '"anonymous": true');
    t.notMatch(message, "/srv");
  }
});

t.test("shows no paths, commands or keys of sources that fail", async (t) => {
  const directory = await setEnvironment(t, {
    AWS_WEB_IDENTITY_TOKEN_FILE: "/absent/token",
    AWS_ROLE_ARN: "arn:aws:iam::1:role/SECRET",
  });
  t.match(await errorOf(createCredentialSource({ kind: "default" })()), "received ENOENT");
  const { fail } = await writeProcessProfile(directory);
  await fail();
  const message = await errorOf(createCredentialSource({ kind: "profile", name: "made" })());
  t.match(message, "a credential_process that failed");
  t.notMatch(message, "SECRET");
  t.notMatch(message, directory);
});

t.test("does not wait for ever, and looks again then", async (t) => {
  await setEnvironment(t, {});
  let looks = 0;
  const loadProviders = async () => ({
    fromIni: () => () => Promise.reject(new Error("not asked")),
    defaultProvider: () => async () => {
      looks++;
      if (looks === 1) await new Promise(() => {});
      return { accessKeyId: "KEY", secretAccessKey: "SECRET" };
    },
  });
  const credentials = createCredentialSource({ kind: "default" }, { loadProviders, timeout: 1 });
  // The timer of the limit holds no process, so that one has to.
  const alive = setInterval(() => {}, 1000);
  t.teardown(() => clearInterval(alive));
  t.equal(await errorOf(credentials()), "expected credentials within 1 ms, received none");
  t.match(await credentials(), { accessKeyId: "KEY" });
});

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

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const key = text.filter((key) => !key.split("/").some((segment) => segment === "." || segment === ".."));

t.test("signs whatever there may be as smithy does", async (t) => {
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
  fc.assert(
    fc.property(fc.oneof(key, fc.constantFrom("a%", "a//b", "a/", "...", "\t\u0001\u007f")), (key) => {
      const encoded = encodeKey(key);
      return (
        new URL(`http://h/b/${encoded}`).pathname === `/b/${encoded}` && decodeURIComponent(encoded) === key
      );
    }),
    { numRuns: effort(1000) },
  );
});
