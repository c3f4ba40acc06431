import type { FileBlocks } from "../file-format.js";
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
import { resolvePath, type SoftLinks } from "./resolve-path.js";

/** Maximum depth of groups. A path of a request has at most 1,024 bytes. */
const MAX_DEPTH = 256;

/** Maximum number of paths that lead to objects. Links that share groups can make more of them than there are objects. */
const MAX_PATHS = 1_000_000;

/** Maximum length of a path. Requests have shorter ones. */
const MAX_PATH_LENGTH = 4096;

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
  private readonly softLinks: SoftLinks = new Map();

  constructor(private readonly reader: ObjectReader) {}

  async readRoot(address: number): Promise<Hdf5Group> {
    const messages = await this.reader.shared.readObject(address);
    if (!isGroup(messages)) throw invalidFile("expected a group as root, received another object");
    const root = await this.readGroup(address, "/", messages, 0);
    for (const [parent, links] of this.softLinks) {
      for (const [name, target] of links) {
        if (this.reader.input.isPauseDue) await this.reader.input.pause();
        this.addSoftLink(root, parent as OpenGroup, name, target);
      }
    }
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
      const links = this.softLinks.get(parent) ?? new Map<string, string>();
      this.softLinks.set(parent, links.set(name, link.target));
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

  /** Adds the dataset of a soft link, as netCDF4 and h5netcdf do. Groups are refused, because links could make circles of them. */
  private addSoftLink(root: Hdf5Group, parent: OpenGroup, name: string, target: string): void {
    const path = pathIn(parent, name);
    const found = resolvePath(root, parent, target, this.softLinks);
    if (parent.groups.has(name) || parent.datasets.has(name)) this.refuse(path, "the name is there twice");
    else if (found?.kind === "dataset") parent.datasets.set(name, found.dataset);
    else {
      const reason = found === undefined ? "leads to no dataset" : "leads to a group";
      this.refuse(path, `its link to the path ${JSON.stringify(target.slice(0, MAX_PATH_LENGTH))} ${reason}`);
    }
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
