import type { FileBlocks } from "../formats/file-format.js";
import { invalidFile, unsupportedFile } from "./byte-cursor.js";
import { Hdf5Input } from "./hdf5-input.js";
import type { Hdf5Attribute, Hdf5Dataset, Hdf5File, Hdf5Group } from "./hdf5-model.js";
import { ObjectReader } from "./object-reader.js";
import type { Hdf5Link } from "./parse-link.js";
import { readAttributes } from "./read-attributes.js";
import { readDataset } from "./read-dataset.js";
import { readLinks } from "./read-links.js";
import { type HeaderMessage, MESSAGE, readObjectHeader } from "./read-object-header.js";
import { readSuperblock } from "./read-superblock.js";

/** Maximum depth of groups. A path of a request has at most 1,024 bytes. */
const MAX_DEPTH = 256;

/** Maximum number of paths that lead to objects. Links that share groups can make more of them than there are objects. */
const MAX_PATHS = 1_000_000;

/** Maximum number of links to follow from a path, one soft link after the other. */
const MAX_HOPS = 16;

/** A group whose links are still being read. */
interface OpenGroup extends Hdf5Group {
  readonly attributes: Map<string, Hdf5Attribute>;
  readonly groups: Map<string, Hdf5Group>;
  readonly datasets: Map<string, Hdf5Dataset>;
}

/** Object of a link: a group, a dataset, or a committed datatype, which is not shown. */
type HdfObject =
  | { readonly kind: "group"; readonly group: OpenGroup; readonly paths: { count: number; isOpen: boolean } }
  | { readonly kind: "dataset"; readonly dataset: Hdf5Dataset }
  | { readonly kind: "type" }
  | { readonly kind: "refused"; readonly reason: string };

/** A link that is followed when all groups are read. */
interface SoftLink {
  readonly parent: OpenGroup;
  readonly name: string;
  readonly target: string;
}

/**
 * Reads the metadata of an HDF5 file.
 * @throws ZpublishError `invalid-metadata` if it is none, is cut short, or its root cannot be read; `unsupported`,
 * `source-unreadable`, `source-changed`
 */
export async function readHdf5(file: FileBlocks): Promise<Hdf5File> {
  const superblock = await readSuperblock(file);
  const input = new Hdf5Input(file, superblock.baseAddress);
  if (superblock.isOpenForWriting) {
    input.warnings.push("the file is open for writing: chunks that are being written may be missing");
  }
  const reader = new ObjectReader(input);
  if (superblock.extensionAddress !== null) await readExtension(reader, superblock.extensionAddress);
  const walk = new FileWalk(reader);
  return {
    root: await walk.readRoot(superblock.rootAddress),
    refused: walk.refused,
    warnings: input.warnings,
  };
}

async function readExtension(reader: ObjectReader, address: number): Promise<void> {
  for (const message of await readObjectHeader(reader.input, address)) {
    if (message.type === MESSAGE.sharedTable) await reader.shared.readTable(message);
    else if (message.type === MESSAGE.driverInfo) {
      throw unsupportedFile("the file is one of several, written by a driver of its own");
    }
  }
}

/** Walk over all objects of a file. Each is parsed once. */
class FileWalk {
  readonly refused: { readonly path: string; readonly reason: string }[] = [];
  private readonly objects = new Map<number, HdfObject>();
  private readonly softLinks: SoftLink[] = [];

  constructor(private readonly reader: ObjectReader) {}

  async readRoot(address: number): Promise<Hdf5Group> {
    const messages = await this.reader.shared.readObject(address);
    if (!isGroup(messages)) throw invalidFile("expected a group as root, received another object");
    const root = await this.readGroup(address, "/", messages, 0);
    for (const link of this.softLinks) this.followSoftLink(root, link);
    return root;
  }

  private async readGroup(
    address: number,
    path: string,
    messages: readonly HeaderMessage[],
    depth: number,
  ): Promise<OpenGroup> {
    const { reader } = this;
    const group: OpenGroup = {
      address: address + reader.input.baseAddress,
      path,
      attributes: await readAttributes(reader, path, messages),
      groups: new Map(),
      datasets: new Map(),
    };
    const paths = { count: 1, isOpen: true };
    this.objects.set(address, { kind: "group", group, paths });
    for (const link of await readLinks(reader.input, messages)) {
      if (reader.input.isPauseDue) await reader.input.pause();
      await this.addLink(group, link, depth, paths);
    }
    paths.isOpen = false;
    return group;
  }

  private async addLink(
    parent: OpenGroup,
    link: Hdf5Link,
    depth: number,
    paths: { count: number },
  ): Promise<void> {
    const { name } = link;
    const path = pathIn(parent, name);
    if (parent.groups.has(name) || parent.datasets.has(name))
      return void this.refuse(path, "the name is there twice");
    if (link.kind === "other") return void this.refuse(path, link.reason);
    if (link.kind === "soft") {
      this.softLinks.push({ parent, name, target: link.target });
      return;
    }
    const object = this.objects.get(link.address) ?? (await this.readObject(link.address, path, depth + 1));
    const added = object.kind === "group" ? object.paths.count : 1;
    if (object.kind === "refused") this.refuse(path, object.reason);
    else if (object.kind === "type") return;
    else if (object.kind === "group" && object.paths.isOpen)
      this.refuse(path, "it links to a group that contains it");
    else if (paths.count + added > MAX_PATHS)
      this.refuse(path, `more than ${MAX_PATHS} paths lead to objects`);
    else {
      paths.count += added;
      if (object.kind === "group") parent.groups.set(name, object.group);
      else parent.datasets.set(name, object.dataset);
    }
  }

  private async readObject(address: number, path: string, depth: number): Promise<HdfObject> {
    let object: HdfObject;
    try {
      const messages = await this.reader.shared.readObject(address);
      if (isGroup(messages)) {
        if (depth > MAX_DEPTH)
          throw unsupportedFile(`expected at most ${MAX_DEPTH} groups inside each other`);
        await this.readGroup(address, path, messages, depth);
        return this.objects.get(address) as HdfObject;
      }
      const isType = !messages.some(({ type }) => type === MESSAGE.layout || type === MESSAGE.dataspace);
      if (isType && messages.some(({ type }) => type === MESSAGE.datatype)) object = { kind: "type" };
      else object = { kind: "dataset", dataset: await readDataset(this.reader, address, path, messages) };
    } catch (error) {
      object = { kind: "refused", reason: this.reader.reasonOf(error) };
    }
    this.objects.set(address, object);
    return object;
  }

  /** Follows a soft link to a dataset. Groups are refused, because links could make circles of them. */
  private followSoftLink(root: Hdf5Group, { parent, name, target }: SoftLink): void {
    const path = pathIn(parent, name);
    if (parent.groups.has(name) || parent.datasets.has(name))
      return void this.refuse(path, "the name is there twice");
    const found = this.resolvePath(root, parent, target, 0);
    if (found?.kind === "dataset") parent.datasets.set(name, found.dataset);
    else
      this.refuse(
        path,
        `it is a soft link to ${JSON.stringify(target)}, which is ${found ? "a group" : "no dataset"}`,
      );
  }

  private resolvePath(
    root: Hdf5Group,
    parent: Hdf5Group,
    target: string,
    hops: number,
  ):
    | { readonly kind: "group"; readonly group: Hdf5Group }
    | { readonly kind: "dataset"; readonly dataset: Hdf5Dataset }
    | undefined {
    if (hops > MAX_HOPS) return undefined;
    const steps = target.split("/").filter((step) => step !== "" && step !== ".");
    let group = target.startsWith("/") ? root : parent;
    for (const [i, step] of steps.entries()) {
      const isLast = i === steps.length - 1;
      const dataset = group.datasets.get(step);
      if (dataset !== undefined) return isLast ? { kind: "dataset", dataset } : undefined;
      let next = group.groups.get(step);
      if (next === undefined) {
        const link = this.softLinks.find((soft) => soft.parent === group && soft.name === step);
        const found = link && this.resolvePath(root, link.parent, link.target, hops + 1);
        if (found?.kind === "dataset") return isLast ? found : undefined;
        next = found?.group;
      }
      if (next === undefined) return undefined;
      group = next;
    }
    return { kind: "group", group };
  }

  private refuse(path: string, reason: string): void {
    this.refused.push({ path: path.slice(1), reason });
  }
}

function isGroup(messages: readonly HeaderMessage[]): boolean {
  return messages.some(
    ({ type }) =>
      type === MESSAGE.symbolTable ||
      type === MESSAGE.linkInfo ||
      type === MESSAGE.link ||
      type === MESSAGE.groupInfo,
  );
}

function pathIn(parent: Hdf5Group, name: string): string {
  return parent.path === "/" ? `/${name}` : `${parent.path}/${name}`;
}
