import { ZpublishError } from "../errors.js";
import { schemeOf } from "../stores/scheme-of.js";
import type { FileFinder, FileFinderOptions } from "./file-finder.js";
import { createLocalFinder } from "./local-finder.js";
import { createObjectFinder } from "./object-finder.js";

/**
 * Creates the finder of files below a directory or a prefix of a bucket. It makes no request.
 * @throws ZpublishError `invalid-config` for patterns that cannot be understood, and for other roots: web servers list nothing.
 */
export function createFileFinder(options: FileFinderOptions): FileFinder {
  const { root } = options;
  const scheme = schemeOf(root);
  if (scheme === undefined) return createLocalFinder(options);
  if (scheme === "s3") return createObjectFinder(options);
  throw new ZpublishError(
    "invalid-config",
    `expected a directory or an S3 prefix, received ${root.slice(0, 200)}`,
  );
}
