/**
 * Ends with 0 if zpublish answers /healthz within three seconds, and with 1 if it does not. For a container's HEALTHCHECK:
 * the image has no curl. Asks the admin port if there is one.
 */
const { ZPUBLISH_ADMIN_PORT, ZPUBLISH_PORT } = process.env;
// An empty variable is none, as for the program.
const port = ZPUBLISH_ADMIN_PORT || ZPUBLISH_PORT || "9000";
try {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`, {
    signal: AbortSignal.timeout(3_000),
  });
  if (!response.ok) throw new Error(`/healthz: expected 200, received ${response.status}`);
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
