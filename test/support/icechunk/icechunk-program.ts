import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative } from "node:path";
import { createInterface } from "node:readline";
// Of Node.js 22.15 and later; this program runs under 24.
import * as zlib from "node:zlib";

/**
 * Writes and reads Icechunk repositories with Icechunk's own library: reads one `IcechunkCommand` a line as JSON, and answers each with a
 * line, `{ "result": … }` or `{ "error": "…" }`. Runs in the Debian 13 root and imports nothing but Node's modules: see `open-icechunk.ts`.
 */

/** One change of a commit. */
export type Change =
  /** Sets a key of the Zarr store, from text or base64. */
  | { readonly set: string; readonly text: string }
  | { readonly set: string; readonly base64: string }
  | { readonly delete: string }
  /** Sets every file of a Zarr store in a directory. */
  | { readonly from: string }
  /** Sets all chunks of an array of one or two dimensions, each to its number in C order, repeated as int32. */
  | { readonly numbered: string; readonly grid: readonly number[]; readonly byteLength: number }
  /** Sets references to places outside of the repository, for chunks of one array. */
  | { readonly virtual: string; readonly refs: readonly VirtualRef[] }
  /** Moves a node, alone in its commit. */
  | { readonly move: string; readonly to: string };

/** A place outside of a repository, and the chunk that it is. */
export interface VirtualRef {
  readonly index: readonly number[];
  readonly location: string;
  readonly offset: number;
  readonly length: number;
  readonly etagChecksum?: string;
  /** Milliseconds since 1970, of which Icechunk keeps whole seconds. */
  readonly lastModified?: number;
}

/** What of a repository is read. */
export type At = { readonly branch: string } | { readonly tag: string } | { readonly snapshotId: string };

/** Where a repository lies, and how it is opened. */
interface Place {
  readonly path: string;
  /** Icechunk's `RepositoryConfig`. */
  readonly config?: object | undefined;
  /** Prefixes of virtual chunks that may be read. */
  readonly authorize?: readonly string[] | undefined;
  /** Leaves the files of chunks out, so that a repository of 10⁶ of them is quick to write. */
  readonly withoutChunks?: boolean | undefined;
}

/** A line of the program's input. */
export type IcechunkCommand = Place &
  (
    | { readonly op: "create"; readonly specVersion?: number | undefined }
    | {
        readonly op: "commit";
        readonly branch: string;
        readonly message: string;
        readonly changes: readonly Change[];
        readonly how?: "commit" | "amend" | undefined;
      }
    /** Two commits of sessions that began at the same snapshot: the second one is rebased on the first. */
    | {
        readonly op: "race";
        readonly branch: string;
        readonly first: readonly Change[];
        readonly second: readonly Change[];
      }
    /** Calls a method of Icechunk's `Repository`. */
    | { readonly op: "call"; readonly method: string; readonly args: readonly unknown[] }
    /** Reads keys of the Zarr store as base64, null if absent; all keys unless some are named. */
    | { readonly op: "read"; readonly at: At; readonly keys?: readonly string[] | undefined }
    /** Writes the files of metadata again: without compression, or as Icechunk compresses them. */
    | { readonly op: "inflate" }
    | { readonly op: "deflate" }
    /** Reads a file of metadata and decompresses it, and returns bytes and seconds. */
    | { readonly op: "decompress"; readonly file: string }
    /** Reads chunks, so many at a time, and returns bytes and seconds. */
    | {
        readonly op: "time";
        readonly at: At;
        readonly keys: readonly string[];
        readonly concurrency: number;
      }
  );

interface Store {
  get(key: string): Promise<Uint8Array | null>;
  set(key: string, value: Uint8Array): Promise<void>;
  delete(key: string): Promise<void>;
  list(): Promise<string[]>;
  setVirtualRefs(array: string, refs: readonly object[], validate: boolean): Promise<number[][] | null>;
}

interface Session {
  readonly store: Store;
  commit(message: string): Promise<string>;
  amend(message: string): Promise<string>;
  rebase(): Promise<void>;
  moveNode(from: string, to: string): Promise<void>;
}

interface Repository {
  writableSession(branch: string): Promise<Session>;
  rearrangeSession(branch: string): Promise<Session>;
  readonlySession(at: At): Promise<Session>;
  saveConfig(): Promise<void>;
}

type Backend = Readonly<Record<string, (...args: never[]) => Promise<unknown>>>;

/** What the tests use of `@earthmover/icechunk`. */
interface Icechunk {
  readonly Storage: {
    newLocalFilesystem(path: string): Promise<object>;
    newCustom(backend: Backend): object;
  };
  readonly Repository: {
    create(
      storage: object,
      config?: object,
      specVersion?: number,
      authorize?: object,
      checkCleanRoot?: boolean,
    ): Promise<Repository>;
    open(storage: object, config?: object, authorize?: object): Promise<Repository>;
  };
}

const { zstdCompressSync, zstdDecompressSync } = zlib as unknown as Record<
  "zstdCompressSync" | "zstdDecompressSync",
  (bytes: Uint8Array) => Uint8Array
>;

const icechunk = createRequire(join(process.argv[2] as string, "/"))("@earthmover/icechunk") as Icechunk;

/** Of a header, which compression is the last byte of. */
const HEADER_BYTES = 39;

async function run(command: IcechunkCommand): Promise<unknown> {
  if (command.op === "decompress") {
    const begin = performance.now();
    const bytes = zstdDecompressSync(readFileSync(join(command.path, command.file)).subarray(HEADER_BYTES));
    return { bytes: bytes.byteLength, seconds: (performance.now() - begin) / 1000 };
  }
  if (command.op === "inflate" || command.op === "deflate") return recompress(command.path, command.op);
  const { path, config, authorize } = command;
  const storage = command.withoutChunks
    ? storageWithoutChunks(path)
    : await icechunk.Storage.newLocalFilesystem(path);
  const access = authorize && Object.fromEntries(authorize.map((prefix) => [prefix, null]));
  if (command.op === "create") {
    await icechunk.Repository.create(storage, config, command.specVersion, access);
    return null;
  }
  const repository = await icechunk.Repository.open(storage, config, access);
  if (config !== undefined) await repository.saveConfig();
  if (command.op === "call") {
    const methods = repository as unknown as Record<string, (...args: unknown[]) => Promise<unknown>>;
    return (await methods[command.method]?.(...command.args)) ?? null;
  }
  if (command.op === "read") return read(repository, command.at, command.keys);
  if (command.op === "time") return time(repository, command);
  return command.op === "race" ? race(repository, command) : commit(repository, command);
}

async function commit(
  repository: Repository,
  { branch, message, changes, how = "commit" }: IcechunkCommand & { readonly op: "commit" },
): Promise<string> {
  const isMove = changes.some((change) => "move" in change);
  const session = await (isMove ? repository.rearrangeSession(branch) : repository.writableSession(branch));
  for (const change of changes) await apply(session, change);
  return session[how](message);
}

async function race(
  repository: Repository,
  command: IcechunkCommand & { readonly op: "race" },
): Promise<string[]> {
  const first = await repository.writableSession(command.branch);
  const second = await repository.writableSession(command.branch);
  for (const change of command.first) await apply(first, change);
  for (const change of command.second) await apply(second, change);
  const before = await first.commit("first");
  const refusal = await second.commit("second, at once").catch((error: unknown) => error);
  if (!(refusal instanceof Error)) throw new Error("expected the second commit to be refused at first");
  await second.rebase();
  return [before, await second.commit("second, rebased")];
}

/** A directory that keeps everything but chunks, for one writer at a time. */
function storageWithoutChunks(path: string): object {
  const version = { etag: "1" };
  const read = (name: string) => {
    try {
      return readFileSync(join(path, name));
    } catch {
      throw new Error("ObjectNotFound");
    }
  };
  const put = (name: string, bytes: Uint8Array) => {
    if (!name.startsWith("chunks/")) {
      mkdirSync(dirname(join(path, name)), { recursive: true });
      writeFileSync(join(path, name), bytes);
    }
    return { kind: "updated", newVersion: version };
  };
  type Named = { readonly path: string };
  return icechunk.Storage.newCustom({
    canWrite: async () => true,
    getObjectRange: async (_: null, args: Named & { rangeStart?: number; rangeEnd?: number }) => ({
      data: read(args.path).subarray(args.rangeStart ?? 0, args.rangeEnd),
      version,
    }),
    putObject: async (_: null, args: Named & { data: Uint8Array }) => put(args.path, args.data),
    copyObject: async (_: null, { from, to }: { from: string; to: string }) => put(to, read(from)),
    listObjects: async () => [],
    deleteBatch: async () => ({ deletedObjects: 0, deletedBytes: 0 }),
    getObjectLastModified: async () => new Date(),
    getObjectConditional: async (_: null, args: Named) => ({
      kind: "modified",
      data: read(args.path),
      newVersion: version,
    }),
  });
}

async function apply(session: Session, change: Change): Promise<void> {
  const { store } = session;
  if ("move" in change) return session.moveNode(change.move, change.to);
  if ("delete" in change) return store.delete(change.delete);
  if ("set" in change) {
    const value = "text" in change ? Buffer.from(change.text) : Buffer.from(change.base64, "base64");
    return store.set(change.set, value);
  }
  if ("from" in change) {
    const files = readdirSync(change.from, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name))
      .sort((a, b) => Number(isMetadata(b)) - Number(isMetadata(a)));
    const encodings = new Map<string, KeyEncoding>();
    for (const file of files) {
      const key = relative(change.from, file);
      if (isMetadata(file))
        await store.set(key, withDefaultKeys(readFileSync(file), dirname(key), encodings));
      else await store.set(defaultKey(key, encodings), readFileSync(file));
    }
    return;
  }
  if ("virtual" in change) {
    const refs = change.refs.map(({ lastModified, ...ref }) => ({
      ...ref,
      ...(lastModified !== undefined && { lastModified: new Date(lastModified) }),
    }));
    const failed = await store.setVirtualRefs(change.virtual, refs, true);
    if (failed !== null) throw new Error(`Icechunk refused the references of ${JSON.stringify(failed)}`);
    return;
  }
  const { numbered, grid, byteLength } = change;
  const count = grid.reduce((product, length) => product * length, 1);
  for (let begin = 0; begin < count; begin += 1000) {
    const end = Math.min(count, begin + 1000);
    const coords = (number: number) =>
      grid.length === 1 ? number : `${Math.floor(number / grid[1]!)}/${number % grid[1]!}`;
    await Promise.all(
      Array.from({ length: end - begin }, (_, index) =>
        store.set(
          `${numbered}/c/${coords(begin + index)}`,
          Buffer.from(new Int32Array(byteLength / 4).fill(begin + index).buffer),
        ),
      ),
    );
  }
}

/** How the keys of an array's chunks are made. */
interface KeyEncoding {
  readonly name: string;
  readonly configuration?: { readonly separator?: string };
  readonly isScalar?: boolean;
}

/** Writes down the encoding of an array's keys, and replaces it by the only one that Icechunk knows: `c/1/2`. */
function withDefaultKeys(bytes: Uint8Array, path: string, encodings: Map<string, KeyEncoding>): Uint8Array {
  // JSON has no such numbers, which zarr-python writes into attributes; Icechunk refuses them.
  const text = Buffer.from(bytes)
    .toString()
    .replace(/:\s*-?(?:NaN|Infinity)(?=[\s,}])/g, ": null");
  const own = /"chunk_key_encoding":\s*(\{[^{}]*(?:\{[^{}]*\})?[^{}]*\})/;
  const found = /"node_type":\s*"array"/.test(text) ? own.exec(text)?.[1] : undefined;
  if (found === undefined) return Buffer.from(text);
  const isScalar = /"shape":\s*\[\s*\]/.test(text);
  encodings.set(path, { ...(JSON.parse(found) as KeyEncoding), isScalar });
  return Buffer.from(text.replace(found, '{"name": "default"}'));
}

function defaultKey(key: string, encodings: ReadonlyMap<string, KeyEncoding>): string {
  let path = dirname(key);
  while (!encodings.has(path) && path !== ".") path = dirname(path);
  const { name, configuration, isScalar } = encodings.get(path) as KeyEncoding;
  if (isScalar) return `${path}/c`;
  const separator = configuration?.separator ?? (name === "v2" ? "." : "/");
  const below = key.slice(path.length + 1);
  const coords = below.split(separator);
  if (name === "default") coords.shift();
  return [path, "c", ...coords].join("/");
}

/** Arrays have to be there before their chunks. */
function isMetadata(file: string): boolean {
  return file.endsWith("zarr.json");
}

async function read(repository: Repository, at: At, keys?: readonly string[]): Promise<object> {
  const { store } = await repository.readonlySession(at);
  const values: Record<string, string | null> = {};
  for (const key of keys ?? (await store.list())) {
    const value = await store.get(key);
    values[key] = value === null ? null : Buffer.from(value).toString("base64");
  }
  return values;
}

function recompress(path: string, op: "inflate" | "deflate"): null {
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true })) {
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile() || /\/(chunks|refs)\/|\.yaml$/.test(file)) continue;
    const bytes = readFileSync(file);
    const rest = bytes.subarray(HEADER_BYTES);
    const compression = op === "inflate" ? 0 : 1;
    if (bytes[HEADER_BYTES - 1] === compression) continue;
    bytes[HEADER_BYTES - 1] = compression;
    const other = op === "inflate" ? zstdDecompressSync(rest) : zstdCompressSync(rest);
    writeFileSync(file, Buffer.concat([bytes.subarray(0, HEADER_BYTES), other]));
  }
  return null;
}

async function time(
  repository: Repository,
  { at, keys, concurrency }: IcechunkCommand & { readonly op: "time" },
): Promise<object> {
  const { store } = await repository.readonlySession(at);
  const left = [...keys];
  let bytes = 0;
  const begin = performance.now();
  const readRest = async () => {
    for (let key = left.pop(); key !== undefined; key = left.pop()) {
      const value = await store.get(key);
      bytes += value?.byteLength ?? 0;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, readRest));
  return { bytes, seconds: (performance.now() - begin) / 1000 };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await run(JSON.parse(line) as IcechunkCommand).then(
    (result) => ({ result }),
    (error: unknown) => ({ error: error instanceof Error ? error.message : String(error) }),
  );
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
// Storage in JavaScript keeps the process alive.
process.exit();
