/**
 * A process of its own: `node codec-server.js RUNNER` prints `ready` and answers jobs, a line of JSON each,
 * until its standard input ends.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { type CodecRunner, RUNNERS, type RunnerName } from "./codec-runners.js";
import type { CodecAnswer, CodecJob } from "./codec-subjects.js";

type JobOf<Name extends CodecJob["job"]> = Extract<CodecJob, { readonly job: Name }>;

const [name] = process.argv.slice(2);
const makeRunner = RUNNERS[name as RunnerName];

function readChunks(files: readonly string[]): Uint8Array[] {
  return files.map((file) => new Uint8Array(readFileSync(file)));
}

async function answer(job: CodecJob): Promise<CodecAnswer> {
  const runner = await makeRunner(job);
  if (runner === undefined) return { missing: `${name} has no codec ${job.codec.id}` };
  try {
    switch (job.job) {
      case "encode":
        return await encode(runner, job);
      case "check":
        return await check(runner, job);
      case "time":
        return await time(runner, job);
      case "transcode":
        return { error: "transcoding is measured in a server" };
    }
  } catch (error) {
    return { error: String(error) };
  }
}

async function encode({ encode }: CodecRunner, { codec, inputs, outputs }: JobOf<"encode">) {
  if (encode === undefined) return { missing: `${name} does not encode ${codec.id}` };
  for (const [i, chunk] of readChunks(inputs).entries()) writeFileSync(outputs[i]!, await encode(chunk));
  return { chunks: inputs.length, seconds: 0, isView: false };
}

async function check({ decode }: CodecRunner, { inputs, expected }: JobOf<"check">): Promise<CodecAnswer> {
  const truths = readChunks(expected);
  for (const [i, chunk] of readChunks(inputs).entries()) {
    if (Buffer.compare(await decode(chunk), truths[i]!) !== 0)
      return { error: "the decoded bytes are not the ones that were encoded" };
  }
  return { chunks: inputs.length, seconds: 0, isView: false };
}

async function time(runner: CodecRunner, job: JobOf<"time">): Promise<CodecAnswer> {
  const run = runner[job.operation];
  if (run === undefined) return { missing: `${name} does not ${job.operation} ${job.codec.id}` };
  const read = readChunks(job.inputs);
  const chunks = runner.place?.(read) ?? read;
  const isView = overlap(await run(chunks[0]!), chunks[0]!);
  const rotate = async (seconds: number) => {
    let count = 0;
    const began = performance.now();
    const end = began + seconds * 1_000;
    for (;;) {
      await run(chunks[(job.first + count) % chunks.length]!);
      count++;
      const now = performance.now();
      if (now >= end) return { chunks: count, seconds: (now - began) / 1_000 };
    }
  };
  await rotate(job.warmUpSeconds);
  return { ...(await rotate(job.seconds)), isView };
}

function overlap(a: Uint8Array, b: Uint8Array): boolean {
  return (
    a.buffer === b.buffer && a.byteOffset < b.byteOffset + b.length && b.byteOffset < a.byteOffset + a.length
  );
}

console.log(`ready node ${process.version}`);
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line) as CodecJob)));
}
