import { fileURLToPath } from "node:url";
import { ZpublishError } from "../errors.js";
import { createDirectorySource } from "./directory/directory-source.js";
import type { Source } from "./source.js";

/**
 * Opens a location: the path of a directory, or its `file:` URL. `readTree` then reads its metadata.
 * @throws ZpublishError `unsupported` for other kinds of location.
 */
export async function openSource(location: string): Promise<Source> {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(location)?.[1]?.toLowerCase();
  if (scheme === undefined) return createDirectorySource(location);
  if (scheme !== "file") {
    throw new ZpublishError(
      "unsupported",
      `expected the path of a local directory, received ${location.slice(0, 200)}`,
    );
  }
  try {
    return createDirectorySource(fileURLToPath(location));
  } catch (cause) {
    throw new ZpublishError("invalid-metadata", `expected a file URL of this machine, received ${location}`, {
      cause,
    });
  }
}
