import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../../bench/free-port.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { FIRST } from "../support/servers/tls-pairs.js";
import { makeDirectory, type Teardown } from "../support/write-store.js";
import { deployText, fillIn } from "./examples.js";

/** nginx or HAProxy, run by the example in `scripts/deploy/`. */
export type Balancer = ReturnType<typeof withLog>;

type BalancerName = "nginx" | "haproxy";

export interface BalancerOptions {
  /** Ports of the three instances. */
  readonly ports: readonly number[];
  /** Whether the lines of TLS and HTTP/2 are no comments; `tlsPort` is set then. */
  readonly hasTls?: boolean;
  /** Further changes of the example, see {@link fillIn}. */
  readonly changes?: Readonly<Record<string, string>>;
}

/** The three addresses of the examples, replaced by these ports of this machine. */
function addresses(ports: readonly number[]): Record<string, string> {
  return Object.fromEntries(ports.map((port, i) => [`192.0.2.1${i + 1}:9000`, `127.0.0.1:${port}`]));
}

/** Uncomments the lines of TLS, with a certificate that only tests use. */
async function tlsChanges(
  name: BalancerName,
  directory: string,
  port: number,
): Promise<Record<string, string>> {
  const pem = join(directory, "zpublish.pem");
  await writeFile(pem, FIRST.cert + FIRST.key);
  if (name === "haproxy") {
    return {
      "# bind :443 ssl crt /etc/haproxy/certs/zpublish.pem ": `bind 127.0.0.1:${port} ssl crt ${pem} `,
    };
  }
  return {
    "# listen 443 ssl http2;": `listen 127.0.0.1:${port} ssl http2;`,
    "# ssl_certificate     /etc/ssl/zpublish/fullchain.pem;": `ssl_certificate ${pem};`,
    "# ssl_certificate_key /etc/ssl/zpublish/privkey.pem;": `ssl_certificate_key ${pem};`,
    "# ssl_protocols ": "ssl_protocols ",
    "# ssl_session_cache ": "ssl_session_cache ",
  };
}

/** Starts nginx with `nginx.conf` in the place where Debian's main file includes it. */
async function startNginx(
  t: Teardown,
  { ports, hasTls = false, changes = {} }: BalancerOptions,
): Promise<Balancer> {
  const directory = await makeDirectory(t);
  const [port, tlsPort] = [await freePort(), await freePort()];
  const site = fillIn(deployText("nginx.conf"), {
    ...addresses(ports),
    "listen 80;": `listen 127.0.0.1:${port};`,
    "/var/log/nginx/": `${directory}/`,
    ...(hasTls ? await tlsChanges("nginx", directory, tlsPort) : {}),
    ...changes,
  });
  await writeFile(join(directory, "zpublish.conf"), site);
  // Workers of an nginx that root starts are another user.
  await chmod(directory, 0o755);
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${directory}/${name};`,
  );
  await writeFile(
    join(directory, "nginx.conf"),
    `daemon off;
worker_processes 2;
pid ${directory}/nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http { gzip on; ${temporary.join(" ")} include ${directory}/zpublish.conf; }
`,
  );
  const args = ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", "stderr"];
  const child = spawn("/usr/sbin/nginx", args);
  const running = await follow(t, "nginx", child, { port, tlsPort });
  return withLog(running, async () => {
    const texts = ["access", "error"].map((kind) => readFile(join(directory, `zpublish.${kind}.log`)));
    return (await Promise.all(texts)).join("") + running.output();
  });
}

/** Starts HAProxy with `haproxy.cfg`. */
async function startHaproxy(
  t: Teardown,
  { ports, hasTls = false, changes = {} }: BalancerOptions,
): Promise<Balancer> {
  const directory = await makeDirectory(t);
  const [port, tlsPort] = [await freePort(), await freePort()];
  // Only root can become another user.
  const asSomebodyElse = process.getuid?.() === 0 ? {} : { "    user haproxy\n    group haproxy\n": "" };
  const config = fillIn(deployText("haproxy.cfg"), {
    ...addresses(ports),
    "bind :80\n": `bind 127.0.0.1:${port}\n`,
    "log /dev/log local0": "log stdout format raw local0",
    ...(hasTls ? await tlsChanges("haproxy", directory, tlsPort) : {}),
    ...asSomebodyElse,
    ...changes,
  });
  await writeFile(join(directory, "haproxy.cfg"), config);
  const child = spawn("/usr/sbin/haproxy", ["-db", "-f", join(directory, "haproxy.cfg")]);
  const running = await follow(t, "haproxy", child, { port, tlsPort });
  return withLog(running, async () => running.output());
}

/** Starts a balancer by its name. */
export const START_BALANCER = { nginx: startNginx, haproxy: startHaproxy };

/** Names of both balancers. */
export const BALANCERS = ["nginx", "haproxy"] as const;

/** @param log Returns what it logged so far, accesses and errors. */
function withLog(running: Awaited<ReturnType<typeof follow>>, log: () => Promise<string>) {
  return {
    ...running,
    log,
    /** Waits until it has logged something that matches, which is after it has answered. */
    async logged(pattern: RegExp): Promise<RegExpExecArray> {
      for (;;) {
        const match = pattern.exec(await log());
        if (match !== null) return match;
        await delay(20);
      }
    },
  };
}

/** Waits until it answers, and ends it with the test. */
async function follow(
  t: Teardown,
  name: BalancerName,
  child: ChildProcess,
  ports: { readonly port: number; readonly tlsPort: number },
) {
  let output = "";
  let hasEnded = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const ended = once(child, "close").then(() => {
    hasEnded = true;
  });
  async function stop(): Promise<void> {
    // Both end at once then, and nginx takes its workers along.
    if (!hasEnded) child.kill("SIGTERM");
    await ended;
  }
  t.teardown(stop);
  for (;;) {
    if (hasEnded) throw new Error(`${name} does not start:\n${output}`);
    const answers = await rawRequest(ports.port, "/metrics").then(
      () => true,
      () => false,
    );
    if (answers) return { name, ...ports, stop, output: () => output };
    await delay(20);
  }
}
