import { createHash } from "node:crypto";
import { Builder } from "flatbuffers";
import { encode } from "flatbuffers/js/flexbuffers.js";
import { encodeId } from "../../src/zarr-store/icechunk/icechunk-file.js";

/** A reference to a chunk: the fields that it has. */
export interface ChunkRefSpec {
  readonly index: readonly number[];
  readonly inline?: Uint8Array;
  readonly offset?: number;
  readonly length?: number;
  /** Name of a chunk file, from which its id is made. */
  readonly chunk?: string;
  readonly location?: string;
  readonly compressed?: Uint8Array;
  readonly etag?: string;
  readonly modified?: number;
}

/** Returns the id that stands for a name, of so many bytes. */
export function idOf(name: string, byteLength = 12): Uint8Array {
  return new Uint8Array(createHash("sha256").update(name).digest().subarray(0, byteLength));
}

/** Returns the name of the file of an id. */
export function fileOf(name: string): string {
  return encodeId(idOf(name));
}

const TYPES = { snapshot: 1, manifest: 2, repo: 6 } as const;

/** Puts the header before a FlatBuffer, which is not compressed. */
export function withHeader(
  type: keyof typeof TYPES,
  format: number,
  payload: Uint8Array,
  compression = 0,
): Uint8Array {
  const writer = "test".padEnd(24);
  return Buffer.concat([
    Buffer.from(`ICE🧊CHUNK${writer}`),
    Uint8Array.of(format, TYPES[type], compression),
    payload,
  ]);
}

/** A field of a table, written before it begins; returns what puts it into the table. */
type Field = ((builder: Builder, slot: number) => void) | undefined;

/** Writes a table of fields by number. */
function table(builder: Builder, fields: readonly Field[]): number {
  builder.startObject(fields.length);
  for (const [slot, field] of fields.entries()) field?.(builder, slot);
  return builder.endObject();
}

const offsetField =
  (offset: number): Field =>
  (builder, slot) =>
    builder.addFieldOffset(slot, offset, 0);
const uint8Field =
  (value: number): Field =>
  (builder, slot) =>
    builder.addFieldInt8(slot, value, -1);
const uint32Field =
  (value: number): Field =>
  (builder, slot) =>
    builder.addFieldInt32(slot, value | 0, 0);
const uint64Field =
  (value: number | bigint): Field =>
  (builder, slot) =>
    builder.addFieldInt64(slot, BigInt(value), 0n);
const structField =
  (bytes: Uint8Array): Field =>
  (builder, slot) => {
    builder.prep(1, bytes.length);
    for (const byte of bytes.toReversed()) builder.writeInt8(byte);
    builder.addFieldStruct(slot, builder.offset(), 0);
  };
const bytesField = (builder: Builder, bytes: Uint8Array): Field =>
  offsetField(builder.createByteVector(bytes));
const textField = (builder: Builder, text: string): Field => offsetField(builder.createString(text));

function vectorField(builder: Builder, offsets: readonly number[]): Field {
  builder.startVector(4, offsets.length, 4);
  for (const offset of offsets.toReversed()) builder.addOffset(offset);
  return offsetField(builder.endVector());
}

/** Writes a vector of unsigned integers, or of pairs of them. */
function integersField(builder: Builder, integers: readonly number[], perItem = 1): Field {
  builder.startVector(4 * perItem, integers.length / perItem, 4);
  for (const integer of integers.toReversed()) builder.addInt32(integer | 0);
  return offsetField(builder.endVector());
}

function finish(builder: Builder, root: number): Uint8Array {
  builder.finish(root);
  return builder.asUint8Array();
}

function refTable(builder: Builder, ref: ChunkRefSpec): number {
  const fields: Field[] = [
    integersField(builder, ref.index),
    ref.inline && bytesField(builder, ref.inline),
    uint64Field(ref.offset ?? 0),
    uint64Field(ref.length ?? 0),
    ref.chunk === undefined ? undefined : structField(idOf(ref.chunk)),
    ref.location === undefined ? undefined : textField(builder, ref.location),
    ref.etag === undefined ? undefined : textField(builder, ref.etag),
    uint32Field(ref.modified ?? 0),
    ref.compressed && bytesField(builder, ref.compressed),
  ];
  return table(builder, fields);
}

/** The references of arrays, by name of their nodes. */
export interface ManifestSpec {
  readonly arrays: Readonly<Record<string, readonly ChunkRefSpec[]>>;
  readonly dictionary?: Uint8Array;
}

/** Encodes a manifest, without header. */
export function encodeManifest(name: string, { arrays, dictionary }: ManifestSpec): Uint8Array {
  const builder = new Builder(1_024);
  const tables = Object.entries(arrays).map(([node, refs]) => {
    const offsets = refs.map((ref) => refTable(builder, ref));
    return table(builder, [structField(idOf(node, 8)), vectorField(builder, offsets)]);
  });
  const written = dictionary && bytesField(builder, dictionary);
  return finish(builder, table(builder, [structField(idOf(name)), vectorField(builder, tables), written]));
}

/** A node of a snapshot. */
export interface NodeSpec {
  /** With a leading slash. */
  readonly path: string;
  readonly document: unknown;
  /** Name of the node. Default: the path. */
  readonly node?: string;
  /** Names of the manifests of an array, and the chunks in them: `[from, to]` along each axis. */
  readonly manifests?: readonly {
    readonly name: string;
    readonly extents: readonly (readonly [number, number])[];
  }[];
}

/** A snapshot. */
export interface SnapshotSpec {
  readonly name: string;
  readonly parent?: string;
  readonly message?: string;
  /** Microseconds since 1970. */
  readonly time?: number;
  readonly nodes: readonly NodeSpec[];
}

/** Encodes a snapshot, without header. */
export function encodeSnapshot({
  name,
  parent,
  message = name,
  time = 1e15,
  nodes,
}: SnapshotSpec): Uint8Array {
  const builder = new Builder(1_024);
  // As Icechunk writes them, which searches by path.
  const sorted = nodes.toSorted((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  const tables = sorted.map(({ path, document, node = path, manifests }) => {
    const refs = (manifests ?? []).map((manifest) =>
      table(builder, [structField(idOf(manifest.name)), integersField(builder, manifest.extents.flat(), 2)]),
    );
    const data = table(
      builder,
      manifests === undefined ? [] : [vectorField(builder, []), undefined, vectorField(builder, refs)],
    );
    return table(builder, [
      structField(idOf(node, 8)),
      textField(builder, path),
      bytesField(builder, Buffer.from(JSON.stringify(document))),
      uint8Field(manifests === undefined ? 2 : 1),
      offsetField(data),
    ]);
  });
  const fields = [
    structField(idOf(name)),
    parent === undefined ? undefined : structField(idOf(parent)),
    vectorField(builder, tables),
    uint64Field(time),
    textField(builder, message),
  ];
  return finish(builder, table(builder, fields));
}

/** A repository of format 1 or 2. */
export interface RepositorySpec {
  /** Default: 2. */
  readonly format?: 1 | 2;
  readonly snapshots: readonly SnapshotSpec[];
  /** Snapshots by name. */
  readonly branches: Readonly<Record<string, string>>;
  readonly tags?: Readonly<Record<string, string>>;
  readonly deletedTags?: readonly string[];
  readonly manifests?: Readonly<Record<string, ManifestSpec>>;
  readonly chunks?: Readonly<Record<string, Uint8Array>>;
  /** Containers of virtual chunks: their URLs by name. */
  readonly containers?: Readonly<Record<string, string>>;
  /** Why the repository is offline. Default: it is online. */
  readonly offline?: string;
}

/** Encodes `repo`, without header. */
export function encodeRepo({
  snapshots,
  branches,
  tags = {},
  containers = {},
  offline,
}: RepositorySpec): Uint8Array {
  const builder = new Builder(1_024);
  const refs = (names: Readonly<Record<string, string>>) =>
    vectorField(
      builder,
      Object.entries(names).map(([name, snapshot]) => {
        const index = snapshots.findIndex((each) => each.name === snapshot);
        return table(builder, [textField(builder, name), uint32Field(index)]);
      }),
    );
  const infos = snapshots.map(({ name, message = name, time = 1e15 }) =>
    table(builder, [structField(idOf(name)), undefined, uint64Field(time), textField(builder, message)]),
  );
  const status = table(builder, [
    uint8Field(offline === undefined ? 0 : 2),
    undefined,
    offline === undefined ? undefined : textField(builder, offline),
  ]);
  const config = encode({
    virtual_chunk_containers: Object.fromEntries(
      Object.entries(containers).map(([name, url]) => [url, { name, url_prefix: url }]),
    ),
  });
  const fields = [
    uint8Field(2),
    ...[
      refs(tags),
      refs(branches),
      vectorField(builder, []),
      vectorField(builder, infos),
      offsetField(status),
    ],
    ...[undefined, vectorField(builder, []), undefined, bytesField(builder, config)],
  ];
  return finish(builder, table(builder, fields));
}

/** Returns the files of a repository by key. */
export function repositoryFiles(spec: RepositorySpec): Readonly<Record<string, Uint8Array>> {
  const { format = 2, snapshots, branches, tags = {}, deletedTags = [], manifests = {}, chunks = {} } = spec;
  const files: Record<string, Uint8Array> = {};
  for (const snapshot of snapshots)
    files[`snapshots/${fileOf(snapshot.name)}`] = withHeader("snapshot", format, encodeSnapshot(snapshot));
  for (const [name, manifest] of Object.entries(manifests))
    files[`manifests/${fileOf(name)}`] = withHeader("manifest", format, encodeManifest(name, manifest));
  for (const [name, bytes] of Object.entries(chunks)) files[`chunks/${fileOf(name)}`] = bytes;
  if (format === 2) return { ...files, repo: withHeader("repo", 2, encodeRepo(spec)) };
  const ref = (snapshot: string) => Buffer.from(JSON.stringify({ snapshot: fileOf(snapshot) }));
  for (const [name, snapshot] of Object.entries(branches))
    files[`refs/branch.${name}/ref.json`] = ref(snapshot);
  for (const [name, snapshot] of Object.entries(tags)) files[`refs/tag.${name}/ref.json`] = ref(snapshot);
  for (const name of deletedTags) files[`refs/tag.${name}/ref.json.deleted`] = new Uint8Array(0);
  return files;
}
