import { ZpublishError } from "../errors.js";

/** @throws ZpublishError `unsupported`: why an array cannot be served as asked. */
export function refuse({ path }: { readonly path: string }, reason: string): never {
  throw new ZpublishError("unsupported", `array '${path}': ${reason}`);
}
