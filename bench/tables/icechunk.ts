import { randomFillSync } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Icechunk,
  icechunkMissing,
  openIcechunk,
  type Repository,
} from "../../test/support/icechunk/open-icechunk.js";
import { array, chunk, group } from "../../test/support/icechunk/sample-repository.js";
import { DATA_DIRECTORY, makeOldTree, makeOnce } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { measureLoad } from "../load/load.js";
import { withZpublish } from "../start-zpublish.js";
import { checkSame, fetchBody } from "../subjects/check-answers.js";
import { residentMib } from "./memory.js";

/** Side of the grid of chunks whose references are read; and chunks that are passed through, of 256 KiB. */
const SIZES = {
  full: { side: 1_000, chunks: 400 },
  small: { side: 300, chunks: 60 },
  tiny: { side: 30, chunks: 4 },
} as const;
/** Raised when what is written changes. */
const FORMAT = 1;
const CHUNK_BYTES = 256 * 1024;
const AT_ONCE = 16;
const SERVED = "zpublish";
const ICECHUNK = "Icechunk itself";
const MANIFEST = "its manifest, read and decompressed";
const REPOSITORY = "repository";
const PLAIN = "plain store";
const MAIN = { branch: "main" };
const MAX_REF_BYTES = 64;

/** Icechunk repositories, beside plain stores and Icechunk's own library. */
export const icechunk: BenchTable = {
  title: "Icechunk: a repository of a million chunk references, and chunks that are passed through",
  async *contests(context) {
    const missing = icechunkMissing();
    if (missing !== false) return context.onProgress(1, missing);
    yield* withIcechunk(async (library) => opening(await openReferences(library, context), context));
    yield* withIcechunk(async (library) => passing(library, await openChunks(library, context), context));
  },
};

/** Starts Icechunk's library for as long as a contest lasts. */
async function* withIcechunk(
  contestOf: (library: Icechunk) => Promise<Contest>,
): AsyncGenerator<Contest, void, void> {
  const ends: (() => unknown)[] = [];
  try {
    yield await contestOf(await openIcechunk({ teardown: (end: () => unknown) => void ends.push(end) }));
  } finally {
    for (const end of ends) await end();
  }
}

/** A repository of many chunks, of which only the first is a file. */
async function openReferences(
  library: Icechunk,
  { size, parent = DATA_DIRECTORY, onProgress }: BenchContext,
) {
  const { side } = SIZES[size];
  const directory = join(parent, `icechunk-references-${side}-v${FORMAT}`);
  onProgress(0, "writing references");
  await makeOnce(directory, async (unfinished) => {
    const path = join(unfinished, "repository");
    const config = { inlineChunkThresholdBytes: 0 };
    const without = await library.create({ path, config, withoutChunks: true });
    const changes = [
      group(""),
      array("many", [2 * side, 2 * side], [2, 2]),
      { numbered: "many", grid: [side, side], byteLength: 16 },
    ];
    await without.commit("references", changes);
    await library.at(path).commit("a chunk", [chunk("many/c/0/0", 4, 7)]);
    makeOldTree(unfinished);
  });
  return library.at(join(directory, "repository"));
}

async function opening(repository: Repository, context: BenchContext): Promise<Contest> {
  const refs = SIZES[context.size].side ** 2;
  const snapshot = (await repository.call("lookupBranch", "main")) as string;
  const [manifest] = (await repository.call("lookupManifestFiles", snapshot)) as readonly { id: string }[];
  const first = Buffer.from(Int32Array.of(7, 7, 7, 7).buffer);
  const measure = (build: Build): Promise<Figures> => {
    const datasets = { many: `icechunk:${repository.path}` };
    return withZpublish({ build, datasets, scratch: context.freshFolder("references") }, async (server) => {
      await fetchBody(server.baseUrl, "/datasets/many/zarr/.zmetadata");
      const before = residentMib(server);
      const began = performance.now();
      await checkSame(server.baseUrl, "/datasets/many/zarr/many/0.0", first);
      const seconds = (performance.now() - began) / 1_000;
      const grown = residentMib(server) - before;
      return { "first chunk, s": seconds, "MiB more": grown, "bytes/reference": (grown * 2 ** 20) / refs };
    });
  };
  return {
    title: `The first chunk of ${refs.toLocaleString("en-US")}`,
    contestants: [
      ...perBuild(context, SERVED, measure),
      {
        name: ICECHUNK,
        measure: async () => ({
          "first chunk, s": (await repository.time(MAIN, ["many/c/0/0"], 1)).seconds,
        }),
      },
      {
        name: MANIFEST,
        measure: async () => ({
          "first chunk, s": (await repository.decompress(`manifests/${manifest!.id}`)).seconds,
        }),
      },
    ],
    compared: "first chunk, s",
    against: [ICECHUNK, MANIFEST],
    aims: [
      { of: SERVED, against: MANIFEST, most: 3 },
      { of: SERVED, figure: "bytes/reference", most: MAX_REF_BYTES },
    ],
    notes: [
      "From the request for the first chunk of a server that has read all metadata to its answer: it reads the manifest. Memory is resident memory, with what the engine has not collected yet.",
      "The last row is Node.js 24's own Zstandard, which decompresses the manifest and makes nothing of it.",
    ],
  };
}

/** The same chunks in a store of Zarr v3, and in a repository. */
async function openChunks(library: Icechunk, { size, parent = DATA_DIRECTORY, onProgress }: BenchContext) {
  const count = SIZES[size].chunks;
  const directory = join(parent, `icechunk-chunks-${count}-v${FORMAT}`);
  const repository = join(directory, REPOSITORY);
  const plain = join(directory, "plain.zarr");
  onProgress(0, "writing chunks");
  await makeOnce(directory, async (unfinished) => {
    const store = join(unfinished, "plain.zarr");
    mkdirSync(join(store, "v", "c"), { recursive: true });
    const items = CHUNK_BYTES / 4;
    for (const change of [group(""), array("v", [items * count], [items])])
      if ("text" in change) writeFileSync(join(store, change.set), change.text);
    for (let at = 0; at < count; at++)
      writeFileSync(join(store, "v", "c", String(at)), randomFillSync(Buffer.alloc(CHUNK_BYTES)));
    const written = await library.create({ path: join(unfinished, REPOSITORY) });
    await written.commit("all", [{ from: store }]);
    makeOldTree(unfinished);
  });
  return { repository: library.at(repository), plain, count };
}

async function passing(
  library: Icechunk,
  { repository, plain, count }: Awaited<ReturnType<typeof openChunks>>,
  context: BenchContext,
): Promise<Contest> {
  const { seconds, freshFolder } = context;
  const numbers = Array.from({ length: count }, (_, at) => at);
  const measure = (id: string, build: Build): Promise<Figures> => {
    const datasets = { [REPOSITORY]: `icechunk:${repository.path}`, plain };
    const scratch = freshFolder("passing");
    return withZpublish({ build, datasets, scratch, args: ["--no-cache"] }, async (server) => {
      const paths = numbers.map((at) => `/datasets/${id}/zarr/v/${at}`);
      for (const at of numbers)
        await checkSame(server.baseUrl, paths[at]!, readFileSync(join(plain, "v", "c", String(at))));
      const load = { paths, connections: AT_ONCE, length: { seconds }, scratch };
      return measureLoad(server, { ...load, unit: "chunks", bytes: CHUNK_BYTES });
    });
  };
  const keys = numbers.map((at) => `v/c/${at}`);
  return {
    title: "Chunks of 256 KiB as they are stored, without a cache",
    contestants: [
      ...perBuild(context, REPOSITORY, (build) => measure(REPOSITORY, build)),
      ...perBuild(context, PLAIN, (build) => measure("plain", build)),
      {
        name: ICECHUNK,
        measure: async () => {
          const { bytes, seconds } = await library.at(repository.path).time(MAIN, keys, AT_ONCE);
          if (bytes !== count * CHUNK_BYTES)
            throw new Error(`expected ${count * CHUNK_BYTES} bytes, received ${bytes}`);
          return { "chunks/s": count / seconds, "MiB/s": bytes / 2 ** 20 / seconds };
        },
      },
    ],
    compared: "chunks/s",
    against: [PLAIN, ICECHUNK],
    aims: [{ of: REPOSITORY, against: PLAIN, least: 0.95 }],
    notes: [
      `"${ICECHUNK}" is its library for Node.js, which reads each chunk once, ${AT_ONCE} at a time, without HTTP and in another process; the others are asked over HTTP.`,
    ],
  };
}
