import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../../bench/free-port.js";
import { makeDirectory, type Teardown } from "../write-store.js";
import { READY_PATH, readAccesses, type WebOrigin } from "./nginx-origin.js";
import { answers, startProgram } from "./run-origin.js";

const MODULES = ["mpm_event", "authz_core", "headers", "filter", "deflate", "mime"];

/** Starts Apache over a directory. @param directives More of its configuration, for the whole directory. */
export async function startApacheOrigin(t: Teardown, directory: string, directives = ""): Promise<WebOrigin> {
  const own = await makeDirectory(t);
  const port = await freePort();
  const config = join(own, "apache.conf");
  const modules = MODULES.map((name) => `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`);
  // Only root can become another user.
  const user = process.getuid?.() === 0 ? "User www-data\nGroup www-data" : "";
  await chmod(directory, 0o755);
  await writeFile(
    config,
    `${modules.join("\n")}
ServerRoot ${own}
ServerName localhost
PidFile ${own}/apache.pid
DefaultRuntimeDir ${own}
Mutex posixsem
Listen 127.0.0.1:${port}
${user}
TypesConfig /dev/null
ErrorLog ${own}/error.log
LogFormat "%r %>s %{Range}i" accesses
CustomLog ${own}/access.log accesses
MaxKeepAliveRequests 0
DocumentRoot ${directory}
<Directory ${directory}>
  Require all granted
  ${directives}
</Directory>
`,
  );
  const url = `http://127.0.0.1:${port}`;
  const program = await startProgram(t, "/usr/sbin/apache2", ["-D", "FOREGROUND", "-f", config], {
    isReady: () => answers(url + READY_PATH),
  });
  return { url, port, accesses: () => readAccesses(own), stop: program.stop };
}
