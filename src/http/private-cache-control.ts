/** Directives that let caches of many users keep an answer (RFC 9111 §5.2.2), with their values. */
const SHARED = /^(?:public|s-maxage(?:=.*)?|proxy-revalidate)$/i;
const UNSHARED = /^(?:private|no-store)$/i;

/**
 * A `Cache-Control` for answers that only some may read: what it says of a reader's own cache stays, caches of many
 * readers must not keep them.
 */
export function privateCacheControl(cacheControl: string): string {
  const directives = cacheControl
    .split(",")
    .map((directive) => directive.trim())
    .filter((directive) => directive !== "" && !SHARED.test(directive));
  return directives.some((directive) => UNSHARED.test(directive))
    ? directives.join(", ")
    : ["private", ...directives].join(", ");
}
