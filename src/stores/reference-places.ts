import { resolve } from "node:path";
import { ZpublishError } from "../errors.js";
import { type StoreSettings, withSlash } from "./byte-store.js";
import { createFileStore } from "./file-store.js";
import { openByteStore } from "./open-byte-store.js";
import type { ReferenceOptions } from "./reference-store.js";

/** Places of references. */
export interface ReferencePlaces {
  readonly stores?: readonly StoreSettings[] | undefined;
  /** URLs and absolute paths below which references may lead. Default: the folder of the reference file. */
  readonly allow?: readonly string[] | undefined;
}

/**
 * Returns how the targets of references are opened: only below the places that are allowed.
 * @param folder The folder of the reference file, as in `ReferenceOptions`.
 */
export function referenceOptions(
  { folder }: { readonly folder: string },
  { stores = [], allow = [folder] }: ReferencePlaces,
): ReferenceOptions {
  const places = allow.map(urlOfPlace);
  const placeOf = (url: string) => places.find((place) => url.startsWith(withSlash(place)) || url === place);
  return {
    folder,
    isAllowed: (url) => placeOf(url) !== undefined,
    openTarget(url) {
      if (url.startsWith("file://")) {
        const place = withSlash(placeOf(url) as string);
        // Links may lead to files below the allowed place, never out of it.
        const root = url === placeOf(url) ? url.slice(0, url.lastIndexOf("/") + 1) : place;
        return {
          store: createFileStore(resolve(root.slice("file://".length))),
          key: url.slice(root.length),
        };
      }
      if (url.includes("?"))
        throw new ZpublishError(
          "unsupported",
          "expected a reference to a URL without query, received one with it",
        );
      const parent = url.slice(0, url.lastIndexOf("/") + 1);
      const name = url.slice(parent.length);
      return {
        store: openByteStore(parent, stores),
        key: url.startsWith("s3:") ? name : decodeURIComponent(name),
      };
    },
  };
}

/** Returns the URL of a place that the operator wrote: local paths become `file://` URLs, which are not percent-encoded. */
function urlOfPlace(place: string): string {
  if (place.startsWith("/")) return `file://${place}`;
  return /^https?:/i.test(place) ? new URL(place).href : place;
}
