import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { isAbsolute, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { schemeOf } from "../stores/scheme-of.js";

/** Makes a path absolute; a location with a scheme (`https://…`, `file:///…`) stays as it is. */
export function resolveLocation(location: string, directory: string): string {
  return schemeOf(location) === undefined ? resolve(directory, location) : location;
}

/** Makes the root of a collection absolute: a path, or an `s3://` URL with a slash at its end. Undefined for other URLs, which cannot be listed. */
export function resolveRoot(root: string, directory: string): string | undefined {
  if (/^file:/i.test(root)) {
    try {
      return fileURLToPath(root);
    } catch {
      return undefined;
    }
  }
  const location = resolveLocation(root, directory);
  if (isAbsolute(location)) return location;
  return /^s3:\/\/[^/]/i.test(location) ? `${location.replace(/\/+$/, "")}/` : undefined;
}

/**
 * Resolves a plugin's `module`: to an absolute path if it is a `file:` URL, begins with `.` or `/`, exists below the
 * directory, or is a package that is installed there; else a specifier, as it is. The program itself may be installed
 * elsewhere, where an `import` of the operator's package would not find it.
 * @throws TypeError if a `file:` URL names no local file.
 */
export function resolveModule(module: string, directory: string): string {
  if (module.startsWith("file:")) return fileURLToPath(module);
  if (module.startsWith(".") || isAbsolute(module)) return resolve(directory, module);
  const path = resolve(directory, module);
  if (existsSync(path)) return path;
  try {
    return createRequire(join(directory, "plugins.js")).resolve(module);
  } catch {
    // Not there, or a package that exports nothing to `require`: importing it will tell.
    return module;
  }
}

/** Whether a plugin's `module` is a file, whose name may name the plugin. */
export function isModulePath(module: string): boolean {
  return /^(file:|\.|\/)|\.[cm]?js$/.test(module) || isAbsolute(module);
}

/**
 * Splits `ID=LOCATION`; the id is undefined if none is given. A location may contain `=` itself. So a text is a location
 * if a file of that name exists, or if a slash is before its first `=`, since ids have no slash.
 */
export function splitDatasetArgument(
  text: string,
  directory: string,
): { readonly id: string | undefined; readonly location: string } {
  const at = text.indexOf("=");
  if (at === -1 || text.slice(0, at).includes("/") || existsSync(resolve(directory, text))) {
    return { id: undefined, location: text };
  }
  return { id: text.slice(0, at), location: text.slice(at + 1) };
}

/** Makes the paths of references absolute. @param directory Directory that relative ones begin in. */
export function absoluteReferences({ allow }: { readonly allow: readonly string[] }, directory: string) {
  return { allow: allow.map((place) => resolveLocation(place, directory)) };
}
