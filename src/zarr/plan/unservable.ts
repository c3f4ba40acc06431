import { ZpublishError } from "../../errors.js";

/** Makes an `unsupported` error that says why an array cannot be served as asked. */
export function unservable({ path }: { readonly path: string }, reason: string): ZpublishError {
  return new ZpublishError("unsupported", `array '${path}': ${reason}`);
}
