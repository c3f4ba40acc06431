/**
 * A process of its own: `node uws-server.js MANIFEST` loads the files of a `UwsManifest` (JSON) into memory and answers
 * them, with an ETag each. Prints `port N` when it listens on 127.0.0.1.
 */

import type { HttpResponse } from "uWebSockets.js";
import { readFileSync } from "node:fs";
import { loadUws } from "../../src/http/listening/uws-listener.js";
import type { UwsManifest } from "./uws.js";

interface Answer {
  readonly body: Buffer;
  /** The Content-Type, and what else is sent with it. */
  readonly type: string;
  readonly etag: string;
}

const { files, headers } = JSON.parse(readFileSync(process.argv[2]!, "utf8")) as UwsManifest;
/** Written with the Content-Type, in one call: uWebSockets.js sends a value as it is. */
const moreHeaders = Object.entries(headers)
  .map(([name, value]) => `\r\n${name}: ${value}`)
  .join("");
const answers = new Map<string, Answer>();
for (const [i, [path, file]] of files.entries()) {
  const isChunk = /\/[\d.]+$/.test(path);
  const type = isChunk ? "application/octet-stream" : "application/json";
  answers.set(path, { body: readFileSync(file), type: type + moreHeaders, etag: `"bench-${i}"` });
}

/** What the socket does not take at once would be copied by `end`. */
const TRY_BYTES = 16 * 1024;

function send(res: HttpResponse, body: Buffer): void {
  if (body.length <= TRY_BYTES) {
    res.end(body);
    return;
  }
  const [, isDone] = res.tryEnd(body, body.length);
  if (isDone) return;
  res.onAborted(() => {});
  res.onWritable((offset) => res.tryEnd(body.subarray(offset), body.length)[0]);
}

const uws = await loadUws();
uws
  .App()
  .get("/*", (res, req) => {
    const answer = answers.get(req.getUrl());
    if (answer === undefined) {
      res.writeStatus("404 Not Found").end();
    } else if (req.getHeader("if-none-match") === answer.etag) {
      res.writeStatus("304 Not Modified").writeHeader("ETag", answer.etag).endWithoutBody();
    } else {
      res.writeHeader("Content-Type", answer.type).writeHeader("ETag", answer.etag);
      send(res, answer.body);
    }
  })
  .listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("no free port on 127.0.0.1");
    console.log(`port ${uws.us_socket_local_port(socket)}`);
  });
