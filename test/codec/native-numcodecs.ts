import { spawnSync } from "node:child_process";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { PYTHON } from "../require-client.js";

/** One job for the native numcodecs: what comes of a chunk through one codec. */
export interface NativeJob {
  readonly operation: "encode" | "decode";
  readonly codec: CodecSpec;
  readonly bytes: Uint8Array;
  /** numpy type that the bytes are handed over as; default `u1`. */
  readonly dtype?: string;
}

const SCRIPT = `
import base64, json, sys
import numpy, numcodecs
from numcodecs.compat import ensure_bytes
answers = []
for job in json.load(sys.stdin):
    try:
        codec = numcodecs.get_codec(job["codec"])
        data = numpy.frombuffer(base64.b64decode(job["bytes"]), job["dtype"])
        answers.append(base64.b64encode(ensure_bytes(getattr(codec, job["operation"])(data))).decode())
    except Exception as error:
        answers.append({"error": str(error)})
json.dump(answers, sys.stdout)
`;

/** Runs jobs in one Python process; an answer of undefined means that numcodecs refused. */
export function runNative(jobs: readonly NativeJob[]): (Buffer | undefined)[] {
  const input = JSON.stringify(
    jobs.map(({ operation, codec, bytes, dtype = "u1" }) => ({
      operation,
      codec,
      dtype,
      bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64"),
    })),
  );
  const run = spawnSync(PYTHON, ["-c", SCRIPT], { input, encoding: "utf8", maxBuffer: 2 ** 28 });
  if (run.status !== 0) throw new Error(`python ended with ${run.status}: ${run.stderr}`);
  return (JSON.parse(run.stdout) as (string | object)[]).map((answer) =>
    typeof answer === "string" ? Buffer.from(answer, "base64") : undefined,
  );
}
