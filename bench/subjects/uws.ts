import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild, stopChild, waitForLine } from "../children.js";
import { type Subject, siteFile } from "./subject.js";

/** What `uws-server` answers. */
export interface UwsManifest {
  readonly files: readonly (readonly [path: string, file: string])[];
  /** Sent with every 200 besides Content-Type and ETag, by name. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Bare uWebSockets.js that answers the same bodies from memory: the limit of what can be had. */
export const uwsSubject: Subject = createUws("bare uWebSockets.js", false);

/** The same with the headers that zpublish sends: what is left when the contract is kept. */
export const sameHeadersUwsSubject: Subject = createUws("bare uWebSockets.js, same headers", true);

function createUws(name: string, hasHeaders: boolean): Subject {
  return {
    name,
    isRestartable: true,
    hasChunkCache: false,
    async start(site) {
      const files = site.paths.map((path, i): [path: string, file: string] => {
        const body = siteFile(site, path);
        if (!Buffer.isBuffer(body)) return [path, body.file];
        const file = join(site.scratch, `uws-${i}`);
        writeFileSync(file, body);
        return [path, file];
      });
      const manifest: UwsManifest = { files, headers: hasHeaders ? site.headers : {} };
      const manifestFile = join(site.scratch, "uws-manifest.json");
      writeFileSync(manifestFile, JSON.stringify(manifest));
      const server = fileURLToPath(new URL("uws-server.js", import.meta.url));
      const child = await startChild(process.execPath, [server, manifestFile]);
      const [, port] = await waitForLine(child, /port (\d+)/);
      return { baseUrl: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stopChild(child) };
    },
  };
}
