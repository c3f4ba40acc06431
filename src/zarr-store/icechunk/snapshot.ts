import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import type { ByteStore } from "../../stores/byte-store.js";
import { asDamage, bytesIn, damaged, decodeIcechunkFile, encodeId, type FlatTable } from "./icechunk-file.js";
import { nodeKey } from "./manifest.js";

/** What a snapshot says about itself. */
export interface SnapshotInfo {
  /** Id of the snapshot before; undefined if it is the first, or of format 2. */
  readonly parent: string | undefined;
  /** Time at which it was written, in ISO 8601. */
  readonly time: string;
  readonly message: string;
}

/** A group or an array of a snapshot. */
export interface SnapshotNode {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Text of its `zarr.json`. */
  readonly document: string;
  /** Id of the node, as {@link nodeKey} writes it. */
  readonly node: string;
  readonly isArray: boolean;
  /** Manifests of an array; none of a group. */
  readonly manifests: readonly ManifestExtent[];
}

/** A manifest, and the chunks of one array in it. */
export interface ManifestExtent {
  readonly id: string;
  /** First index along each axis. */
  readonly from: readonly number[];
  /** Index behind the last one along each axis. */
  readonly to: readonly number[];
}

/** `NodeData` of an array, and of a group. */
const ARRAY = 1;
const GROUP = 2;
/** Id, size and number of chunks of a manifest in format 1, with padding. */
const MANIFEST_INFO_BYTES = 32;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Creates the error of a snapshot that is not there. */
export function expired(id: string): ZpublishError {
  const problem = `expected the snapshot ${JSON.stringify(id)}, found none: it has expired, or never was`;
  return new ZpublishError("invalid-metadata", problem);
}

/**
 * Reads a snapshot.
 * @throws ZpublishError `invalid-metadata` if it is damaged or not there; `source-unreadable`, `unsupported`
 */
export async function readSnapshot(
  store: ByteStore,
  id: string,
): Promise<{ readonly info: SnapshotInfo; readonly nodes: readonly SnapshotNode[] }> {
  const key = `snapshots/${id}`;
  const found = await store.read(key);
  if (found === undefined) throw expired(id);
  const { root } = await decodeIcechunkFile(found.bytes, key, "snapshot");
  try {
    if (encodeId(root.struct(0, 12) ?? new Uint8Array(0)) !== id)
      throw damaged(key, "expected the id that is its name, received another");
    const parent = root.struct(1, 12);
    const info = {
      parent: parent && encodeId(parent),
      time: isoTimeOf(root.uint64(3)),
      message: root.text(4),
    };
    const nodes = await runCooperatively(nodesOf(root, key));
    const referred = new Set(nodes.flatMap(({ manifests }) => manifests.map((manifest) => manifest.id)));
    // As Icechunk asserts when it writes: an array that has lost its manifests would read as absent chunks.
    if (![...listedManifests(root)].every((manifest) => referred.has(manifest)))
      throw damaged(key, "expected arrays that refer to all of its manifests, received others");
    return { info, nodes };
  } catch (error) {
    throw asDamage(error, key);
  }
}

/** Yields the ids of all manifests: structs in format 1, tables in format 2. */
function* listedManifests(root: FlatTable): Generator<string, undefined> {
  for (const each of root.tables(7)) yield encodeId(each.struct(0, 12) ?? new Uint8Array(0));
  const { at, length } = root.vector(6, MANIFEST_INFO_BYTES) ?? { at: 0, length: 0 };
  for (let index = 0; index < length; index++)
    yield encodeId(bytesIn(root.view, { at: at + MANIFEST_INFO_BYTES * index, length: 12 }));
}

function* nodesOf(root: FlatTable, key: string): CooperativeTask<readonly SnapshotNode[]> {
  const nodes: SnapshotNode[] = [];
  let last = "";
  for (const each of root.tables(2)) {
    yield;
    each.require(0, 1, 2, 4);
    const path = each.text(1);
    const data = each.table(4);
    const kind = each.uint8(3);
    if (!path.startsWith("/") || data === undefined || (kind !== ARRAY && kind !== GROUP))
      throw damaged(key, `expected a node with data, received ${JSON.stringify(path.slice(0, 200))}`);
    // Icechunk searches them by their bytes, and would not find one elsewhere.
    if (Buffer.compare(Buffer.from(path), Buffer.from(last)) <= 0)
      throw damaged(key, "expected nodes in ascending order of their paths, received others");
    last = path;
    if (kind === ARRAY) data.require(0, 2);
    const manifests = kind === ARRAY ? [...data.tables(2)].map((manifest) => extentOf(manifest)) : [];
    const document = documentOf(each.bytes(2), key, path);
    const node = nodeKey(each.struct(0, 8));
    nodes.push({ path: path.slice(1), document, node, isArray: kind === ARRAY, manifests });
  }
  return nodes;
}

function documentOf(bytes: Uint8Array | undefined, key: string, path: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw damaged(key, `expected the metadata of '${path}' in UTF-8, received other bytes`);
  }
}

function extentOf(manifest: FlatTable): ManifestExtent {
  manifest.require(0, 1);
  const { at, length } = manifest.vector(1, 8) ?? { at: 0, length: 0 };
  const bounds = (offset: number) =>
    Array.from({ length }, (_, axis) => manifest.view.getUint32(at + 8 * axis + offset, true));
  return { id: encodeId(manifest.struct(0, 12) ?? new Uint8Array(0)), from: bounds(0), to: bounds(4) };
}

/** Writes a time as ISO 8601. @param microseconds Since 1970. */
export function isoTimeOf(microseconds: number): string {
  const date = new Date(microseconds / 1_000);
  return Number.isNaN(date.getTime()) ? "" : date.toISOString();
}
