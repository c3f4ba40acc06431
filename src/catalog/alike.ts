import { basename, dirname, extname, join } from "node:path";
import { datasetIdOfPattern } from "../config/dataset-schema.js";
import { createFileFinder } from "../find/collection-root.js";
import { splitPattern } from "../find/patterns.js";
import { canBeJoined, type FileForm, partOf } from "./file-form.js";

/** Files that look like one dataset. */
export interface AlikeFiles {
  /** Ids of their datasets. */
  readonly ids: ReadonlySet<string>;
  /** Number of files that the command joins. Those that are not in {@link ids} were not compared. */
  readonly files: number;
  /** Option that joins them: `--concat time`. */
  readonly option: string;
  /** Arguments of `serve`, as a shell takes them: `'sst=/data/days/sst-*.nc' --concat time`. */
  readonly command: string;
  /** The same without the place of the folder on this machine. */
  readonly publicCommand: string;
}

/** A described dataset. */
interface Described {
  readonly location: string;
  readonly form?: FileForm | undefined;
}

/** Number of files from which on it is worth saying. */
const MIN_FILES = 3;

/**
 * Finds files that look like one dataset: they have the same variables, dimensions and coordinates, and their times follow each other
 * without overlap; or they have no time, and names that differ by numbers. Only files of this machine are compared.
 * @param described By the ids of datasets.
 */
export async function findAlikeFiles(
  described: ReadonlyMap<string, Described>,
): Promise<readonly AlikeFiles[]> {
  const groups = new Map<string, Map<string, FileForm>>();
  const locations = new Set<string>();
  for (const [id, { location, form }] of described) {
    locations.add(location);
    if (form === undefined || !location.startsWith("/")) continue;
    const key = `${form.kind}\n${form.dimension}\n${form.key}`;
    const group = groups.get(key) ?? new Map<string, FileForm>();
    groups.set(key, group.set(id, form));
  }
  const found: AlikeFiles[] = [];
  for (const members of groups.values()) {
    const alike = members.size >= MIN_FILES ? await compareMembers(members, locations) : undefined;
    if (alike !== undefined) found.push(alike);
  }
  return found.sort((a, b) => b.files - a.files);
}

async function compareMembers(
  members: ReadonlyMap<string, FileForm>,
  described: ReadonlySet<string>,
): Promise<AlikeFiles | undefined> {
  const forms = [...members.values()];
  const first = forms[0] as FileForm;
  const paths = forms.map(({ location }) => location);
  const root = commonFolder(paths);
  const names = paths.map((path) => path.slice(root.length + 1));
  const dimension = first.dimension ?? dimensionOfNames(names);
  if (first.dimension === undefined && first.dims.includes(dimension)) return undefined;
  const parts = forms.map(({ location, ends }) => partOf(location, ends));
  if (!(await canBeJoined(parts, { kind: first.kind, dimension }))) return undefined;
  const own = new Set(paths);
  const isOther = (path: string) => described.has(path) && !own.has(path);
  for (const pattern of patternsOf(names, first.dimension !== undefined)) {
    const files = await filesOf(join(root, pattern));
    if (files === undefined || files.some(isOther)) continue;
    const matching = new Set(files);
    if (!paths.every((path) => matching.has(path))) continue;
    const option = `--${first.kind} ${dimension}`;
    const argument = (folder: string) => `${quoted(withId(folder, pattern))} ${option}`;
    return {
      ids: new Set(members.keys()),
      ...{
        files: files.length,
        option,
        command: argument(root),
        publicCommand: argument(`…/${basename(root)}`),
      },
    };
  }
  return undefined;
}

/** Returns the folder that all paths have in common. */
function commonFolder(paths: readonly string[]): string {
  let folder = dirname(paths[0] as string);
  for (const path of paths) while (folder !== "/" && !path.startsWith(`${folder}/`)) folder = dirname(folder);
  return folder === "/" ? "" : folder;
}

/** Names the new dimension of files whose names differ by numbers: `time` if these are dates. */
function dimensionOfNames(names: readonly string[]): string {
  return names.every((name) => /(?:19|20)\d\d[-_]?[01]\d(?:[-_]?[0-3]\d)?/.test(name)) ? "time" : "number";
}

/** Returns patterns of names, from the narrowest: with wildcards for numbers, then with any names if the times are known. */
function patternsOf(names: readonly string[], hasTimes: boolean): readonly string[] {
  const patterns: string[] = [];
  const narrow = patternOfNumbers(names);
  if (narrow !== undefined) patterns.push(narrow);
  const wide = new Set(
    names.map((name) => `${name.replace(/[^/]+\//g, "*/").replace(/[^/]+$/, "*")}${extname(name)}`),
  );
  if (hasTimes && wide.size === 1) patterns.push(...wide);
  return patterns;
}

/**
 * Returns the pattern of names that differ in numbers only; undefined if they differ in more. A number beside a letter stays as it is if
 * all names have it, as in `t2m`; others may be parts of a date, which later files have not.
 */
function patternOfNumbers(names: readonly string[]): string | undefined {
  const split = names.map((name) => name.split(/(\d+)/));
  const [first = []] = split;
  const parts: string[] = [];
  for (const [index, part] of first.entries()) {
    const isSame = split.every((all) => all.length === first.length && all[index] === part);
    const isNumber = index % 2 === 1;
    const isInWord = /[a-z]$/i.test(first[index - 1] ?? "") || /^[a-z]/i.test(first[index + 1] ?? "");
    if (!isSame && !isNumber) return undefined;
    parts.push(isNumber && !(isSame && isInWord) ? "*" : part.replace(/[\\*?[\]{}]/g, "\\$&"));
  }
  return parts.join("").replace(/\*(?:[-_.T:]?\*)+/g, "*");
}

/** Returns the files that a location of a joined dataset means; undefined if it is no pattern. */
async function filesOf(location: string): Promise<readonly string[] | undefined> {
  const split = splitPattern(location);
  if (split === undefined) return undefined;
  const finder = createFileFinder({ root: split.root, include: [split.include] });
  const { files } = await finder.look();
  return files.map(({ path }) => finder.locationOf(path));
}

function withId(root: string, include: string): string {
  const id = datasetIdOfPattern({ root, include });
  return `${/^[\w.-]+$/.test(id) ? `${id}=` : ""}${root}/${include}`;
}

/** Quotes a text for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
