import { spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startChild, stopChild } from "../children.js";
import { freePort } from "../free-port.js";
import { type Site, type Subject, storePath } from "./subject.js";

/** Where distributions put nginx, which is not always on the path of a user. */
const PATH = [process.env.PATH ?? "", "/usr/sbin", "/usr/local/sbin"].join(delimiter);
const READY_TRIES = 100;
const READY_PAUSE_MS = 50;

/** `nginx version: nginx/1.22.1` without the words; undefined where it is not installed. */
export function nginxVersion(): string | undefined {
  const { stderr, error } = spawnSync("nginx", ["-v"], { env: { ...process.env, PATH }, encoding: "utf8" });
  return error === undefined ? stderr.trim().replace(/^.*nginx\//, "") : undefined;
}

/** nginx with one worker and sendfile, on the stored files and on documents written as files. */
export const nginxSubject: Subject = {
  name: "nginx",
  isRestartable: true,
  hasChunkCache: false,
  async start(site) {
    // nginx cannot be asked which port it got. If another program takes this one in between, the start fails with a message.
    const port = await freePort();
    const config = join(site.scratch, "nginx.conf");
    writeFileSync(config, configuration(site, port));
    // A worker of nginx that root starts is another user.
    chmodSync(site.scratch, 0o755);
    const child = await startChild("nginx", ["-p", site.scratch, "-c", config, "-e", "stderr"], {
      env: { ...process.env, PATH },
    });
    const baseUrl = `http://127.0.0.1:${port}`;
    let status: number | string | undefined;
    void child.ended.then((ended) => {
      status = ended;
    });
    for (let i = 0; ; i++) {
      const isReady = await fetch(`${baseUrl}/ready`).then(
        (response) => response.status === 204,
        () => false,
      );
      if (isReady) break;
      if (status !== undefined || i === READY_TRIES) {
        throw new Error(`nginx does not start (${status ?? "no answer"}): ${child.errorText().trim()}`);
      }
      await sleep(READY_PAUSE_MS);
    }
    return { baseUrl, pid: child.pid, stop: () => stopChild(child) };
  },
};

function configuration({ store, documents, scratch }: Site, port: number): string {
  const folder = join(scratch, "nginx-documents");
  mkdirSync(folder, { recursive: true });
  const locations = [...documents].map(([path, body], i) => {
    const file = join(folder, String(i));
    writeFileSync(file, body);
    return `location = ${path} { default_type application/json; alias ${file}; }`;
  });
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${join(scratch, `nginx-${name}`)};`,
  );
  return `
daemon off;
${process.getuid?.() === 0 ? "user root;" : ""}
worker_processes 1;
pid ${join(scratch, "nginx.pid")};
error_log stderr warn;
events { worker_connections 1024; }
http {
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  keepalive_timeout 3600;
  open_file_cache max=20000 inactive=60s;
  open_file_cache_valid 60s;
  types {}
  default_type application/octet-stream;
  ${temporary.join("\n  ")}
  server {
    listen 127.0.0.1:${port};
    location = /ready { return 204; }
    ${locations.join("\n    ")}
    location ${storePath(store, "")} { alias ${store.directory}/; }
  }
}
`;
}
