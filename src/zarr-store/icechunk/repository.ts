import { toReference } from "flatbuffers/js/flexbuffers.js";
import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { joined } from "../../event-loop/joined.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { workThrough } from "../../event-loop/work-through.js";
import { isJsonObject } from "../../json/json-value.js";
import { parseJson } from "../../json/parse-json.js";
import type { ByteStore, ObjectVersion } from "../../stores/byte-store.js";
import type { NamedVersion } from "../../zarr/stored-tree.js";
import {
  asDamage,
  damaged,
  decodeIcechunkFile,
  encodeId,
  FILE_HEADER_BYTES,
  type FlatTable,
  isIcechunkFile,
} from "./icechunk-file.js";
import { expired, isoTimeOf, readSnapshot, type SnapshotInfo } from "./snapshot.js";

/** Key of the one object of formats 2 and 2.1 that changes. */
const REPO = "repo";
/** Object that every repository of format 1 has. */
const MAIN = "refs/branch.main/ref.json";

/** Objects of which a repository has one, and which changes with it. */
export const REPOSITORY_OBJECTS: readonly string[] = [REPO, MAIN];

/** A branch, tag or snapshot. */
export interface RepositoryRef {
  readonly kind: "branch" | "tag" | "snapshot";
  readonly name: string;
}

/** Tells whether names directly below a prefix are those of a repository. */
export function looksLikeRepository(names: readonly string[]): boolean {
  return names.includes("snapshots") && (names.includes(REPO) || names.includes("refs"));
}

/** Tells whether a store has a repository at its root. @throws ZpublishError `source-unreadable` */
export async function isRepository(store: ByteStore): Promise<boolean> {
  const range = { offset: 0, byteLength: FILE_HEADER_BYTES };
  const head = await store.read(REPO, { range }).catch((error: unknown) => {
    // It is shorter than a header, or the directory of a group of that name.
    if (!(error instanceof ZpublishError)) throw error;
    return undefined;
  });
  return head === undefined ? (await store.stat(MAIN)) !== undefined : isIcechunkFile(head.bytes);
}

/** What names lead to at present. */
export interface Resolved {
  /** Id of the snapshot. */
  readonly snapshot: string;
  /** Major number of the format. */
  readonly format: 1 | 2;
}

/** Branches, tags and snapshots of a repository. */
export interface Repository {
  /**
   * Finds the snapshot that a name leads to, with one conditional request.
   * @throws ZpublishError `invalid-metadata` if there is none of that name; `source-unreadable`, `unsupported`
   */
  resolve(ref: RepositoryRef): Promise<Resolved>;
  /** Names and URLs of the places of virtual chunks, as the repository says. None in format 1. */
  readonly containers: ReadonlyMap<string, string>;
  /** As {@link "../../zarr/stored-tree.js".StoredVersions.list}. */
  list(): Promise<readonly NamedVersion[]>;
  /** Finds a tag, or else a snapshot, by its name; undefined if there is none. */
  find(name: string): Promise<RepositoryRef | undefined>;
}

/** The content of `repo`. */
interface RepoInfo {
  readonly version: ObjectVersion;
  readonly branches: ReadonlyMap<string, string>;
  readonly tags: ReadonlyMap<string, string>;
  readonly snapshots: ReadonlyMap<string, SnapshotInfo>;
  readonly containers: ReadonlyMap<string, string>;
  readonly listed: readonly NamedVersion[];
}

/** A reference file of format 1. */
interface RefFile {
  readonly version: ObjectVersion;
  readonly snapshot: string;
}

const SNAPSHOT_ID = /^[0-9A-Z]{20}$/;
/** Bytes of a name of format 1, which a file has; longer ones are no names. */
const MAX_NAME_BYTES = 250;
/** Snapshots of format 1 that are listed: each is a file that has to be read. */
const MAX_LISTED = 1_000;
const READ_AT_ONCE = 8;

/** Creates the names of the repository in a store, none of which is read yet. */
export function createRepository(store: ByteStore): Repository {
  let info: RepoInfo | undefined;
  const refFiles = new Map<string, RefFile>();
  /** Snapshots of format 1, which never change. */
  const snapshots = new Map<string, SnapshotInfo>();
  let listed: readonly NamedVersion[] = [];

  /** Reads `repo` if it has changed; undefined if there is none. */
  async function readInfo(): Promise<RepoInfo | undefined> {
    const found = info === undefined ? await store.read(REPO) : await store.readIfChanged(REPO, info.version);
    if (found === "unchanged") return info;
    if (found === undefined && info !== undefined)
      throw new ZpublishError("source-unreadable", `'${REPO}' is no longer there`);
    if (found !== undefined) info = await decodeRepo(found.bytes, found.version);
    return info;
  }

  /** Reads a reference file of format 1 if it has changed; undefined if there is none, or its tag was deleted. */
  async function readRefFile(name: string): Promise<string | undefined> {
    const key = `refs/${name}/ref.json`;
    const known = refFiles.get(key);
    const found = known === undefined ? await store.read(key) : await store.readIfChanged(key, known.version);
    if (found === "unchanged") return known?.snapshot;
    refFiles.delete(key);
    // If the format was raised, the others are gone, too, and there is `repo`.
    if (found === undefined && known !== undefined) refFiles.clear();
    if (found === undefined) return undefined;
    if (name.startsWith("tag.") && (await store.stat(`${key}.deleted`)) !== undefined) return undefined;
    const snapshot = parseRef(found.bytes, key);
    refFiles.set(key, { version: found.version, snapshot });
    return snapshot;
  }

  /** Names of branches and tags of format 1; none if the store cannot be listed. */
  async function namesOfFiles(): Promise<readonly string[]> {
    return ((await store.list?.("refs/"))?.prefixes ?? [])
      .filter((name) => /^(?:branch|tag)\../.test(name))
      .sort();
  }

  async function unknown({ kind, name }: RepositoryRef): Promise<ZpublishError> {
    const files = info === undefined ? await namesOfFiles() : [];
    if (info === undefined && files.length === 0 && (await store.stat(MAIN)) === undefined)
      return new ZpublishError(
        "invalid-metadata",
        `it is no Icechunk repository: expected '${REPO}' or '${MAIN}' in it, found neither`,
      );
    const listed = info?.listed ?? (await listFiles());
    const names = listed.filter((each) => each.kind === kind).map((each) => JSON.stringify(each.name));
    const some = `${names.slice(0, 8).join(", ")}${names.length > 8 ? ", …" : ""}`;
    const expected = names.length === 0 ? `a ${kind} that is there` : `a ${kind} among ${some}`;
    return new ZpublishError("invalid-metadata", `expected ${expected}, received ${JSON.stringify(name)}`);
  }

  async function listFiles(): Promise<readonly NamedVersion[]> {
    const found: NamedVersion[] = [];
    const heads = new Set<string>();
    await workThrough(await namesOfFiles(), READ_AT_ONCE, async (each) => {
      const snapshot = await readRefFile(each);
      if (snapshot === undefined) return;
      heads.add(snapshot);
      const kind = each.startsWith("tag.") ? "tag" : "branch";
      found.push({ kind, name: each.slice(kind.length + 1), snapshot, time: "", message: "" });
    });
    const seen = new Map<string, SnapshotInfo>();
    await workThrough(heads, READ_AT_ONCE, async (id, add) => {
      if (seen.has(id) || seen.size >= MAX_LISTED) return;
      const snapshot = snapshots.get(id) ?? (await readSnapshot(store, id)).info;
      snapshots.set(id, snapshot);
      seen.set(id, snapshot);
      if (snapshot.parent !== undefined) add([snapshot.parent]);
    });
    return runCooperatively(versionsOf(found, seen));
  }

  return {
    async resolve(ref) {
      const { kind, name } = ref;
      const read = refFiles.size > 0 ? undefined : await readInfo();
      if (kind === "snapshot") {
        if (read === undefined ? !SNAPSHOT_ID.test(name) : !read.snapshots.has(name)) throw expired(name);
        return { snapshot: name, format: read === undefined ? 1 : 2 };
      }
      const snapshot =
        read === undefined
          ? await readRefFile(`${kind}.${name}`)
          : (kind === "branch" ? read.branches : read.tags).get(name);
      if (snapshot === undefined) throw await unknown(ref);
      return { snapshot, format: read === undefined ? 1 : 2 };
    },
    async find(name) {
      const read = refFiles.size > 0 ? undefined : await readInfo();
      if (read === undefined && Buffer.byteLength(name) > MAX_NAME_BYTES) return undefined;
      const isTag =
        read === undefined ? (await readRefFile(`tag.${name}`)) !== undefined : read.tags.has(name);
      if (isTag) return { kind: "tag", name };
      const isSnapshot =
        read === undefined
          ? SNAPSHOT_ID.test(name) && (await store.stat(`snapshots/${name}`)) !== undefined
          : read.snapshots.has(name);
      return isSnapshot ? { kind: "snapshot", name } : undefined;
    },
    get containers() {
      return info?.containers ?? new Map();
    },
    list: joined(async () => {
      const read = refFiles.size > 0 ? undefined : await readInfo();
      if (read !== undefined) return read.listed;
      const next = await listFiles();
      if (JSON.stringify(next) !== JSON.stringify(listed)) listed = next;
      return listed;
    }),
  };
}

function parseRef(bytes: Uint8Array, key: string): string {
  const text = Buffer.from(bytes).toString();
  let snapshot: unknown;
  try {
    const document = parseJson(text);
    snapshot = isJsonObject(document) ? document.snapshot : undefined;
  } catch {
    // What was received says it.
  }
  if (typeof snapshot === "string" && SNAPSHOT_ID.test(snapshot)) return snapshot;
  throw damaged(key, `expected {"snapshot": …}, received ${JSON.stringify(text.slice(0, 100))}`);
}

const AVAILABILITY = ["online", "read-only", "offline"];

/** @throws ZpublishError `invalid-metadata`, `unsupported`; `source-unreadable` if its owner has taken it offline */
async function decodeRepo(bytes: Uint8Array, version: ObjectVersion): Promise<RepoInfo> {
  const { root } = await decodeIcechunkFile(bytes, REPO, "repo");
  try {
    return await runCooperatively(repoSteps(root, version));
  } catch (error) {
    throw asDamage(error, REPO);
  }
}

/** A repository may have 100,000 snapshots. */
function* repoSteps(root: FlatTable, version: ObjectVersion): CooperativeTask<RepoInfo> {
  const status = root.table(5);
  const availability = AVAILABILITY[status?.uint8(0) ?? 0] ?? "offline";
  if (availability === "offline") {
    const reason = status?.text(2) ?? "";
    throw new ZpublishError(
      "source-unreadable",
      `expected a repository that is online, found it offline${reason === "" ? "" : `: ${reason.slice(0, 200)}`}`,
    );
  }
  const ids: string[] = [];
  const snapshots = new Map<string, SnapshotInfo>();
  for (const each of root.tables(4)) {
    yield;
    const id = encodeId(each.struct(0, 12) ?? new Uint8Array(0));
    ids.push(id);
    snapshots.set(id, { parent: undefined, time: isoTimeOf(each.uint64(2)), message: each.text(3) });
  }
  const names: NamedVersion[] = [];
  function* namesOf(kind: "branch" | "tag", field: number): CooperativeTask<ReadonlyMap<string, string>> {
    const found = new Map<string, string>();
    for (const each of root.tables(field)) {
      yield;
      const name = each.text(0);
      const snapshot = ids[each.uint32(1)];
      if (snapshot === undefined) throw damaged(REPO, `expected the snapshot of '${name}', found none`);
      found.set(name, snapshot);
      names.push({ kind, name, snapshot, time: "", message: "" });
    }
    return found;
  }
  const [tags, branches] = [yield* namesOf("tag", 1), yield* namesOf("branch", 2)];
  const listed = yield* versionsOf(names, snapshots);
  return { version, branches, tags, snapshots, containers: containersOf(root), listed };
}

const KINDS: readonly NamedVersion["kind"][] = ["branch", "tag", "snapshot"];

/** Adds times and messages to names, and the snapshots themselves: each kind from the newest on. */
function* versionsOf(
  names: readonly NamedVersion[],
  snapshots: ReadonlyMap<string, SnapshotInfo>,
): CooperativeTask<readonly NamedVersion[]> {
  const all: NamedVersion[] = [];
  for (const each of names) {
    yield;
    const { time = "", message = "" } = snapshots.get(each.snapshot) ?? {};
    all.push(Object.freeze({ ...each, time, message }));
  }
  for (const [id, { time, message }] of snapshots) {
    yield;
    all.push(Object.freeze({ kind: "snapshot", name: id, snapshot: id, time, message }));
  }
  const newest = (a: string, b: string) => (a < b ? 1 : a > b ? -1 : 0);
  const sorted = yield* sortCooperatively(
    all,
    (a, b) =>
      KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || newest(a.time, b.time) || -newest(a.name, b.name),
  );
  return Object.freeze(sorted);
}

/** Reads the containers of virtual chunks from the configuration: an object in FlexBuffers. What cannot be understood has none. */
function containersOf(root: FlatTable): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const config = root.bytes(9);
  if (config === undefined) return found;
  try {
    const { virtual_chunk_containers: containers } = toReference(config.slice().buffer).toObject() as {
      virtual_chunk_containers?: Record<string, { name?: unknown; url_prefix?: unknown }>;
    };
    for (const [prefix, { name, url_prefix: url = prefix }] of Object.entries(containers ?? {}))
      if (typeof url === "string")
        found.set(typeof name === "string" ? name : url, url.endsWith("/") ? url : `${url}/`);
  } catch {
    // A location in a container then says that there is none of its name.
  }
  return found;
}
