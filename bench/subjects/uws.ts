import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startChild, stopChild, waitForLine } from "../children.js";
import { type Subject, siteFile } from "./subject.js";

/** Bare uWebSockets.js that answers the same bodies from memory: the limit of what can be had. */
export const uwsSubject: Subject = {
  name: "bare uWebSockets.js",
  isRestartable: true,
  hasChunkCache: false,
  async start(site) {
    const files = site.paths.map((path, i) => {
      const body = siteFile(site, path);
      if (!Buffer.isBuffer(body)) return [path, body.file];
      const file = join(site.scratch, `uws-${i}`);
      writeFileSync(file, body);
      return [path, file];
    });
    const manifest = join(site.scratch, "uws-manifest.json");
    writeFileSync(manifest, JSON.stringify(files));
    const server = fileURLToPath(new URL("uws-server.js", import.meta.url));
    const child = await startChild(process.execPath, [server, manifest]);
    const [, port] = await waitForLine(child, /port (\d+)/);
    return { baseUrl: `http://127.0.0.1:${port}`, pid: child.pid, stop: () => stopChild(child) };
  },
};
