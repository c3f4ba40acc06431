import { readdirSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import type { ForeignFile } from "./foreign-file.js";

/** Finds all files below a folder, sorted, less those whose name or folder begins with a dot. */
export function findFiles(directory: string): ForeignFile[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = resolve(entry.parentPath, entry.name);
      return { id: relative(directory, path).split(sep).join("/"), path };
    })
    .filter(({ id }) => !id.split("/").some((part) => part.startsWith(".")))
    .sort((a, b) => (a.id < b.id ? -1 : 1));
}
