import { ZpublishError } from "../../errors.js";
import type { FileFinder, FileFinderOptions } from "./file-finder.js";
import { createLocalFinder } from "./local-finder.js";
import { createObjectFinder } from "./object-finder.js";

/**
 * Creates the finder of files below a directory or a prefix of a bucket. It makes no request.
 * @throws ZpublishError `invalid-config` for patterns that cannot be understood, and for other roots: web servers list nothing.
 */
export function createFileFinder(options: FileFinderOptions): FileFinder {
  const { root } = options;
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(root)) return createLocalFinder(options);
  if (/^s3:/i.test(root)) return createObjectFinder(options);
  throw new ZpublishError(
    "invalid-config",
    `expected a directory or an S3 prefix, received ${root.slice(0, 200)}`,
  );
}
