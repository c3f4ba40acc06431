import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../../bench/free-port.js";
import { makeDirectory, type Teardown } from "../write-store.js";
import { answers, startProgram } from "./run-origin.js";

/** A web server over a directory. */
export type WebOrigin = Awaited<ReturnType<typeof startNginxOrigin>>;

/** Requested once to see whether a web server runs. */
export const READY_PATH = "/zpublish-test-is-ready";

/** Starts nginx over a directory. @param directives More of its configuration, for the whole directory. */
export async function startNginxOrigin(t: Teardown, directory: string, directives = "") {
  const own = await makeDirectory(t);
  const port = await freePort();
  const config = join(own, "nginx.conf");
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  );
  // Workers of an nginx that root starts are another user.
  await chmod(directory, 0o755);
  await writeFile(
    config,
    `daemon off;
worker_processes 1;
pid ${own}/nginx.pid;
error_log stderr;
events { worker_connections 1024; }
http {
  ${temporary.join(" ")}
  log_format accesses "$request $status $http_range";
  access_log ${own}/access.log accesses;
  keepalive_requests 100000;
  server {
    listen 127.0.0.1:${port};
    location / { root ${directory}; ${directives} }
  }
}
`,
  );
  const url = `http://127.0.0.1:${port}`;
  const program = await startProgram(t, "/usr/sbin/nginx", ["-p", own, "-c", config, "-e", "stderr"], {
    isReady: () => answers(url + READY_PATH),
  });
  return { url, port, accesses: () => readAccesses(own), stop: program.stop };
}

/** Reads the log of a web server, `access.log` in its own directory. */
export async function readAccesses(own: string): Promise<string[]> {
  const lines = (await readFile(join(own, "access.log"), "utf8")).trim().split("\n");
  // Servers write a minus for a header that is not there.
  return lines
    .filter((line) => !line.includes(READY_PATH))
    .map((line) => line.replace(/ HTTP\/1\.1(?= \d)| -$/g, ""));
}
