import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { freePort } from "../../../bench/free-port.js";
import { type Credentials, encodeKey, signRequest } from "../../../src/stores/aws-requests.js";
import { makeDirectory, type Teardown } from "../write-store.js";
import { answers, startProgram } from "./run-origin.js";

/** Ceph's server of S3, which checks signatures and rights as AWS does. */
export type RadosgwOrigin = Awaited<ReturnType<typeof startRadosgw>>;

/** Readers of a bucket or object. */
export type Acl = "private" | "public-read";

const run = promisify(execFile);

const CREDENTIALS: Credentials = {
  accessKeyId: "ZPUBLISHTESTKEY",
  secretAccessKey: "zpublish-test-secret",
};
const CORS =
  "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET</AllowedMethod></CORSRule></CORSConfiguration>";
const REGION = "us-east-1";

/** Starts a Ceph of three processes that keeps everything in memory: a monitor, a store and radosgw. Takes a few seconds. */
export async function startRadosgw(t: Teardown) {
  const directory = await makeDirectory(t);
  const port = await freePort();
  const config = join(directory, "ceph.conf");
  const keyring = join(directory, "keyring");
  const monmap = join(directory, "monmap");
  const [cluster, store] = [randomUUID(), randomUUID()];
  const monitorPort = await freePort();
  await writeFile(config, configuration(directory, cluster, monitorPort));
  for (const name of ["mon", "osd", "rgw"]) await mkdir(join(directory, name));

  const withConfig = (...args: string[]) => [...args, "--conf", config];
  const all = ["--cap", "mon", "allow *", "--cap", "osd", "allow *"];
  await run("ceph-authtool", [keyring, "--create-keyring", "--gen-key", "--name", "mon.", ...all]);
  for (const name of ["client.admin", "osd.0"]) {
    await run("ceph-authtool", [keyring, "--gen-key", "--name", name, ...all]);
  }
  const address = `[v2:127.0.0.1:${monitorPort}]`;
  await run("monmaptool", ["--create", "--fsid", cluster, "--addv", "a", address, monmap]);

  await run("ceph-mon", withConfig("--mkfs", "--id", "a", "--monmap", monmap, "--keyring", keyring));
  const ceph = (...args: string[]) =>
    run("ceph", withConfig("--connect-timeout", "30", ...args), { timeout: 60_000 });
  const monitor = await startProgram(t, "ceph-mon", withConfig("-f", "--id", "a"), {
    isReady: async () => true,
    signal: "SIGKILL",
  });
  await ceph("osd", "new", store);

  const noMonitor = ["--no-mon-config", "--monmap", monmap, "--keyring", keyring];
  await run("ceph-osd", withConfig("--mkfs", "--id", "0", "--osd-uuid", store, ...noMonitor));
  const objects = await startProgram(t, "ceph-osd", withConfig("-f", "--id", "0", "--keyring", keyring), {
    isReady: async () => /"num_up_osds":\s*1\b/.test((await ceph("osd", "stat", "--format", "json")).stdout),
    signal: "SIGKILL",
  });

  const { accessKeyId, secretAccessKey } = CREDENTIALS;
  const keys = [`--access-key=${accessKeyId}`, `--secret-key=${secretAccessKey}`];
  const user = ["user", "create", "--uid=test", "--display-name=Test", ...keys];
  await run("radosgw-admin", withConfig(...user), { timeout: 60_000 });

  const endpoint = `http://127.0.0.1:${port}`;
  const frontend = [
    "--rgw-frontends",
    // Otherwise each answer that is sent in two parts takes 40 ms.
    `beast endpoint=127.0.0.1:${port} tcp_nodelay=1`,
    "--rgw-data",
    join(directory, "rgw"),
  ];
  const gateway = await startProgram(t, "radosgw", withConfig("-f", "--name", "client.admin", ...frontend), {
    isReady: () => answers(endpoint),
    signal: "SIGKILL",
  });

  return {
    endpoint,
    region: REGION,
    credentials: CREDENTIALS,
    createBucket: (bucket: string, acl: Acl = "private") => send(endpoint, "PUT", bucket, "", "", acl),
    putObject: (bucket: string, key: string, bytes: Uint8Array | string, acl: Acl = "private") =>
      send(endpoint, "PUT", bucket, key, bytes, acl),
    removeObject: (bucket: string, key: string) => send(endpoint, "DELETE", bucket, key),
    /** Lets pages of every origin read a bucket. */
    setCors: (bucket: string) => send(endpoint, "PUT", bucket, "", CORS, undefined, "?cors"),
    async stop(): Promise<void> {
      for (const program of [gateway, objects, monitor]) await program.stop();
    },
  };
}

function configuration(directory: string, cluster: string, port: number): string {
  return `[global]
fsid = ${cluster}
mon host = [v2:127.0.0.1:${port}/0]
mon initial members = a
public addr = 127.0.0.1
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = ${directory}/keyring
run dir = ${directory}
admin socket =
pid file =
log file =
# Without these, each of a dozen pools takes a second.
paxos propose interval = 0.05
paxos min wait = 0.01
mon allow pool size one = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = 4294967296
[mon.a]
mon data = ${directory}/mon
[osd.0]
osd data = ${directory}/osd
`;
}

async function send(
  endpoint: string,
  method: "PUT" | "DELETE",
  bucket: string,
  key: string,
  body?: Uint8Array | string,
  acl?: Acl,
  query = "",
): Promise<void> {
  const url = new URL(`${endpoint}/${bucket}/${encodeKey(key)}${query}`);
  const headers = {
    ...(acl === undefined ? {} : { "x-amz-acl": acl }),
    // Settings of buckets need it.
    ...(query === ""
      ? {}
      : {
          "content-md5": createHash("md5")
            .update(body ?? "")
            .digest("base64"),
        }),
  };
  const signed = signRequest({
    method,
    url,
    headers,
    credentials: CREDENTIALS,
    region: REGION,
    now: new Date(),
  });
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...signed },
    ...(body === undefined ? {} : { body }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${bucket}/${key} was answered ${response.status}: ${text}`);
}
